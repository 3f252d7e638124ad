"""Every example in the README and the docs runs, and prints what the page says. See `pages.py` for the rules."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pages import Block, blocks, commands

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page
    for page in [*ROOT.glob("README*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/how-to/*.md")]
    if page.stat().st_size
)
MOST_NOT_RUN = 9
"""More blocks than this may not be left out on all pages together."""


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Reader:
    """Somebody who follows one page in an empty folder."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.module = types.ModuleType("page")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "100",
            "NO_COLOR": "1",
        }

    def follow(self, block: Block) -> None:
        if block.file is not None:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language in ("python", "py", "pycon"):
            self.run_python(block)
        elif block.language in ("console", "sh", "bash", "shell"):
            self.run_shell(block)

    def run_python(self, block: Block) -> None:
        place = f"{named(self.page)}:{block.line}"
        if ">>>" in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, {}, place, place, block.line)
            test.globs = self.module.__dict__  # given to the parser, it would be copied, and names would not live on
            said = io.StringIO()
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            assert runner.run(test, out=said.write, clear_globs=False).failed == 0, said.getvalue()
            return
        # Blank lines in front, so that a traceback names the page's own line.
        code = compile("\n" * (block.line - 1) + block.text, str(self.page), "exec", dont_inherit=True)
        exec(code, self.module.__dict__)

    def run_shell(self, block: Block) -> None:
        wanted = commands(block)
        for command in wanted:
            if not command.is_ours:
                continue
            place = f"{named(self.page)}:{command.line}: $ {command.text}"
            done = subprocess.run(
                ["sh", "-c", command.text],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=120,
                check=False,
            )
            printed = (done.stdout + done.stderr).strip()
            expected_code = block.exits if command is wanted[-1] else 0
            assert done.returncode == expected_code, f"{place}\nexit code {done.returncode}\n{printed}"
            if command.output is not None:
                assert same(command.output, printed), (
                    f"{place}\nthe page says:\n{command.output}\nit prints:\n{printed}"
                )


def same(expected: str, printed: str) -> bool:
    """Whether the output is what the page shows, where `...` stands for anything and trailing blanks do not count."""
    tidy = "\n".join(line.rstrip() for line in expected.splitlines())
    pattern = ".*?".join(re.escape(part) for part in tidy.split("..."))
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.splitlines()), re.DOTALL) is not None


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, remark: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(page, tmp_path)
    monkeypatch.setitem(sys.modules, "page", reader.module)
    for block in blocks(page):
        if block.not_run is not None:
            remark.append(f"{named(page)}:{block.line}: not run: {block.not_run}")
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            reader.follow(block)


def test_few_examples_are_left_out() -> None:
    left_out = [f"{named(page)}:{b.line}" for page in PAGES for b in blocks(page) if b.not_run is not None]
    assert len(left_out) <= MOST_NOT_RUN, left_out


def test_the_readme_shows_the_two_commands_first() -> None:
    for page in ROOT.glob("README*.md"):
        shell = [
            command.text for b in blocks(page) if b.language in ("sh", "bash", "console") for command in commands(b)
        ]
        ours = [text for text in shell if text.startswith("python3 bootstrap.py")]
        assert ours[:2] == ["python3 bootstrap.py demo", "python3 bootstrap.py test"], named(page)


# The reader itself ----------------------------------------------------------------------------------------------------

PAGE = """# A page

<!-- file: greet.py -->
```python
print("hello", "world")
```

```python
x = 20
```
Text between.
```python
y = x + 1
```
```console
$ python greet.py
hello ...
$ git clone somewhere
```
<!-- exits: 3 -->
```sh
# a comment
python greet.py | \\
  cat >&2; exit 3
```
<!-- not run: it needs a key -->
```python
raise SystemExit
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    return path


def test_a_page_is_followed_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    reader = Reader(page, tmp_path)
    for block in blocks(page):
        if block.not_run is None:
            reader.follow(block)
    assert reader.module.__dict__["y"] == 21
    assert [block.not_run for block in blocks(page)][-1] == "it needs a key"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("hello ...", "goodbye"), ("exit 3", "exit 4"), ("x + 1", "x + undefined"), ("hello ...", "hello")],
)
def test_an_example_that_does_not_do_what_the_page_says_is_noticed(
    page: Path, tmp_path: Path, right: str, wrong: str
) -> None:
    page.write_text(PAGE.replace(right, wrong), encoding="utf-8")
    reader = Reader(page, tmp_path)
    with pytest.raises((AssertionError, NameError)):  # noqa: PT012 - any block may be the one
        for block in blocks(page):
            if block.not_run is None:
                reader.follow(block)
