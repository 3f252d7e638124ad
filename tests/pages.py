"""Reading the runnable examples out of a Markdown page.

A page is read from top to bottom, as a reader would do it, in one empty folder:

    ```python            runs; names live on in the later blocks of the page. A block with `>>>` is a doctest.
    ```console           each line after `$ ` runs in a shell; the lines below it are what it prints (`...` is anything)
    ```sh, ```bash       each line runs, `$ ` or not; `\\` at the end continues it
    <!-- file: NAME -->  before a fence of any language: the block is written to that file instead
    <!-- exits: N -->    before a console or sh fence: its last command ends with this exit code
    <!-- not run: WHY --> before a fence: it is not run, and the test output says so

Of shell commands only those that start toolplan or read a file of the page are run (`toolplan`, `python FILE`, `cat`,
`echo ... | toolplan`): what installs or clones is the reader's machine's business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

RUNNABLE = re.compile(r"(?:(?:echo|printf|cat)\b.*\|\s*)?toolplan\b|python3? (?!bootstrap\.py)[\w./-]+\.py\b|cat ")
_FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<language>[\w+-]*)")
_MARKER = re.compile(r"<!--\s*(?P<kind>file|exits|not run):\s*(?P<value>.*?)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line it begins on, and what the comment before it says."""

    language: str
    text: str
    line: int
    file: str | None = None
    exits: int = 0
    not_run: str | None = None


@dataclass(frozen=True)
class Command:
    """A shell command with what it prints; None where the page does not say."""

    text: str
    output: str | None
    line: int

    @property
    def is_ours(self) -> bool:
        return bool(RUNNABLE.match(self.text))


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of the page in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    marker: re.Match[str] | None = None
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = _FENCE.match(line)
        if fence is None:
            if line.strip():
                marker = _MARKER.search(line)
            number += 1
            continue
        start = number + 1
        number = start
        while number < len(lines) and not lines[number].strip().startswith(fence["marks"]):
            number += 1
        indent = len(fence["indent"])
        body = [inner[indent:] if inner[:indent].isspace() or not indent else inner for inner in lines[start:number]]
        kind, value = (marker["kind"], marker["value"]) if marker else ("", "")
        found.append(
            Block(
                language=fence["language"].lower(),
                text="\n".join(body) + "\n",
                line=start + 1,
                file=value if kind == "file" else None,
                exits=int(value) if kind == "exits" else 0,
                not_run=value if kind == "not run" else None,
            )
        )
        marker = None
        number += 1
    return found


def commands(block: Block) -> list[Command]:
    """Return the commands of a console, sh or bash block."""
    found: list[tuple[str, list[str] | None, int]] = []
    continued = False
    for offset, line in enumerate(block.text.splitlines()):
        if continued:
            text, output, at = found[-1]
            found[-1] = (text + " " + line.strip().removesuffix("\\").strip(), output, at)
        elif line.startswith("$ "):
            found.append((line[2:].removesuffix("\\").strip(), [], block.line + offset))
        elif block.language == "console":
            if found and found[-1][1] is not None:
                found[-1][1].append(line)
        elif line.strip() and not line.lstrip().startswith("#"):
            found.append((line.strip().removesuffix("\\").strip(), None, block.line + offset))
        continued = line.endswith("\\") and bool(found) and not (block.language == "console" and found[-1][1])
    return [Command(text, "\n".join(output).strip() if output else None, at) for text, output, at in found]
