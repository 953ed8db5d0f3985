"""The man pages against what they describe: --help, canopyd's own words on its configuration, and openapi.json."""
import json, re
from documents import MAN_PAGES, PAGES, plain
from stage import ROOT, Failure


def lines(name):
    return (ROOT / "man" / name).read_text().split("\n")


def section(name, title):
    """The lines of one section."""
    text = lines(name)
    begin = next(index for index, line in enumerate(text) if line == f".SH {title}")
    end = next((index for index in range(begin + 1, len(text)) if text[index].startswith(".SH ")), len(text))
    return text[begin + 1:end]


def same(what, page, truth):
    """Fails with what one of two has and the other has not."""
    page, truth = set(page), set(truth)
    if page != truth:
        more, less = sorted(map(str, page - truth)), sorted(map(str, truth - page))
        raise Failure(f"{what}: only the page has {more}, and it lacks {less}")


def options_of_help(text):
    """(letter or None, name) of each option that a help lists."""
    return {(match[1], match[2]) for match in re.finditer(r"^ +(?:-(\w), )?--([a-z-]+)", text, re.M)}


def options_of_section(text):
    """The same, of the paragraphs with a tag in a man page's section."""
    found = set()
    for tag, line in zip(text, text[1:]):
        if tag == ".TP":
            match = re.match(r"\.\w+ (?:-(\w) \", \" )?--([a-z-]+)", plain(line))
            if not match:
                raise Failure(f"the tag {line!r} is no option")
            found.add((match[1], match[2]))
    return found


def canopyctl(world):
    """Commands, their options and operands, and the options' letters."""
    helps = {}
    for name in re.findall(r"^  ([a-z-]+)  ", world.succeed("canopyctl", "--help"), re.M):
        helps[name] = world.succeed("canopyctl", name, "--help")
    shown = {}
    for line in section("canopyctl.1", "COMMANDS"):
        if line.startswith(".SS "):
            name, _, rest = plain(line[4:].strip('"')).partition(" ")
            shown[name] = rest
    same("commands", shown, helps)
    for name, text in helps.items():
        options = re.findall(r"\[--([a-z-]+)[^]]*\]", shown[name])
        same(f"{name}'s options", options, {long for _, long in options_of_help(text)} - {"help", "version"})
        operands = re.sub(r"\[--[^]]*\]", "", shown[name]).replace("...", "…").split()
        usage = text.split("\n")[0].partition("[OPTION…]")[2].split()
        if operands != usage:
            raise Failure(f"{name} takes {usage}, and the page says {operands}")
    same("options", options_of_section(section("canopyctl.1", "OPTIONS")),
         set().union(*(options_of_help(text) for text in helps.values())))


def canopyd(world):
    same("options", options_of_section(section("canopyd.8", "OPTIONS")),
         options_of_help(world.succeed(world.programs / "canopyd", "--help")))


def configuration(world):
    """canopyd itself says what it knows, where it is given what it does not."""
    page, part = {}, None
    for line in lines("canopyd.conf.5"):
        if match := re.fullmatch(r'\.SH "?\[(.*?)\]"?', line):
            part = page.setdefault(match[1], set())
        elif line.startswith(".SH "):
            part = None
        elif part is not None and line.startswith((".B ", ".BR ")):
            part |= set(re.findall(r"\b([A-Z]\w+)=", line))
    path = world.work / "unknown.conf"
    path.write_text("".join(f"[{name.replace('NAME', 'x')}]\nUnknown=1\n" for name in page) + "[other]\n")
    words = world.run(world.programs / "canopyd", "--check-config", "--config", path)[2]
    same("sections", page, re.findall(r"\[([a-z]+(?: NAME)?)\]", words.partition("the sections are")[2].partition("\n")[0]))
    known = [set(re.findall(r"\b([A-Z]\w+)=", line.partition("Unknown=")[2])) for line in words.splitlines()
             if "Unknown=" in line]
    if len(known) != len(page):
        raise Failure(f"canopyd says this of unknown keys: {words}")
    for (name, keys), truth in zip(page.items(), known):
        same(f"keys of [{name}]", keys, truth)


def interface(_):
    """Requests with their parameters, states, codes with their statuses, and reasons."""
    document = json.loads((ROOT / "docs/openapi.json").read_text())
    schemas = document["components"]["schemas"]
    requests = set()
    for path, methods in document["paths"].items():
        place = path.replace("{profile}", "P").replace("{session}", "ID")
        for method, description in methods.items():
            parameters = [described(document, each) for each in description.get("parameters", [])]
            requests.add((method.upper(), place, frozenset(
                each["name"] for each in parameters if each["in"] == "query")))
    page = set()
    for line in section("canopyd-api.7", "REQUESTS"):
        if match := re.match(r"\.B (GET|POST|DELETE) (/\S+?)(?:\?(\S+))?$", line):
            page.add((match[1], match[2], frozenset(re.findall(r"(\w+)=", match[3] or ""))))
    same("requests", page, requests)
    same("states", [line.split()[0] for line in section("canopyd-api.7", "STATES") if not line.startswith(".")],
         schemas["Profile"]["properties"]["state"]["enum"])
    errors = "\n".join(section("canopyd-api.7", "ERRORS"))
    table = errors.partition(".nf")[2].partition(".fi")[0]
    same("codes", re.findall(r"\b[a-z]+(?:_[a-z]+)+\b|\b(?:forbidden|refused|throttled|timeout)\b", table),
         schemas["Problem"]["properties"]["code"]["enum"])
    same("reasons", re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", errors.partition("reason :")[2].partition(".I throttled")[0]),
         schemas["Problem"]["properties"]["reason"]["enum"])


def figures(_):
    """What README.md says of oidc-agent is what docs/bench.md has measured."""
    rows = {}
    for line in (ROOT / "docs/bench.md").read_text().split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7:
            rows[cells[0]] = cells
    heads = rows[""]
    ratios = []
    for clients in ["1 client", "8 clients", "64 clients"]:
        row = dict(zip(heads, rows[f"fresh, {clients}: p50"]))
        ratios.append(float(row["oidc-agent / floor"]) / float(row["canopyd / floor"]))
    memory = rows["RSS, MB"]
    said = (f"{min(ratios):.1f} to {max(ratios):.1f} times as long for a token,",
            f"{float(memory[6]):.0f} MB to canopyd's {float(memory[3]):.0f}")
    for words in said:
        if words not in (ROOT / "README.md").read_text():
            raise Failure(f"README.md does not say {words!r}")


def links(_):
    """Every link between the pages, and every picture, leads somewhere; every test that a page names exists."""
    faults = []
    tests = {path.stem for path in (ROOT / "Tests").rglob("*.swift")}
    for page in PAGES:
        text = (ROOT / page).read_text()
        for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text):
            if "://" in target:
                continue
            file = (ROOT / page).parent.joinpath(target) if target else ROOT / page
            if not file.exists():
                faults.append(f"{page}: there is no {target}")
            elif anchor and anchor not in anchors(file):
                faults.append(f"{page}: {target} has no heading #{anchor}")
        for name in re.findall(r"`(\w+Tests)`", text):
            if name not in tests:
                faults.append(f"{page}: there is no {name}")
        for path in re.findall(r"`((?:Tests|docs|systemd|bench|man)/[\w./-]+)`", text):
            if not (ROOT / path).exists():
                faults.append(f"{page}: there is no {path}")
    if faults:
        raise Failure("\n".join(faults))


def anchors(file):
    """What a page's headings are linked by: small letters, no punctuation, - for spaces."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def described(document, parameter):
    reference = parameter.get("$ref")
    if not reference:
        return parameter
    for key in reference[2:].split("/"):
        document = document[key]
    return document


def warnings(world):
    """What roff has to say of the pages; nothing, if they are sound."""
    for page in MAN_PAGES:
        status, _, words = world.run("man", "--warnings", "--local-file", ROOT / page, environment={"LC_ALL": "C.UTF-8"})
        if status != 0 or words:
            raise Failure(f"{page}: {words}")


CHECKS = [
    ("canopyctl(1) has the commands and options of --help", canopyctl),
    ("canopyd(8) has the options of --help", canopyd),
    ("canopyd.conf(5) has the sections and keys that canopyd knows", configuration),
    ("canopyd-api(7) has the requests, states, codes and reasons of docs/openapi.json", interface),
    ("what README.md says of others is what docs/bench.md has measured", figures),
    ("every link, picture, file and test that a page names is there", links),
    ("the man pages have no fault that roff warns of", warnings)]
