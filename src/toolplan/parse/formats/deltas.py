"""Tool calls and usage of OpenAI-compatible servers, put right: in streams and in whole replies.

Servers that speak OpenAI's chat completions agree on little about tool calls. What is put right here, whoever sends it,
because most of it has been seen at several of them and moves from release to release:

    index     missing, or the same for all calls         id         missing, repeated, new with every piece
    name      repeated with every piece, or in pieces    arguments  an object, or sent a second time at the end
    a call    whole in one piece, or in `function_call`  usage      in every chunk (a running total), or in none

`StreamedCalls` gives each piece the index of its call, its id and its name once. Which call a piece belongs to is
decided by its id first, then by its index; a piece that names a tool after the arguments before it were complete starts
another call whatever its index says. Arguments are never repaired here, only kept apart.

Two calls may be the same in every word, as two rolls of a die are. What tells them from one call that is sent twice is
their position: two in one chunk are two, and so are two in two chunks unless an id or an index says that they are one.
A chunk that repeats all of several calls, in order, under no other ids, is the whole sent again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

__all__ = ["StreamedCalls", "UsageReports", "whole_message"]


class _Completeness:
    """Notices when text that arrives in pieces has been one whole JSON object or array."""

    __slots__ = ("_depth", "_escaped", "_in_text", "complete")

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escaped = False
        self.complete = False

    def feed(self, text: str) -> None:
        for character in text:
            if self._escaped:
                self._escaped = False
            elif self._in_text:
                if character == "\\":
                    self._escaped = True
                elif character == '"':
                    self._in_text = False
            elif character == '"':
                self._in_text = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                self.complete = self.complete or self._depth == 0


@dataclass(slots=True)
class _Call:
    index: object
    id: str
    name: str
    arguments: str = ""
    named_again: bool = False
    state: _Completeness = field(default_factory=_Completeness)

    @property
    def may_end_here(self) -> bool:
        """Whether what has arrived may be all of the call."""
        return self.state.complete or not self.arguments.strip()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece as it came."""

    index: object
    id: str
    name: str
    arguments: str

    @classmethod
    def of(cls, delta: Mapping[str, Any]) -> _Piece:
        function = _mapping(delta.get("function")) or delta
        arguments = arguments_text(function.get("arguments"))
        return cls(delta.get("index"), _text(delta.get("id")), _text(function.get("name")), arguments)

    def repeats(self, call: _Call) -> bool:
        """Whether this is the whole of a call that has come before."""
        same_label = self.id in ("", call.id) and self.index in (None, call.index)
        return self.name == call.name and same_label and _is_same(self.arguments or "{}", call.arguments or "{}")


class StreamedCalls:
    """Reads the tool-call pieces of a stream and gives them indexes, ids and names that hold."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def put_right(self, deltas: Sequence[object]) -> list[dict[str, Any]]:
        """Return the pieces as a well-behaved server would have sent them; a piece that says nothing is left out."""
        given = [_Piece.of(cast("Mapping[str, Any]", delta)) for delta in deltas if isinstance(delta, Mapping)]
        if self._is_all_again(given):
            return []
        named: list[_Call] = []
        pieces = [self._put_right(piece, named) for piece in given]
        return [piece for piece in pieces if piece is not None]

    @property
    def whole(self) -> list[tuple[str, str, str]]:
        """The calls so far, as far as they have come: name, arguments as text, id."""
        return [(call.name, call.arguments, call.id) for call in self._calls]

    @property
    def under_one_index(self) -> frozenset[int]:
        """The positions of the calls that came under the index of an earlier one."""
        given = [call.index for call in self._calls]
        return frozenset(n for n, index in enumerate(given) if index is not None and index in given[:n])

    def _is_all_again(self, pieces: Sequence[_Piece]) -> bool:
        """Whether several pieces are all calls so far, whole, and no ids say otherwise."""
        return (
            len(pieces) == len(self._calls) > 1
            and all(piece.repeats(call) for piece, call in zip(pieces, self._calls, strict=True))
            and all(call.state.complete or not call.arguments for call in self._calls)
        )

    def _put_right(self, given: _Piece, named: list[_Call]) -> dict[str, Any] | None:
        """Return a piece as it should be. `named` are the calls that this chunk has named; it is added to them."""
        index, id, name, arguments = given.index, given.id, given.name, given.arguments
        call = self._owner(index, id, name, arguments)
        is_named_again = call is not None and name == call.name and any(call is each for each in named)
        if is_named_again and call is not None and (call.state.complete or not arguments.strip()):
            call = None  # twice in one chunk, both as whole as they will be
        if call is not None and call.named_again and arguments.lstrip().startswith("{"):
            # Its name came again after its arguments were complete, and now come other arguments: the next call.
            name, id, call = call.name, "", None if not _is_same(arguments, call.arguments) else call
        piece: dict[str, Any] = {"type": "function", "function": {}}
        if call is None:
            if not name:
                return None
            call = _Call(index, id, name)
            self._calls.append(call)
            taken = {other.id for other in self._calls[:-1]}
            if id and id not in taken:
                piece["id"] = id
            piece["function"]["name"] = name
        else:
            call.named_again = call.named_again or (bool(name) and call.state.complete)
            if name and name != call.name and not call.arguments:
                call.name += name
                piece["function"]["name"] = name
            if id and not call.id and all(other.id != id for other in self._calls):
                call.id = piece["id"] = id
        if name:
            named.append(call)
        piece["index"] = next(number for number, each in enumerate(self._calls) if each is call)
        if call.state.complete and _is_same(arguments, call.arguments):
            arguments = ""
        call.arguments += arguments
        call.state.feed(arguments)
        piece["function"]["arguments"] = arguments
        return piece

    def _owner(self, index: object, id: str, name: str, arguments: str) -> _Call | None:
        """Return the call that a piece continues, or None when it starts another one."""
        if not self._calls:
            return None
        at_index = next((call for call in reversed(self._calls) if index is not None and call.index == index), None)
        if id:
            named = [call for call in self._calls if call.id == id and (index is None or call.index == index)]
            if named and not self._starts_again(named[-1], name, arguments):
                return named[-1]
            if at_index is None or named:
                return None
            # Another id at the same index: another call, unless the server makes up an id for every piece.
            return at_index if not name or (name == at_index.name and not at_index.may_end_here) else None
        if at_index is not None:
            return None if self._starts_again(at_index, name, arguments) else at_index
        last = self._calls[-1]
        if not name:
            return last
        return last if index is None and name == last.name and not last.may_end_here else None

    @staticmethod
    def _starts_again(call: _Call, name: str, arguments: str) -> bool:
        """Whether a piece that looks like more of `call` is the start of the next call."""
        if not name or not call.state.complete:
            return False
        return name != call.name or (bool(arguments.strip()) and not _is_same(arguments, call.arguments))


def _is_same(again: str, arguments: str) -> bool:
    """Whether the arguments are sent a second time, whole, perhaps written differently."""
    if not again.strip():
        return False
    try:
        return json.loads(again) == json.loads(arguments)
    except ValueError:
        return False


def arguments_text(arguments: object) -> str:
    """Return arguments as JSON text, in which way ever they came."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def whole_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return an assistant's message of a reply that was not streamed, with its calls as the protocol has them."""
    fields = dict(message)
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        legacy = _mapping(message.get("function_call"))
        calls = [{"function": legacy}] if legacy and _text(legacy.get("name")) else []
    fields.pop("function_call", None)
    right: list[dict[str, Any]] = []
    for call in cast("list[object]", calls):
        outer = _mapping(call)
        function = _mapping(outer.get("function")) or outer
        name = _text(function.get("name"))
        if not name:
            continue
        # Ids are made up, and repeated ones told apart, where the reply is read.
        called = {"name": name, "arguments": arguments_text(function.get("arguments"))}
        right.append({"id": _text(outer.get("id")), "type": "function", "function": called})
    fields["tool_calls"] = right or None
    fields["role"] = "assistant"
    fields.setdefault("content", None)
    return fields


class UsageReports:
    """Keeps one report of usage out of however many a stream sends: the last running total, whole."""

    def __init__(self) -> None:
        self.total: dict[str, Any] | None = None

    def hear(self, usage: object) -> None:
        """Take a chunk's usage into account. Reports that say nothing, or less than before, change nothing."""
        report = dict(_mapping(usage))
        if _tokens(report) and _tokens(report) >= _tokens(self.total or {}):
            self.total = report


def _tokens(report: Mapping[str, Any]) -> int:
    counts = (report.get(key) for key in ("prompt_tokens", "completion_tokens"))
    return sum(count for count in counts if isinstance(count, int))


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
