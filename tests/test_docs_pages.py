"""Pages say what is: generated ones match the code, links lead somewhere, files that are named exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "toolplan"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MAPS = [ROOT / "AGENTS.md", ROOT / "docs" / "how-to-read.md", ROOT / "docs" / "design" / "architecture.md"]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def test_the_generated_pages_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "docs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", MAPS, ids=named)
def test_files_that_a_map_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    paths = re.findall(r"(?<![\w/.-])((?:\w[\w.-]*/)+(?:[\w.-]+\.\w+)?|[a-z_]+\.py)(?![\w/])", text)
    assert len(paths) > 10
    missing = {
        path
        for path in paths
        if not any((folder / path).exists() for folder in (ROOT, PACKAGE, page.parent, *subfolders()))
    }
    assert missing == set()


def subfolders() -> list[Path]:
    return [folder for folder in PACKAGE.iterdir() if folder.is_dir()]
