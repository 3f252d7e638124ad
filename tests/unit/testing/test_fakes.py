"""Tools made from signatures."""

from __future__ import annotations

import pytest

from plan_tools import TOOLS
from toolplan.errors import ToolFailed, UsageError
from toolplan.plan import Retry
from toolplan.testing import fake_tools


@pytest.mark.parametrize("name", TOOLS.names)
def test_a_signature_is_read_as_it_is_written(name: str) -> None:
    """What a model sees of a tool describes the tool."""
    signature = TOOLS[name].signature
    fake = fake_tools(f"{signature}  pure").tools()[name]
    assert fake.signature == signature
    assert set(fake.parameters["properties"]) == set(TOOLS[name].parameters["properties"])
    assert fake.parameters["required"] == TOOLS[name].parameters["required"]


def test_what_is_declared() -> None:
    fakes = fake_tools(
        """
        # a comment
        a(x: str = "y")  reads things, others:{x}  writes more  idempotent  untrusted
          requires page:open  ensures page:read  takes 2.5 timeout 9 retry 3 max_concurrency 4
        b() -> int  pure  unavailable
        c()
        """.replace("\n        ", "\n")
    )
    a, b, c = fakes.tools()
    assert (a.effects.reads, a.effects.writes) == (("things", "others:{x}"), ("more",))
    assert (a.idempotent, a.untrusted, a.requires, a.ensures) == (True, True, ("page:open",), ("page:read",))
    assert (fakes.seconds("a"), a.timeout_seconds, a.retry, a.max_concurrency) == (2.5, 9, Retry(3), 4)
    assert b.effects.declared
    assert not b.effects.has_effects
    assert b.why_unavailable() == "it is not available here"
    assert not c.effects.declared
    assert fakes.seconds("c") == 1


def test_what_they_do() -> None:
    fakes = fake_tools(
        """
a(x: int, y: str = "z") -> Any  pure
  if x == 9: fails "no {x} for {y}"
  if x > 5: returns {"big": "{x}", "kept": {"$literal": "{x}"}}
  returns "first" then "second" then fails "third"
"""
    )
    a = fakes.tools()["a"]
    assert [a(x=1), a(x=6), a(x=1)] == ["first", {"big": 6, "kept": "{x}"}, "second"]
    for _ in range(2):
        with pytest.raises(ToolFailed, match="third"):
            a(x=1)
    with pytest.raises(ToolFailed, match="no 9 for z"):
        a(x=9)
    assert fakes.tools()["a"](x=1) == "first", "fresh tools begin again"


def test_without_a_word_the_plainest_value() -> None:
    a, b, c = fake_tools(
        'a() -> R {s: str, n: int, f: float, b: bool, l: list[int], o: str | None, e: "x" | "y"}  pure\n'
        "b()  pure\n"
        "c() -> S  pure"
    ).tools()
    assert a() == {"s": "", "n": 0, "f": 0.0, "b": False, "l": [], "o": "", "e": "x"}
    assert b() is None
    assert c() is None
    assert c.returns is None


def test_types_that_have_been_described_can_be_named() -> None:
    a, b = fake_tools("a() -> Row {n: int}  pure\nb(row: Row) -> list[Row]  pure").tools()
    assert a.returns is not None
    assert b.returns == {"type": "array", "items": a.returns}
    assert b.parameters["properties"]["row"] == a.returns


def test_further_arguments() -> None:
    (a,) = fake_tools("a(x: int, **: int) -> int  pure").tools()
    assert a.signature == "a(x: int, **: int) -> int"
    assert a.accepts({"x": 1, "y": 2})
    assert not a.accepts({"x": 1, "y": "z"})


def test_answers_to_questions() -> None:
    fakes = fake_tools('ask_user   returns "yes" then "no"\nask_model  returns "{data[0]}: {question}"')
    person, model = fakes.answer("ask_user"), fakes.answer("ask_model")
    assert person is not None
    assert model is not None
    assert [person({"question": "?"}), person({"question": "?"})] == ["yes", "no"]
    assert model({"question": "what?", "data": ["a"], "returns": {}}) == "a: what?"
    assert fakes.names == ()
    assert fake_tools("").answer("ask_user") is None


def test_later_descriptions_replace_earlier_ones() -> None:
    both = fake_tools("a() -> int  pure  returns 1\nb() -> int  pure").joined(fake_tools("a() -> int  pure  returns 2"))
    assert both.tools()["a"]() == 2
    assert both.names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a(x: int", "expected"),
        ("a(x: int) reads", "what is `reads`"),
        ("a() pure returns nothing", "`returns` needs a JSON value"),
        ('a(x: int)\n  if x >: fails "x"', "in a fake tool"),
        ("a(x: list[int)", "expected"),
    ],
)
def test_what_cannot_be_read(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        fake_tools(text)
