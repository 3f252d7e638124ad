"""Anything at all given as a program ends in a plan or a refusal."""

from __future__ import annotations

import random
import re
import time

import pytest

from toolplan.diagnostics import Source, load_catalogue, render
from toolplan.errors import PlanRejected
from toolplan.parse.python_notation import read_program
from toolplan.plan import Plan
from toolplan.show import canonical
from unit.parse.python_pairs import PAIRS
from unit.parse.python_programs import PROGRAMS
from unit.parse.python_reading import refused, replies

# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 5_000,
        "x = " + "[" * 90 + "]" * 90,
        "x = " + "-" * 50_000 + "1",
        "x = " + "f(a=" * 150 + "1" + ")" * 150,
        "x = " + " + ".join(["a"] * 3_000),
        "x = a" + ".b" * 20_000,
        "x = " + "not " * 20_000 + "a",
        "x = " + "f'{" * 500,
        "x = " + "lambda: " * 5_000 + "1",
        "".join("  " * i + "if a:\n" for i in range(60)) + "  " * 60 + "f()",
        "if a:\n    f()\n" + "".join(f"elif a == {i}:\n    f()\n" for i in range(500)),
        "x = '" + "a" * 200_000 + "'",
        "x = 1\0",
        "x = '\ud800'",
        "x = " + "9" * 5_000,
        "x = 1e999",
        "\x0c\r\x0b",
        "f(" + ", ".join(f"a{i}=1" for i in range(300)) + ")",
        "a = " * 2_000 + "1",
        "x = b'1' + 1j",
        "# -*- coding: latin-1 -*-\nx = 'é'\nf(a=x)",
        "\ufeffx = f()",
        "x = f(a=1)" + "\n" * 50_000,
    ],
)
def test_hostile_programs_end_in_a_plan_or_a_refusal(text):
    try:
        read_program(Source(text))
    except PlanRejected as rejected:
        for problem in rejected.diagnostics:
            render(problem, rejected.source)


def test_a_program_with_too_many_steps_is_refused():
    (problem,) = refused("\n".join(["f()"] * 10_001))
    assert problem.code == "TP107"


def test_the_cost_of_reading_grows_with_the_length(remark):
    def seconds(count):
        text = "\n".join(f'r{i} = f(x=r{i - 1}.a, y=f"值{{r{i - 1}.b}}")\nxs.append(r{i})' for i in range(1, count))
        source = Source("r0 = f()\nxs = []\n" + text)
        best = 9.0
        for _ in range(3):
            start = time.process_time()
            read_program(source)
            best = min(best, time.process_time() - start)
        return best

    short, long = seconds(50), seconds(500)
    remark.append(f"Python notation: 100 steps {short * 1000:.1f} ms, 1,000 steps {long * 1000:.1f} ms")
    assert long < 25 * short


PIECES = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "==",
    ".",
    "*",
    "**",
    "-",
    "+",
    "#",
    "'",
    "in",
    "if",
    "else",
    "for",
    "while",
    "def",
    "return",
    "lambda",
    "await",
    "async",
    "not",
    "and",
    "or",
    "is",
    "None",
    "True",
    "import",
    "try:",
    "except:",
    "yield",
    ":=",
    ";",
    "@",
    "->",
    "...",
    "0",
    "1e999",
    "x.y",
    "f(a=1)",
    "ask_model(",
    "cannot(",
    "del",
    "with",
    "class",
    "break",
    "continue",
    "xs.append(",
    "d[k]",
    "中文",
    "（",
    "“",
    "{x}",
    "{{",
    "}}",
    "!r",
    ":>5",
    "0x",
    "1_000",
    "_",
    "__x__",
    "$",
    "?",
    "`",
    "~",
    "<<",
    "//=",
    "match",
    "case",
]
PIECES += ['"', 'f"', "f'''", "\\", "\n", "\t", "\r", "\0", "\ud800"]


def mutated(text, chance):
    """Return the text with a few random changes."""
    for _ in range(chance.randint(1, 4)):
        lines = text.split("\n")
        at = chance.randrange(len(text) + 1)
        match chance.randrange(6):
            case 0:
                text = text[:at] + chance.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + chance.randint(1, 8) :]
            case 2:
                lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
                text = "\n".join(lines)
            case 3:
                del lines[chance.randrange(len(lines))]
                text = "\n".join(lines)
            case 4:
                other = chance.randrange(len(text) + 1)
                text = text[:at] + text[min(at, other) : max(at, other)][:40] + text[at:]
            case _:
                words = list(re.finditer(r"\w+", text))
                if words:
                    word = chance.choice(words)
                    text = text[: word.start()] + chance.choice(words).group() + text[word.end() :]
    return text


def test_mutated_programs_end_in_a_plan_or_a_refusal():
    chance = random.Random(20260318)
    texts = [*PROGRAMS.values(), *(program for program, _ in PAIRS.values())]
    texts += [story.wrong for code, story in load_catalogue().items() if "TP150" <= code < "TP200"]
    texts += [text for _, text in replies("zh_python.jsonl")]
    read_count = 0
    for _ in range(3_000):
        text = mutated(chance.choice(texts), chance)
        try:
            plan = read_program(Source(text), None if chance.random() < 0.5 else {"f", "get"})
        except PlanRejected as rejected:
            problems = rejected.diagnostics
        else:
            problems = None
            read_count += 1
            if isinstance(plan, Plan):
                canonical(plan)
        if problems is not None:
            assert problems, text
            for problem in problems:
                assert problem.place.start is not None, text
                render(problem, Source(text))
    assert 300 < read_count < 2_700
