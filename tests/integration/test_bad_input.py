"""Whatever is given as a plan ends in clear words, soon and in little memory: in both notations, and at each limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from plan_tools import TOOLS
from toolplan.check import check
from toolplan.diagnostics import Diagnostic, render_all
from toolplan.errors import PlanRejected
from toolplan.parse import parse
from toolplan.plan import Plan

SECONDS = 2.0
"""How much of the processor's time one text may take, on a slow machine."""
MEMORY_MIB = 300
"""How much a process may grow over its size before, for texts of 10 MB."""

CALL = '{"tool_name": "pay", "arguments": {"account": "A", "amount": 1}}'
LET = '[{"let": {"x": "'
LINE = 'pay(account="A", amount=1)\n'


def many(step: str, count: int) -> str:
    """A JSON array with this text in it many times."""
    return "[" + ",".join([step] * count) + "]"


def argument(text: str) -> str:
    """A JSON plan with this text in it where a value stands."""
    return f'[{{"tool_name": "pay", "arguments": {{"account": {text}, "amount": 1}}}}]'


@dataclass(frozen=True)
class Bad:
    """A text that is no usable plan, the code that says so and what the message must tell."""

    name: str
    text: str
    notation: str
    code: str
    said: str


BAD = [
    # what JSON lets pass or leaves open
    Bad("a key twice", argument('"A", "account": "B"'), "json", "TP109", "`account` is written twice"),
    Bad("a key of the plan twice", f'{{"steps": [{CALL}], "steps": []}}', "json", "TP109", "`steps` is written twice"),
    Bad(
        "a key twice in an expression",
        '[{"let": {"x": "{\'a\': 1, \'a\': 2}"}}]',
        "json",
        "TP116",
        "`a` is written twice",
    ),
    Bad("an argument twice", 'pay(account="A", account="B", amount=1)', "python", "TP163", "`account` twice"),
    Bad("a key twice", 'x = {"a": 1, "a": 2}\nwrite_note(title="a", text=json(x))', "python", "TP116", "written twice"),
    Bad("NaN", argument("NaN"), "json", "TP108", "`NaN` is not a value"),
    Bad("Infinity", argument("-Infinity"), "json", "TP108", "`-Infinity` is not a value"),
    Bad("1e999", argument("1e999"), "json", "TP108", "too large"),
    Bad("5,000 digits", argument("9" * 5_000), "json", "TP108", "too large"),
    Bad("nan", 'pay(account="A", amount=nan)', "python", "TP203", "`nan` is used here"),
    Bad("1e999", 'pay(account="A", amount=1e999)', "python", "TP116", "too large"),
    Bad("5,000 digits", 'pay(account="A", amount=' + "9" * 5_000 + ")", "python", "TP150", "digits"),
    # half a character
    Bad("an escaped half", argument('"a\\ud83d"'), "json", "TP108", "surrogate"),
    Bad("a raw half", argument('"a\ud83d"'), "json", "TP108", "surrogate"),
    Bad("a half in a key", argument('"A", "\\ude00": 1'), "json", "TP108", "surrogate"),
    Bad("a half in an expression", '[{"let": {"x": "\'\\\\ud83d\'"}}]', "json", "TP116", "surrogate"),
    Bad("an escaped half", 'pay(account="a\\ud83d", amount=1)', "python", "TP116", "surrogate"),
    Bad("an escaped half in an f-string", 'pay(account=f"{now}\\ud83d", amount=1)', "python", "TP116", "surrogate"),
    Bad(
        "an escaped half in a key", 'x = {"\\ud83d": 1}\npay(account=json(x), amount=1)', "python", "TP116", "surrogate"
    ),
    Bad("a raw half", 'pay(account="a\ud83d", amount=1)', "python", "TP150", "surrogate"),
    # too long
    Bad("10 MB in one text", argument('"' + "a" * 10_000_000 + '"'), "json", "TP107", "10,000,0"),
    Bad("10 MB of brackets", "[" * 10_000_000, "json", "TP107", "too long"),
    Bad("10 MB, cut off", argument('"' + "{now} " * 1_700_000)[:10_000_000], "json", "TP107", "too long"),
    Bad("10 MB of prose", "words and " * 1_000_000, "json", "TP107", "too long"),
    Bad("10 MB in one text", 'pay(account="' + "a" * 10_000_000 + '", amount=1)', "python", "TP107", "too long"),
    Bad("10 MB of lines", LINE * 370_000, "python", "TP107", "too long"),
    Bad("150 kB of lines", LINE * 5_600, "auto", "TP107", "too long"),
    # too many
    Bad("100,000 steps", many(CALL, 100_000), "json", "TP107", "too long"),
    Bad("100,000 short steps", many("{}", 100_000), "json", "TP104", "list of 100000"),
    Bad("20,000 steps", many(CALL, 20_000), "json", "TP107", "too many steps"),
    Bad("6,000 steps", many(CALL, 6_000), "json", "TP501", "6,000 steps"),
    Bad("100,000 steps", LINE * 100_000, "python", "TP107", "too long"),
    Bad("20,000 short steps", "a=1\n" * 20_000, "python", "TP107", "too many steps"),
    Bad("30,000 holes", argument('"' + "{now} " * 40_000 + '"'), "json", "TP116", "groups in braces"),
    # too deep
    Bad("10,000 lists", argument("[" * 10_000 + "]" * 10_000), "json", "TP107", "too deeply"),
    Bad("10,000 branches", '[{"if": "true", "then": ' * 10_000 + "[]" + "}]" * 10_000, "json", "TP107", "too deeply"),
    Bad("10,000 parentheses", LET + "(" * 4_000 + "1" + ")" * 4_000 + '"}}]', "json", "TP116", "nested"),
    Bad("10,000 lists", f"x = {'[' * 10_000 + ']' * 10_000}", "python", "TP107", "too deeply"),
    Bad("10,000 parentheses", f"x = {'(' * 10_000}1{')' * 10_000}", "python", "TP107", "too deeply"),
    Bad(
        "300 branches", "".join(" " * n + "if now:\n" for n in range(300)) + " " * 300 + LINE, "python", "TP107", "deep"
    ),
    Bad("60 branches", "".join(" " * n + "if now:\n" for n in range(60)) + " " * 60 + LINE, "python", "TP502", "deep"),
]


def told(text: str, notation: str) -> tuple[tuple[Diagnostic, ...], str]:
    """Return the diagnostics for a text that is refused, and the text that a model gets."""
    with pytest.raises(PlanRejected) as rejected:  # noqa: PT012 - either of the two may refuse it
        plan = parse(text, notation, TOOLS)  # type: ignore[arg-type]
        assert isinstance(plan, Plan)
        check(plan, TOOLS)
    found = rejected.value.diagnostics
    return found, render_all(found, rejected.value.source)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.notation}: {bad.name}")
def test_bad_input_is_told_soon_and_in_few_words(bad: Bad) -> None:
    start = time.process_time()
    found, drawn = told(bad.text, bad.notation)
    assert time.process_time() - start < SECONDS
    assert found[0].code == bad.code
    assert bad.said in found[0].message, found[0].message
    assert len(drawn) < 2_000


MANY = [
    argument(f"[{'NaN,' * 100_000}1]"),
    argument(many('{"a": 1, "a": 2}', 100_000)),
    argument('"A", ' + '"a": 1, "a": 2, ' * 100_000 + '"b": 1'),
    many('{"tool_name": "nope", "arguments": {"x": "{y}"}}', 5_000),
    many('{"foo": 1}', 5_000),
    "[] " * 100_000,
    "see [1] and {2} " * 20_000,
    (CALL + "\n") * 3_000,
    "```json\n" * 100_000,
    '{"a":' * 200_000,
    "".join(f"x{n} = nope(a=y{n})\n" for n in range(4_000)),
    "```python\nx = 1\n```\n" * 20_000,
    "a = " * 20_000 + "1",
]


@pytest.mark.parametrize("text", MANY, ids=lambda text: f"{text[:40]!r} of {len(text)}")
def test_many_mistakes_take_no_longer_than_one(text: str) -> None:
    """A reply that is 2 MB of mistakes must not keep anybody waiting, nor be answered with as much."""
    start = time.process_time()
    found: tuple[Diagnostic, ...] = ()
    drawn = ""
    try:
        plan = parse(text, "auto", TOOLS)
        if isinstance(plan, Plan):
            check(plan, TOOLS)
    except PlanRejected as rejected:
        found = rejected.diagnostics
        drawn = render_all(found, rejected.source)
    assert len(found) <= 210
    assert len(drawn) < 200_000
    assert time.process_time() - start < 2 * SECONDS


GROWTH = """
import resource, sys
from plan_tools import TOOLS
from toolplan.check import check
from toolplan.diagnostics import render_all
from toolplan.errors import PlanRejected
from toolplan.parse import parse
from toolplan.plan import Plan

with open(sys.argv[1], encoding="utf-8", errors="surrogatepass") as file:
    text = file.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    plan = parse(text, "auto", TOOLS)
    if isinstance(plan, Plan):
        check(plan, TOOLS)
except PlanRejected as rejected:
    render_all(rejected.diagnostics, rejected.source)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // (1024 if sys.platform == "linux" else 1024 * 1024))
"""

LARGE = {
    "one text": argument('"' + "a" * 10_000_000 + '"'),
    "numbers": argument(f"[{'1,' * 900_000}1]"),
    "doubled keys": argument('"A", ' + '"a": 1, "a": 2, ' * 110_000 + '"b": 1'),
    "expression": LET + "1+" * 900_000 + '1"}}]',
    "holes": argument('"' + "{now} " * 300_000 + '"'),
    "program": LINE * 370_000,
    "brackets": "[" * 1_900_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_input_takes_bounded_memory(name: str, tmp_path: Path) -> None:
    """Measured in a process of its own, whose high-water mark is nobody else's."""
    file = tmp_path / "reply.txt"
    file.write_text(LARGE[name], encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(file)], capture_output=True, text=True, env=environment, check=True
    )
    assert int(done.stdout) < MEMORY_MIB


def test_a_plan_at_the_limits_is_read_and_checked() -> None:
    """What is allowed must work: the limits are not so low that they never hold, nor so high that they cannot."""
    start = time.process_time()
    largest = parse(many(CALL, 5_000), "json", TOOLS)
    assert isinstance(largest, Plan)
    assert len(check(largest, TOOLS).plan.steps) == 5_000
    long = parse(argument(json.dumps("a" * 1_900_000)), "json", TOOLS)
    assert isinstance(long, Plan)
    check(long, TOOLS)
    program = parse(LINE * 3_700, "auto", TOOLS)
    assert isinstance(program, Plan)
    assert len(check(program, TOOLS).plan.steps) == 3_700
    assert time.process_time() - start < 2 * SECONDS
