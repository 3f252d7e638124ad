"""Nothing gets out of the expression language, and nothing wears the machine out: every attempt is refused, quickly."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable

import pytest

from toolplan.errors import EvaluationError
from toolplan.expressions import ExpressionError, fill, parse_expression, parse_template, render_text
from toolplan.expressions.read import _read_short

from .hostile import ESCAPES, EXHAUSTING, UNREADABLE, nested, scope

SCOPE = scope()
ATTEMPTS = [*ESCAPES, *EXHAUSTING, *UNREADABLE]
SECONDS = 0.1
MEBIBYTES = 50


def attempt(text: str) -> float:
    """Return how long it took to refuse the attempt."""
    _read_short.cache_clear()
    before = time.process_time()
    with pytest.raises((ExpressionError, EvaluationError)) as refusal:
        parse_expression(text).evaluate(SCOPE)
    seconds = time.process_time() - before
    message = str(refusal.value)
    assert message
    assert len(message) < 400
    assert 0 <= refusal.value.start <= refusal.value.end <= len(text)
    return seconds


def test_there_are_more_than_a_hundred_attempts() -> None:
    assert len(ATTEMPTS) == len(set(ATTEMPTS)) > 250


@pytest.mark.parametrize("text", ATTEMPTS, ids=lambda text: text[:40].encode("ascii", "replace").decode())
def test_an_attempt_is_refused_in_a_tenth_of_a_second(text: str) -> None:
    # The best of three: the limit is on the work, and a busy machine can be slow at any.
    assert attempt(text) < SECONDS or attempt(text) < SECONDS or attempt(text) < SECONDS


def test_an_attempt_takes_little_memory() -> None:
    greedy = [text for text in EXHAUSTING if any(sign in text for sign in ("* 10**", "**", "laughs", "[xs]*99"))][::4]
    peaks: dict[str, float] = {}
    tracemalloc.start()
    try:
        for text in greedy:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            attempt(text)
            peaks[text] = (tracemalloc.get_traced_memory()[1] - before) / 2**20
    finally:
        tracemalloc.stop()
    assert {text: peak for text, peak in peaks.items() if peak > MEBIBYTES} == {}


def repeated(text: str, value: object, times: int) -> object:
    """Return what a chain of steps makes of `value`, each applying the expression to the result before."""
    expression = parse_expression(text)
    for _ in range(times):
        value = expression.evaluate({"x": value})  # type: ignore[dict-item]
    return value


def test_a_chain_of_steps_cannot_grow_a_value_without_bound() -> None:
    with pytest.raises(EvaluationError, match="larger than an expression may return"):
        repeated("[x] * 1000", "ha", 10)
    with pytest.raises(EvaluationError, match="larger than an expression may return"):
        repeated("{'a': x, 'b': x}", {}, 30)


def test_a_chain_of_steps_cannot_nest_a_value_without_bound() -> None:
    with pytest.raises(EvaluationError, match="nested more than 200 levels"):
        repeated("[x]", 1, 300)


def test_a_chain_of_steps_cannot_grow_a_number_without_bound() -> None:
    with pytest.raises(EvaluationError, match="more than 3,000 digits"):
        repeated("x * x", 7, 30)
    with pytest.raises(EvaluationError, match="more than 3,000 digits"):
        repeated("x + x", 7, 20_000)


def refusal(compute: Callable[[], object]) -> str:
    """Return what the refusal says, or nothing when there is a value."""
    try:
        compute()
    except (ExpressionError, EvaluationError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("text", ["{x}", "a {x} b", "{x[0]}", "{str(x)}", "{x:>10}", "{x!r}", "{len(x)}"])
def test_templates_survive_values_that_are_nested_deeply(text: str) -> None:
    said = refusal(lambda: fill(parse_template(text), {"x": nested(50_000)}))  # type: ignore[dict-item]
    assert said == "" or "nested" in said or "format" in said


def test_templates_that_are_nested_deeply_are_refused() -> None:
    with pytest.raises(ExpressionError, match="nested more than 200 levels"):
        parse_template(nested(50_000))  # type: ignore[arg-type]
    with pytest.raises(ExpressionError, match="nested more than 200 levels"):
        parse_template({"$literal": nested(50_000)})  # type: ignore[dict-item]


def test_a_value_that_is_nested_deeply_is_not_written_out() -> None:
    with pytest.raises(EvaluationError, match="nested"):
        render_text(nested(50_000))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 10**5000, 1 << 100_000], ids=["nan", "inf", "long", "longer"]
)
@pytest.mark.parametrize(
    "text", ["str(x)", "round(x)", "int(x)", "x + 1", "f'{x:.3f}'", "x < 'a'", "json(x)", "ceil(x)"]
)
def test_values_that_are_no_json_do_no_harm(text: str, value: float) -> None:
    assert len(refusal(lambda: parse_expression(text).evaluate({"x": value}))) < 300


@pytest.mark.parametrize("text", ["'\\d' + x", "0x1for x in y", "1 is 1", "'\\8'", "x is 'a'", "() is ()", "1or x"])
def test_reading_never_warns(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _read_short.cache_clear()
        refusal(lambda: parse_expression(text))


HOSTILE_TEXTS = [
    "{" * 90_000,
    "}" * 90_000,
    "{}" * 45_000,
    "{{" * 45_000,
    "{'" * 45_000,
    '{"' * 45_000,
    "{a " * 30_000,
    "{a+" * 30_000,
    "{a:" * 30_000,
    "{a!r" * 24_000,
    "{[(" * 30_000,
    "{x}" * 20_000,
    '{"a":' * 60_000 + "1" + "}" * 60_000,
    "{f'" * 30_000,
    "{'{'" * 24_000,
    "\\frac{" * 50_000,
    "{a.b " + "c" * 60_000 + "}",
    "{{a" * 30_000 + "}}" * 30_000,
    "{x" + "[0]" * 30_000 + "}",
]


@pytest.mark.parametrize("text", HOSTILE_TEXTS, ids=lambda text: text[:8])
def test_a_template_is_read_in_linear_time(text: str) -> None:
    def seconds(part: str) -> float:
        before = time.process_time()
        parse_template(part)
        return time.process_time() - before

    whole = min(seconds(text), seconds(text))
    assert whole < 2.0
    third = max(seconds(text[: len(text) // 3]), 0.005)
    assert whole / third < 8, "three times the text may take about three times as long"
