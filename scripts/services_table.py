"""What is known of each Secret Service, and the table in docs/keyrings.md: see scripts/services."""
import services_checks

# (service, check): what it does not do and why, and what canopyd does about it.
KNOWN = {}


def is_known(result):
    return (result["service"], result["check"]) in KNOWN
