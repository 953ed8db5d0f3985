"""What is known of each Secret Service, and the table in docs/keyrings.md: see scripts/services."""
import services_checks

# (service, check): what canopyd does about what the service does not do. What that is, the run says.
KNOWN = {
    ("kwallet", "full_disk"):
        "Nobody can know it: what KWallet could not write is lost if it ends before there is space and a next rotation.",
    ("keepassxc", "full_disk"):
        "Nobody can know it: what KeePassXC could not write is lost if it ends before there is space and a next rotation.",
    ("keepassxc", "sign_in"):
        "It raises that one prompt, of a database that it has found open, for at most 5 s; and no other.",
    ("keepassxc", "overlap"):
        "It takes the secret out of the item, and uses the item again at the next sign-in. Delete the entry by hand.",
}

BEGIN, END = "<!-- scripts/services --write: begin -->", "<!-- scripts/services --write: end -->"


def is_known(kind, check):
    """Whether it is known to fall short, itself or as the one in whose shape it is."""
    return ((kind.like or kind).key, check) in KNOWN


def table(kinds, results, rotations):
    def result(kind, check):
        return next(found for found in results if found["service"] == kind.key and found["check"] == check.__name__)

    # A double in another's shape has to be as that one is, and nothing else.
    kinds = [kind for kind in kinds if not kind.like]
    titles = [f"{kind.title} {kind.version()}".strip() for kind in kinds]
    lines = ["| what holds | " + " | ".join(titles) + " |", "| --- |" + " --- |" * len(kinds)]
    notes = []
    for checks in services_checks.WORLDS.values():
        for check in checks:
            title = f"{check.__doc__}: {rotations}" if check is services_checks.rotations else check.__doc__
            cells = []
            for kind in kinds:
                found = result(kind, check)
                if found["verdict"] == "passed":
                    cells.append("yes")
                    continue
                notes.append(f"{len(notes) + 1}. {kind.title}: {found['said']}. {KNOWN[(kind.key, check.__name__)]}")
                cells.append(f"but for {len(notes)}")
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines + [""] + notes)


def write(path, kinds, results, rotations):
    text = path.read_text()
    before, rest = text.split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{table(kinds, results, rotations)}\n{END}{rest.split(END)[1]}")
