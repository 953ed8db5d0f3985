"""The fenced blocks of the project's pages."""
import re
from collections import namedtuple
from stage import ROOT

# `mark` is what an HTML comment in the line above the block says; `line` is that of its fence.
Block = namedtuple("Block", "path line language mark text")


def blocks(path):
    """Every fenced block of a page, in order."""
    found, lines, index = [], (ROOT / path).read_text().split("\n"), 0
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


def example(language, begins):
    """The one block of docs/integrations.md in this language that begins so."""
    found = [block.text for block in blocks("docs/integrations.md")
             if block.language == language and block.text.startswith(begins)]
    if len(found) != 1:
        raise SystemExit(f"docs/integrations.md has {len(found)} blocks of {language} that begin with {begins!r}")
    return found[0]
