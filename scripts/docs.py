"""Write the pages of docs/reference that are made from the code, or compare them with it.

    python scripts/docs.py              write the pages
    python scripts/docs.py --check      exit with 1, and say what differs, where a page is out of date

`errors.md` comes from the catalogue of diagnostics, `cli.md` from what `--help` prints, `api.md` and `journal.md` from
docstrings.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
MADE = "<!-- Made from the code by `make docs`; do not edit. -->"


# errors.md ------------------------------------------------------------------------------------------------------------

HUNDREDS = {
    "1": "Reading: the text is not a plan that can be read",
    "2": "Names: something is used that is not there",
    "3": "Calls and types: a value does not fit where it is used",
    "4": "Effects and approvals: a call may not happen, or not here",
    "5": "Limits: the plan is larger than it may be",
}


def errors() -> str:
    """Return the page of all diagnostics, by code."""
    from toolplan import diagnostics

    for module in pkgutil.iter_modules(diagnostics.__path__):
        importlib.import_module(f"toolplan.diagnostics.{module.name}")
    catalogue = diagnostics.catalogue
    lines = [
        "# Diagnostics",
        MADE,
        "",
        "Codes are stable. `toolplan explain CODE` prints the same text. An error stops a plan before anything of it",
        "runs; a warning goes along with the result.",
        "",
        "| code | | what |",
        "| --- | --- | --- |",
        *(f"| [{e.code}](#{e.code.lower()}) | {e.severity} | {e.title} |" for _, e in sorted(catalogue.items())),
    ]
    for digit, title in HUNDREDS.items():
        lines += ["", f"## {title}"]
        for code, e in sorted(catalogue.items()):
            if code.removeprefix("TP").startswith(digit):
                lines += [
                    "",
                    f'### <a id="{code.lower()}"></a>{code}: {e.title}',
                    "",
                    f"*{e.severity}.* {e.story}".strip(),
                ]
                for head, example in (("Wrong:", e.wrong), ("Right:", e.right)):
                    if example:
                        lines += ["", head, "", *fenced(example)]
    return "\n".join(lines) + "\n"


def fenced(text: str, language: str = "text") -> list[str]:
    """Return the text as a fenced block whose fence is longer than any inside."""
    marks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", text)), 3)
    return [marks + language, *text.strip("\n").splitlines(), marks]


# cli.md ---------------------------------------------------------------------------------------------------------------


def cli() -> str:
    """Return the page of the command line: the help of the program and of each command."""
    overview = help_of()
    commands = re.findall(r"^  ([a-z][a-z-]*)  +\S", section(overview, "Commands"), re.MULTILINE)
    if not commands:
        raise SystemExit(f"docs: no commands found in what `toolplan --help` prints:\n{overview}")
    exit_codes: dict[int, str] = importlib.import_module("toolplan.cli.outputs").EXIT_CODES
    rows = [f"| {code} | {meaning} |" for code, meaning in exit_codes.items()]
    lines = ["# Command line", MADE, "", "| exit code | means |", "| --- | --- |", *rows, "", *fenced(overview)]
    for command in commands:
        lines += ["", f"## toolplan {command}", "", *fenced(help_of(command))]
    return "\n".join(lines) + "\n"


def help_of(*command: str) -> str:
    """Return what `toolplan COMMAND --help` prints, without the frames around it."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("TOOLPLAN_", "FORCE_COLOR"))
    }
    environment |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "toolplan", *command, "--help"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"docs: `toolplan {' '.join(command)} --help` failed:\n{done.stderr}")
    return "\n".join(unframed(done.stdout.splitlines()))


def unframed(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a help text, boxes turned into headings and indentation."""
    for line in lines:
        bare = line.strip()
        if title := re.match(r"[╭┌][─ ]*([^─]*?)[─ ]*[╮┐]$", bare):
            yield title[1] + ":"
        elif not re.fullmatch(r"[╰└]─*[╯┘]", bare):
            framed = re.match(r"^[│|] ?(.*?) *[│|]$", bare)
            yield ("  " + framed[1] if framed else line).rstrip()


def section(text: str, title: str) -> str:
    """Return the lines of the help text below `title:`."""
    found = re.search(rf"^{title}:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


# api.md ---------------------------------------------------------------------------------------------------------------


def api() -> str:
    """Return the page of the public names."""
    import toolplan

    lines = ["# Python API", MADE, "", *as_markdown(inspect.getdoc(toolplan) or "")]
    for name in toolplan.__all__:
        thing = getattr(toolplan, name)
        lines += ["", f"## {name}", "", *described(name, thing)]
    return "\n".join(lines) + "\n"


def described(name: str, thing: object) -> list[str]:
    """Return the signature, the docstring and the members of a public name."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return fenced(f"{name} = " + re.sub(r"[\w.]+\.(?=\w)", "", str(thing)), "python")
    lines = [*fenced(signature(name, thing), "python"), "", *as_markdown(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        for member, value in sorted(vars(thing).items()):
            if member.startswith("_"):
                continue
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(function):
                waits = "await " if inspect.iscoroutinefunction(function) else ""
                lines += [
                    "",
                    f"`{waits}{signature(member, function, one_line=True)}`  ",
                    *as_markdown(inspect.getdoc(function) or ""),
                ]
            elif isinstance(value, property):
                lines += ["", f"`{member}`  ", *as_markdown(inspect.getdoc(value) or "")]
    return lines


def signature(name: str, thing: Callable[..., object] | type, *, one_line: bool = False) -> str:
    """Return how it is called, one parameter a line where one line is too long."""
    if inspect.isclass(thing) and thing.__init__ is Exception.__init__:
        return f"{name}(message)"
    try:
        found = inspect.signature(thing)
    except ValueError:
        return name
    if getattr(thing, "_is_protocol", False):
        return f"class {name}(Protocol)"
    parameters = [p for p in found.parameters.values() if p.name not in ("self", "cls")]
    found = found.replace(parameters=parameters)
    if inspect.isclass(thing):
        found = found.replace(return_annotation=inspect.Signature.empty)
    flat = re.sub(
        r"""(?<=[:>] )(['"])(.*?)\1(?=,|\)| =|$)""", r"\2", f"{name}{found}"
    )  # postponed annotations are text
    flat = re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", flat).replace("toolplan.", "")
    flat = re.sub(r"= <[^<>]+>", "= ...", flat)  # defaults that only have an address
    if one_line or len(flat) <= 110:
        return flat
    result = "" if found.return_annotation is inspect.Signature.empty else " -> " + flat.rsplit(" -> ", 1)[1]
    inside = flat[len(name) + 1 : flat.rindex(")" + result)]
    return "\n".join([f"{name}(", *(f"    {part}," for part in split_parameters(inside)), ")" + result])


def split_parameters(text: str) -> list[str]:
    """Cut at the commas that are outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def as_markdown(docstring: str) -> list[str]:
    """Return the docstring with its indented blocks fenced."""
    lines: list[str] = []
    block: list[str] = []
    for line in [*docstring.splitlines(), "."]:
        if line.startswith("    ") or (block and not line.strip()):
            block.append(line)
            continue
        if block:
            text = "\n".join(block).rstrip()
            lines += [*fenced(inspect.cleandoc(text)), ""]
            block = []
        lines.append(line)
    return lines[:-1]


# journal.md -----------------------------------------------------------------------------------------------------------


def journal() -> str:
    """Return the page of what a journal holds."""
    from toolplan.journal import database, entries

    about, _, rules = inspect.cleandoc(entries.__doc__ or "").partition("\n\n")
    picture, _, rest = rules.partition("\n\n")
    lines = [
        "# The journal",
        MADE,
        "",
        f"{about} This is format {entries.FORMAT}.",
        "",
        *fenced(picture),
        "",
        rest,
        "",
        "A journal is an SQLite database in WAL mode:",
        "",
        *fenced(inspect.cleandoc(database.SCHEMA), "sql"),
        "",
        "`outcome` is `running` until an end is written. A lease says who works on a run; `token` grows each time that",
        "it is taken, and every commit of a run checks its own. `written` and `chain` are the number of its",
        "entries and a hash over them (`journal/chain.py`), committed with them.",
        "",
        "## Entries",
    ]
    for name, cls in entries.KINDS.items():
        shown = [f"{field.name}: {field.type!s}".replace("'", '"') for field in dataclasses.fields(cls)]
        lines += ["", f"### {name}", "", *as_markdown(inspect.getdoc(cls) or "")]
        lines += ["", *fenced("\n".join(shown), "python")] if shown else []
    return "\n".join(lines) + "\n"


# The command ----------------------------------------------------------------------------------------------------------

PAGES: dict[str, Callable[[], str]] = {"errors.md": errors, "cli.md": cli, "api.md": api, "journal.md": journal}


def main(arguments: list[str]) -> int:
    """Write or compare the pages; return an exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = 0
    for name, make in PAGES.items():
        page, wanted = REFERENCE / name, make()
        found = page.read_text(encoding="utf-8") if page.exists() else ""
        if found.split() == wanted.split():  # terminals and library versions may wrap lines differently
            continue
        if arguments:
            stale += 1
            print(f"docs: {page.relative_to(ROOT)} is out of date; `make docs` writes it", file=sys.stderr)
            difference = difflib.unified_diff(found.splitlines(), wanted.splitlines(), "page", "code", lineterm="", n=1)
            print("\n".join(list(difference)[:40]), file=sys.stderr)
        else:
            REFERENCE.mkdir(parents=True, exist_ok=True)
            page.write_text(wanted, encoding="utf-8", newline="\n")
            print(f"docs: wrote {page.relative_to(ROOT)}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
