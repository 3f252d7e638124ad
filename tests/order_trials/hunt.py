"""Try random plans until one shows that something is wrong: `python -m order_trials.hunt BEGIN END`.

Exit code 0 when nothing was found, 1 when something was, whatever it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Any

from order_trials.agreement import Refused, cancelled, left_behind, trial
from order_trials.claims import disagreement, random_trial

__all__ = ["KINDS", "hunt"]


def _written_order(rng: Random) -> Any:
    return trial(rng).difference


def _independent(rng: Random) -> Any:
    return trial(rng, failure="independent").difference


def _early(rng: Random) -> Any:
    return trial(rng, speculate=True).difference


def _explained(rng: Random) -> Any:
    return disagreement(*random_trial(rng))


KINDS: dict[str, Callable[[Random], Any]] = {
    "written order": _written_order,
    "early": _early,
    "independent": _independent,
    "explained": _explained,
    "left behind": left_behind,
    "cancelled": cancelled,
}


def hunt(begin: int, end: int) -> str | None:
    """Return the first thing that is wrong in the trials with these numbers, None when nothing is."""
    for seed in range(begin, end):
        for name, kind in KINDS.items():
            if name in ("explained", "left behind", "cancelled") and seed % 3:
                continue
            try:
                fault = kind(Random(seed))
            except Refused:
                continue
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            if fault is not None:
                return f"{name}, seed {seed}: {str(fault).splitlines()[0][:100]}"
    return None


if __name__ == "__main__":
    found = hunt(int(sys.argv[1]), int(sys.argv[2]))
    print(found or "nothing")
    sys.exit(1 if found else 0)
