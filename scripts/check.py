"""Everything a change must pass before it is handed on, in the order that fails fastest.

    python scripts/check.py                 all of it, with the fast tests (not those marked slow, no properties)
    python scripts/check.py --no-tests      all of it, without tests (CI runs every test on its own)

Each step runs whatever the ones before it said, so that one look shows everything; any failure gives exit code 1.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"

STEPS = {
    "format": [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."],
    "lint": [PYTHON, "-m", "ruff", "check", "--quiet", "."],
    "contracts": [PYTHON, "-c", LINT_IMPORTS, "--no-cache"],
    "docs": [PYTHON, "scripts/docs.py", "--check"],
    "types": [PYTHON, "-m", "pyright"],
    "tests": [PYTHON, "-m", "pytest", "-m", "not slow", "--ignore=tests/properties"],
}


def main(arguments: list[str]) -> int:
    """Run the steps and return an exit code."""
    if unknown := [argument for argument in arguments if argument != "--no-tests"]:
        print(f"check: unknown argument {unknown[0]}; the only one is --no-tests", file=sys.stderr)
        return 2
    failed: list[str] = []
    for name, command in STEPS.items():
        if name == "tests" and "--no-tests" in arguments:
            continue
        started = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
        verdict = "ok" if done.returncode == 0 else "FAILED"
        print(f"check: {name} {verdict} ({time.perf_counter() - started:.1f} s)", flush=True)
        if done.returncode != 0:
            failed.append(name)
    if failed:
        print(f"check: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
