"""Figures and names that the pages state, against the code that they are of.

A page that says a number of ours says it in a sentence below; one that is reworded has to be found again here.
"""
import json, re
from documents import MAN_PAGES, PAGES, plain
from stage import ROOT, Failure

SOURCES = ROOT / "Sources"


def text(path):
    """A page as it is read, on one line."""
    words = (ROOT / path).read_text()
    if path.startswith("man/"):
        words = plain(re.sub(r"^\.\w+ ?", "", words, flags=re.M)).replace("\\fI", "").replace("\\fR", "")
    return re.sub(r"\s+", " ", words.replace('"', ""))


def limits():
    """Every limit by its name."""
    found = {}
    for path in sorted(SOURCES.rglob("Limits.swift")):
        for name, value in re.findall(r"static let (\w+)(?:: \w+)? = (.*)", path.read_text()):
            value = re.sub(r"Int\(Int32\.max\)", str(2**31 - 1), value)
            # Numbers, and limits that came before.
            if not re.fullmatch(r"[\w\s()*+<]+", value):
                raise Failure(f"{path}: {name} is {value}, which is no number")
            found[name] = eval(value, {"__builtins__": {}}, found)
    return found


def spans():
    """Spans of time with a name, in seconds."""
    found = {}
    for path in SOURCES.rglob("*.swift"):
        for name, value in re.findall(r"static let (\w+) = TimeSpan\.seconds\(([\d_ *]+)\)", path.read_text()):
            found[f"{path.stem}.{name}"] = eval(value, {"__builtins__": {}})
    return found


NUMBER_WORDS = {"two": 2, "four": 4, "five": 5, "ten": 10}


def figures(_):
    """Limits, deadlines and defaults."""
    known = {**limits(), **spans()}
    stated = [
        ("man/canopyd-api.7", r"Content-Length of at most (\d+)", known["requestBodyBytes"]),
        ("man/canopyd-api.7", r"min_validity \((\d+), or a quarter", known["minimumValiditySeconds"]),
        ("man/canopyd-api.7", r"within timeout \((\d+), at most", known["requestTimeoutSeconds"]),
        ("man/canopyd-api.7", r"within timeout \(\d+, at most (\d+)\)", known["requestTimeoutMaximumSeconds"]),
        ("man/canopyd-api.7", r"A comment every (\d+) seconds", known["eventKeepAliveSeconds"]),
        ("man/canopyd.8", r"At most (\d+) bytes", known["socketPathBytes"]),
        ("man/canopyd.8", r"fewer than (\d+) open files", known["descriptorsLeast"]),
        ("man/canopyd.8", r"Stop: within (\d+) seconds", known["stopSeconds"] + 1),
        ("man/canopyd.8", r"within (\d+) seconds of a rotation or a sign-in", known["RotationTiming.lateStoreHold"]),
        ("man/canopyd.8", r"has needed a new sign-in for (\w+) minutes", known["SignInNotice.grace"] / 60),
        ("man/canopyd.conf.5", r"Connections of the user at a time; (\d+)", known["connections"]),
        ("man/canopyd.conf.5", r"1 to (\d+) of a-z A-Z 0-9", known["profileNameBytes"]),
        ("man/canopyd.conf.5", r"rotates at (\d+) to 85 percent", 75),
        ("man/canopyctl.1", r"1 to (\d+) of a-z A-Z 0-9", known["profileNameBytes"]),
        ("man/canopyctl.1", r"has to be valid for; else (\d+),", known["minimumValiditySeconds"]),
        ("man/canopyctl.1", r"wait for a rotation, 0 to (\d+); else", known["requestTimeoutMaximumSeconds"]),
        ("man/canopyctl.1", r"wait for a rotation, 0 to \d+; else (\d+)", known["requestTimeoutSeconds"]),
        ("README.md", r"has needed a new sign-in for (\w+) minutes", known["SignInNotice.grace"] / 60),
        ("README.md", r"systemd's default of (\d+) MiB is not", known["lockedMemoryBytes"] >> 20),
        ("docs/keyrings.md", r"halfway, ([\d.]+) s after the first", known["RotationTiming.lateStoreHold"] / 2),
        ("docs/threat-model.md", r"delivers a refresh request after (\w+) minutes", known["RotationTiming.longestHold"] / 60),
        ("systemd/canopyd.service", r"FileDescriptorStoreMax=(\d+)", known["profiles"]),
        ("systemd/canopyd.service", r"TimeoutStopSec=(\d+)min", known["unitStopSeconds"] / 60),
        ("systemd/canopyd.socket", r"Backlog=(\d+)", known["listenBacklog"]),
        ("README.md", r"(\d+) planted bugs, each caught", planted()),
        ("docs/testing.md", r"comparisons of that code, (\d+) of them", planted()),
    ]
    faults = []
    for page, sentence, truth in stated:
        said = re.findall(sentence, text(page))
        if not said:
            faults.append(f"{page} has no sentence like: {sentence}")
        faults += [f"{page} says {number!r} and not {truth:g}: {sentence}" for number in said
                   if float(NUMBER_WORDS.get(number, number)) != truth]
    nothing(faults)


def planted():
    """The bugs of scripts/mutants."""
    return len(re.findall(r"^test ", (ROOT / "scripts/mutants").read_text(), re.M))


def described(_):
    """What openapi.json allows is what the limits are."""
    document, known, faults = json.loads((ROOT / "docs/openapi.json").read_text()), limits(), []

    def walk(value, path):
        if isinstance(value, list):
            for number, part in enumerate(value):
                walk(part, f"{path}/{number}")
        if not isinstance(value, dict):
            return
        schema = value.get("schema", {})
        wanted = {"timeout": {"default": known["requestTimeoutSeconds"], "maximum": known["requestTimeoutMaximumSeconds"]},
                  "profile": {"maxLength": known["profileNameBytes"]}}.get(value.get("name"), {})
        for key, truth in wanted.items():
            if key in schema and schema[key] != truth:
                faults.append(f"{path}: {key} is {schema[key]}, and not {truth}")
        for key, part in value.items():
            walk(part, f"{path}/{key}")

    walk(document, "")
    nothing(faults)


def exit_codes(world):
    """The numbers of canopyctl's ends, in its man page, its help and its code."""
    code = {int(number) for number in re.findall(r"case \w+ = (\d+)", (SOURCES / "canopyctl/ExitCode.swift").read_text())}
    page = (ROOT / "man/canopyctl.1").read_text().partition(".SH EXIT STATUS")[2].partition(".fi")[0]
    told = {int(number) for number in re.findall(r"^(\d+)  ", page, re.M)}
    shown = {int(number) for number in
             re.findall(r"\b(\d+) [a-z]", world.succeed("canopyctl", "--help").partition("exit codes:")[2])}
    if not code == told == shown:
        raise Failure(f"the code has {sorted(code)}, the page {sorted(told)}, the help {sorted(shown)}")


def variables(_):
    """A variable that a page names is read, or set, by a program; one of ours that is read is named."""
    programs = "".join(
        path.read_text() for path in SOURCES.rglob("*.swift") if path.parts[-2] not in ("canopy-sandbox", "Simulation"))
    programs += "".join(path.read_text() for path in (ROOT / "systemd").rglob("*") if path.is_file())
    pages = {page: text(page) for page in PAGES + MAN_PAGES}
    name = r"\$?\b((?:CANOPYD?|XDG|DBUS)_[A-Z_]+)\b"
    faults = [f"{page}: no program knows {variable}" for page, words in pages.items()
              for variable in sorted(set(re.findall(name, words)))
              # A field of the journal is made of its name.
              if f'"{variable}"' not in programs and variable not in programs and not is_field(variable)
              # Of the tests.
              and variable not in ("CANOPYD_SANITIZED", "CANOPYD_ROTATIONS")]
    of_users = set(re.findall(r'"((?:CANOPYD?)_[A-Z_]+)"', programs))
    manual = "".join(pages[page] for page in MAN_PAGES)
    faults += [f"no man page names {variable}" for variable in sorted(of_users)
               if variable not in manual and not is_field(variable)]
    nothing(faults)


def is_field(name):
    fields = re.findall(r"^    case (\w+)$", (SOURCES / "AgentCore/Journal/JournalField.swift").read_text(), re.M)
    return name in ["CANOPYD_EVENT", *("CANOPYD_" + field.upper() for field in fields)]


def events(_):
    """Every kind of line that a page names is one, and has its explanation."""
    source = (SOURCES / "AgentCore/Journal/JournalEvent.swift").read_text()
    cases = source.partition("enum JournalEvent")[2].partition("package")[0]
    known = {written or name for line in re.findall(r"^    case (.*)$", cases, re.M)
             for name, written in re.findall(r'(\w+)(?: = "(\w+)")?', line)}
    faults = [f"{page}: there is no event {name}" for page in PAGES + MAN_PAGES
              for name in re.findall(r"CANOPYD_EVENT=(\w+)", text(page)) if name not in known]
    explained = len(re.findall(r"^-- [0-9a-f]{32}$", (ROOT / "systemd/canopyd.catalog").read_text(), re.M))
    identities = set(re.findall(r'case \.\w+: "([0-9a-f]{32})"', source))
    if explained != len(identities):
        faults.append(f"the catalogue explains {explained} kinds of lines, and there are {len(identities)}")
    nothing(faults)


def metrics(_):
    """The names of the metrics, as OpenMetrics completes them."""
    source = (SOURCES / "AgentCore/API/Metrics.swift").read_text()
    code = {name + {"info": "_info", "counter": "_total"}.get(kind, "")
            for name, kind in re.findall(r'page\.family\(\s*"(\w+)", \.(\w+)', source)}
    page = re.search(r"OpenMetrics: (.*?), each after", text("man/canopyd-api.7"))[1]
    told = set(re.findall(r"\w+_\w+|\bconnections\b", page))
    if code and told != code:
        raise Failure(f"only the page has {sorted(told - code)}, and it lacks {sorted(code - told)}")
    if not code:
        raise Failure("no metric was found in the code")


def names(_):
    """The schema, the label and the server that are written in several places are the same in all."""
    shim = (SOURCES / "CLibsecret/shim.h").read_text()
    server = re.search(r'"(https://[\w.-]+)"', (SOURCES / "AgentCore/Exchange/BaseURL.swift").read_text())[1]
    faults = []
    for page in PAGES + MAN_PAGES:
        words = text(page)
        faults += [f"{page}: {name}" for name in re.findall(r"com\.canopy-io\.canopyd\.\w+", words) if f'"{name}"' not in shim]
        faults += [f"{page}: {url}" for url in re.findall(r"https://auth\.[\w.-]*\w", words) if url != server]
    label = re.search(r"Canopy session: ", "".join(path.read_text() for path in (SOURCES / "canopyd-exchange").glob("*.swift")))
    if not label or "Canopy session: PROFILE" not in text("man/canopyd.8"):
        faults.append("the label of the item is another one in man/canopyd.8")
    nothing(faults)


def libraries(_):
    """The package asks for the libcurl that the pages name."""
    asked = set(re.findall(r"libcurl4 \(>= ([\d.]+)\)", (ROOT / "packaging/build-deb").read_text()))
    told = set(re.findall(r"asks for libcurl ([\d.]+\d)", text("docs/platforms.md") + text("CHANGELOG.md")))
    if asked != told:
        raise Failure(f"the package asks for {asked}, and the pages say {told}")


def nothing(faults):
    if faults:
        raise Failure("\n".join(faults))


CHECKS = [
    ("the limits, deadlines and counts that the pages state are the code's", figures),
    ("docs/openapi.json allows what the limits are", described),
    ("canopyctl's exit codes are the same in its code, help and man page", exit_codes),
    ("every variable that a page names is known to a program, and ours are in the man pages", variables),
    ("every kind of journal line that a page names is one, and all are explained", events),
    ("canopyd-api(7) has the metrics that there are", metrics),
    ("schema, label and server have one name everywhere", names),
    ("the package asks for the libraries that the pages name", libraries)]
