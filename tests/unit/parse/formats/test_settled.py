"""The parts of a whole reply, out of the pieces of a stream."""

from __future__ import annotations

from toolplan.parse.formats import CallPart, TextPart, ThinkingPart, settled

CALL = CallPart(0, "call_0", "f", {})


def test_neighbours_are_joined() -> None:
    pieces = [TextPart("a"), ThinkingPart(""), TextPart("b"), TextPart(""), ThinkingPart("c"), ThinkingPart("d"), CALL]
    assert settled(pieces) == (TextPart("ab"), ThinkingPart("cd"), CALL)
    assert settled([TextPart("a"), CALL, TextPart("b")]) == (TextPart("a"), CALL, TextPart("b"))
    assert settled([]) == settled([TextPart(""), ThinkingPart("")]) == ()


def test_what_was_before_a_late_end_of_thinking_is_thinking() -> None:
    late = ThinkingPart("", True)
    assert settled([TextPart("a"), CALL, TextPart("b"), late, ThinkingPart("c"), TextPart("d")]) == (
        ThinkingPart("abc"),
        TextPart("d"),
    )
    assert settled([CALL, late, TextPart("d")]) == (TextPart("d"),)
    assert settled([TextPart("a"), late, late]) == (ThinkingPart("a"),)
    assert settled([late, TextPart("a"), late, CALL]) == (ThinkingPart("a"), CALL)


def test_many_pieces_are_looked_at_once() -> None:
    class Counted(str):
        joined = 0

        def __add__(self, other: str) -> str:
            Counted.joined += len(self)
            return Counted(str.__add__(self, other))

    assert settled([TextPart(Counted("x")) for _ in range(1000)]) == (TextPart("x" * 1000),)
    assert Counted.joined == 0
