"""What the project's pages show: fenced blocks, the examples of man pages, and commands within a sentence."""
import re
from collections import namedtuple
from stage import ROOT, Failure

# `mark` is what an HTML comment in the line above the block says; `line` is that of its fence.
Block = namedtuple("Block", "path line language mark text")

PAGES = ["README.md", "SECURITY.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] + sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
MAN_PAGES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "man").iterdir())


def blocks(path):
    """Every fenced block of a page, or every example of a man page, in order."""
    lines = (ROOT / path).read_text().split("\n")
    return man_blocks(path, lines) if path.startswith("man/") else fenced_blocks(path, lines)


def fenced_blocks(path, lines):
    found, index = [], 0
    while index < len(lines):
        fence = re.fullmatch(r"```(\w*)", lines[index])
        if not fence:
            index += 1
            continue
        end = lines.index("```", index + 1)
        mark = re.fullmatch(r"<!-- (.*) -->", lines[index - 1]) if index else None
        found.append(Block(
            path, index + 1, fence[1], mark[1] if mark else None, "\n".join(lines[index + 1:end]) + "\n"))
        index = end + 1
    return found


def man_blocks(path, lines):
    """What stands between .EX and .EE: commands, but in a page about a file what stands in the file."""
    found, index = [], 0
    while index < len(lines):
        if lines[index] != ".EX":
            index += 1
            continue
        end = lines.index(".EE", index + 1)
        text = "\n".join(lines[index + 1:end]) + "\n"
        found.append(Block(path, index + 1, "ini" if path.endswith(".5") else "sh", None, plain(text)))
        index = end + 1
    return found


def plain(text):
    """roff's text as it is shown."""
    return re.sub(r"^\\&", "", text, flags=re.M).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")


def example(path, language, begins):
    """The one block of a page in this language that begins so."""
    found = [block.text for block in blocks(path) if block.language == language and block.text.startswith(begins)]
    if len(found) != 1:
        raise Failure(f"{path} has {len(found)} blocks of {language or 'no language'} that begin with {begins!r}")
    return found[0]


def replaced(text, names):
    """The text with each name's value in its place; a name that is not there is a fault of the caller's."""
    for name, value in names.items():
        if name not in text:
            raise Failure(f"there is no {name!r} in: {text}")
        text = text.replace(name, value)
    return text


def commands(path):
    """Every command of ours that a page shows, within a sentence or in a block of commands: (line, words)."""
    ours = r"(?:canopyctl|canopyd|canopy-sandbox|(?:scripts|bench|packaging)/[a-z-]+)"
    shown = [(block.line + number, line) for block in blocks(path) if block.language == "sh"
             for number, line in enumerate(block.text.split("\n"), 1)]
    if not path.startswith("man/"):
        fenced = False
        for number, line in enumerate((ROOT / path).read_text().split("\n"), 1):
            fenced ^= line.startswith("```")
            shown += [(number, span) for span in re.findall(r"`([^`]+)`", line) if not fenced]
    found = []
    for number, text in shown:
        for match in re.finditer(rf"(?:^|(?<=[\s|(!'\"])){ours}(?=[\s'\"|)]|$)[^|;&<>#\"')]*", text):
            found.append((number, match[0].split()))
    return found
