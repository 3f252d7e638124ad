"""How often a `while` may go round."""

from __future__ import annotations

import pytest

from toolplan.plan import While
from unit.parse.python_reading import read, refused

# --- bounds of `while` ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("i = 0\nwhile i < 10:\n    i += 1", 10),
        ("i = 1\nwhile i <= 10:\n    i += 3", 4),
        ("i = 0\nlimit = 7\nwhile i < limit:\n    i = i + 1", 7),
        ("i = 10\nwhile i > 0:\n    i -= 2", 5),
        ("i = 0\nwhile 5 > i:\n    i += 1", 5),
        ("i = 0\nwhile i != 4:\n    i += 1", 4),
        ("i = 0\nwhile x and not y and i < 3:\n    i += 1", 3),
        ("i = 0\nwhile True:\n    i += 1\n    if i >= 3:\n        break", 4),
        ("i = 0\nwhile not done:\n    if i == 5 or failed:\n        break\n    i += 1", 6),
        ("i = 0\nwhile i < len(xs):\n    i += 1", 1000),
        ("while xs:\n    x = xs.pop()", 1000),
        ("xs = []\nwhile len(xs) < 4:\n    xs.append(1)", 4),
        ("while x:  # max_iterations: 12\n    x = f()", 12),
        ("# at most 30 rounds\nwhile x:\n    x = f()", 30),
        ("while x:\n    # 最多 8 次\n    x = f()", 8),
        ("while x:\n    max_iterations(9)\n    x = f()", 9),
    ],
)
def test_bounds_of_while(text, bound):
    loop = next(step for step in read(text).steps if isinstance(step, While))
    assert loop.max_iterations == bound


@pytest.mark.parametrize(
    "text",
    [
        "while True:\n    x = f()",
        "while x:\n    x = f()",
        "i = 0\nwhile i < 5:\n    if x:\n        i += 1",
        "i = 0\nwhile i < 5:\n    i -= 1",
        "while x != y:\n    x = f()",
    ],
)
def test_a_while_without_a_bound_is_refused(text):
    (problem,) = refused(text)
    assert problem.code == "TP153"
