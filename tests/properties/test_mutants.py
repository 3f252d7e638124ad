"""Every rule of the order can be removed, and removing it is noticed. `scripts/mutate_order.py` tries all of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from order_trials.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from mutate_order import attempt  # noqa: E402

SOME = [
    "an access conflicts with an earlier write of what is below it",
    "an effect waits for what may fail before it",
    "nothing begins behind an end that is not decided",
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_the_rule_is_where_the_list_says(mutant: Mutant) -> None:
    source = (ROOT / "src" / "toolplan" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, f"mend the entry of {mutant.file} in tests/order_trials/mutants.py"
    assert mutant.new not in ("", mutant.old) or mutant.old.endswith("\n")


@pytest.mark.parametrize("rule", SOME)
def test_a_removed_rule_is_noticed(rule: str, tmp_path: Path) -> None:
    (mutant,) = [each for each in MUTANTS if each.rule == rule]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    assert attempt(mutant, tmp_path / "src", plans=50)
