"""Remove the rules of the order one at a time, and see that some test notices each removal.

    python scripts/mutate_order.py [WORD ...] [--plans N]

Each rule (`tests/order_trials/mutants.py`) is removed in a copy of the source. There the unit tests about order are
run, then random plans, then the conformance cases, until something fails. Prints a table; exits with 1 when a removal
goes unnoticed. Takes some minutes; with words only the rules that contain one of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from order_trials.mutants import MUTANTS, Mutant  # noqa: E402

QUICK = ("tests/unit/schedule", "tests/unit/explain")
SLOW = ("tests/test_conformance.py", "-k", "test_a_case")
PATIENCE = 300


def main() -> int:
    """Try the mutants; return the exit code."""
    parser = argparse.ArgumentParser(description="Remove rules of the order; some test must notice each.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only rules that contain one of these words")
    parser.add_argument("--plans", type=int, default=400, help="random plans for each, before the other tests")
    options = parser.parse_args()
    chosen = [each for each in MUTANTS if not options.words or any(word in each.rule for word in options.words)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if fault := _test(source, *QUICK) or _test(source, *SLOW):
            raise SystemExit(f"with nothing removed, a test fails already: {fault}")
        for mutant in chosen:
            begun = time.perf_counter()
            noticed = attempt(mutant, source, options.plans)
            missed += noticed is None
            seconds = time.perf_counter() - begun
            print(f"{mutant.rule:<75}  {seconds:5.1f} s  {noticed or 'NOBODY NOTICED'}", flush=True)
    print(f"\n{len(chosen) - missed} of {len(chosen)} removed rules were noticed")
    return 1 if missed else 0


def attempt(mutant: Mutant, source: Path, plans: int) -> str | None:
    """Return what noticed that the rule is gone, None when nothing did."""
    file = source / "toolplan" / mutant.file
    whole = file.read_text(encoding="utf-8")
    if whole.count(mutant.old) != 1:
        print(f"{mutant.file} holds the text of this rule {whole.count(mutant.old)} times, not once:")
        return None
    file.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        if failed := _test(source, *QUICK):
            return failed
        hunted = run(source, "-m", "order_trials.hunt", "0", str(plans))
        if hunted.returncode:
            return (hunted.stdout.strip().splitlines() or hunted.stderr.strip().splitlines() or ["it never ends"])[-1]
        return _test(source, *SLOW)
    finally:
        file.write_text(whole, encoding="utf-8")


def _test(source: Path, *tests: str) -> str | None:
    """Return the first of the tests that fails, None when none does."""
    tested = run(source, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests)
    failed = [line for line in tested.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else None


def run(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the changed source. What never ends has noticed, too."""
    path = os.pathsep.join([str(source), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    try:
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "it never ends", "")


if __name__ == "__main__":
    sys.exit(main())
