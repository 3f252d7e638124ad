"""A place in a text that is still arriving.

Readers are generators. Where a reader needs text that is not there yet it yields, and goes on when more has come; so it
is written as if the whole text lay before it, and one piece of code reads whole texts and streams. The promise that
makes both the same: what a primitive here returns depends on the text alone, never on where it was cut. It therefore
waits whenever more text could change its answer, and for nothing else.

What has been passed is dropped and never looked at again, so reading takes linear time whatever the chunks are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Cursor", "Extent", "Marks", "Reader"]

T = TypeVar("T")
Reader = Generator[None, None, T]
"""A computation that yields where it waits for more text."""


class Marks:
    """A set of strings to look for; where one is the beginning of another, the longest that is there counts."""

    def __init__(self, marks: Iterable[str]) -> None:
        self.marks = tuple(sorted(set(marks), key=lambda mark: (-len(mark), mark)))
        self.first = frozenset(mark[0] for mark in self.marks)
        self.longest = max(map(len, self.marks), default=0)
        self._begun = frozenset(mark[:n] for mark in self.marks for n in range(1, len(mark)))

    @functools.cached_property
    def _search(self) -> re.Pattern[str]:
        return re.compile(_alternatives(self.marks) or r"(?!)")

    def search(self, text: str, at: int) -> re.Match[str] | None:
        """Return the first mark in `text` from `at` on."""
        return self._search.search(text, at)

    def match(self, text: str, at: int) -> re.Match[str] | None:
        """Return the mark that stands at `at`."""
        return self._search.match(text, at)

    def may_begin(self, text: str, at: int) -> bool:
        """Whether all of the text from `at` on is the beginning of a longer mark."""
        return len(text) - at < self.longest and text[at:] in self._begun

    def held(self, text: str, at: int) -> int:
        """Return where the end of `text` begins that may be the beginning of a mark, or the end."""
        end = len(text)
        for start in range(max(at, end - self.longest + 1), end):
            if text[start] in self.first and text[start:] in self._begun:
                return start
        return end


def _alternatives(marks: Iterable[str]) -> str:
    """Return the pattern of the longest of the marks that is there: beginnings that they share stand in it once."""
    by_first: dict[str, list[str]] = {}
    ends = False
    for mark in marks:
        if mark:
            by_first.setdefault(mark[0], []).append(mark[1:])
        else:
            ends = True
    found: list[str] = []
    for first, rests in by_first.items():
        found.append(re.escape(first) + _alternatives(rests))
    if not found:
        return ""
    whole = found[0] if len(found) == 1 else f"(?:{'|'.join(found)})"
    return f"(?:{whole})?" if ends else whole


@dataclass(frozen=True, slots=True)
class Extent:
    """A value cut out of the text by its brackets. `whole`: they are all closed; else the text or a mark ended it."""

    text: str
    whole: bool
    depth: int


NO_MARKS = Marks(())


class _Sink(list[str]):
    """A list that keeps nothing and hands on what is added."""

    def __init__(self, sink: Callable[[str], None]) -> None:
        super().__init__()
        self._sink = sink

    def append(self, piece: str, /) -> None:
        if piece:
            self._sink(piece)


class Cursor:
    """The text that has arrived and is not passed yet. `at` is the place in `text`."""

    def __init__(self) -> None:
        self.text: str = ""
        self.at = 0
        self.closed = False
        self._dropped = 0
        self._records: list[list[str]] = []

    @property
    def offset(self) -> int:
        """How many characters of the whole text are passed."""
        return self._dropped + self.at

    # --- the text comes and goes -------------------------------------------------------------------------------------

    def push(self, chunk: str) -> None:
        """Add text at the end."""
        self.text = self.text[self.at :] + chunk
        self._dropped += self.at
        self.at = 0

    def take(self, end: int) -> str:
        """Pass the text up to `end`, an index into `text`, and return it."""
        taken = self.text[self.at : end]
        self.at = end
        if self._records:
            self._records[-1].append(taken)
        return taken

    def forget(self) -> None:
        """Drop what was passed, if it is much: who looks at `text` from its beginning has less to look at then."""
        if self.at > _FAR:
            self.push("")

    def record(self) -> None:
        """Begin to note what is passed, for `recorded`. May be nested."""
        self._records.append([])

    def recorded(self) -> str:
        """Return what was passed since the last `record`, and stop noting it."""
        text = "".join(self._records.pop())
        if self._records:
            self._records[-1].append(text)
        return text

    def put_back(self, text: str) -> None:
        """Have text that was just passed stand before the cursor again. Whoever does it bounds how often."""
        left = len(text)
        for noted in reversed(self._records):
            while left and noted:
                last = noted.pop()
                if len(last) > left:
                    noted.append(last[: len(last) - left])
                left = max(left - len(last), 0)
        start = self.at - len(text)
        if start >= 0 and self.text.startswith(text, start):  # it is still there: nothing has to be copied
            self.at = start
            return
        self._dropped = self.offset - len(text)
        self.text = text + self.text[self.at :]
        self.at = 0

    # --- looking ahead -----------------------------------------------------------------------------------------------

    def ahead(self, count: int = 1) -> Reader[str]:
        """Return the next `count` characters, fewer at the end of the text, without passing them."""
        while len(self.text) - self.at < count and not self.closed:
            yield
        return self.text[self.at : self.at + count]

    def mark(self, marks: Marks, *, take: bool = True) -> Reader[str]:
        """Return the mark that stands here and pass it; the empty text when none does."""
        while marks.marks:
            if not self.closed and (self.at == len(self.text) or marks.may_begin(self.text, self.at)):
                yield
                continue
            match = marks.match(self.text, self.at)
            if match is None:
                return ""
            if take:
                self.take(match.end())
            return match.group()
        return ""

    # --- passing -----------------------------------------------------------------------------------------------------

    def while_in(self, run: re.Pattern[str]) -> Reader[str]:
        """Pass and return all characters that `run`, a pattern of repeated single characters, matches."""
        pieces: list[str] = []
        while True:
            match = run.match(self.text, self.at)
            pieces.append(self.take(match.end() if match else self.at))
            if self.at < len(self.text) or self.closed:
                return "".join(pieces)
            yield

    def space(self) -> Reader[str]:
        """Pass and return the white space here."""
        return (yield from self.while_in(_SPACE))

    def until(self, marks: Marks, *, take: bool = True) -> Reader[tuple[str, str]]:
        """Pass the text up to the first mark, and the mark unless told not to; return both.

        Without a mark: all the rest, and the empty text.
        """
        pieces: list[str] = []
        while True:
            piece, mark = self.piece(marks, take=take)
            pieces.append(piece)
            if mark or self.closed:
                return "".join(pieces), mark
            yield

    def piece(self, marks: Marks, *, take: bool = True) -> tuple[str, str]:
        """Pass what is there before the first mark, and the mark if it is complete; return both.

        Never waits: with neither, nothing can be told yet, unless the text is closed.
        """
        match = marks.search(self.text, self.at)
        if match is None:
            return self.take(len(self.text) if self.closed else marks.held(self.text, self.at)), ""
        if not self.closed and len(self.text) - match.start() < marks.longest:
            held = marks.held(self.text, self.at)
            if held <= match.start():  # a longer mark may have begun here, or before
                return self.take(held), ""
        before = self.take(match.start())
        if take:
            self.take(match.end())
        return before, match.group()

    def string(self) -> Reader[str]:
        """Pass and return the rest of a JSON string, behind its opening quote, with the closing one."""
        pieces: list[str] = []
        while True:
            match = _STRINGS['"'].match(self.text, self.at)
            end = match.end() if match else self.at
            if end < len(self.text) and self.text[end] == '"':
                return "".join([*pieces, self.take(end + 1)])
            pieces.append(self.take(len(self.text) if self.closed else end))
            if self.closed:
                return "".join(pieces)
            yield

    def value(
        self, marks: Marks = NO_MARKS, *, calls: bool = False, sink: Callable[[str], None] | None = None
    ) -> Reader[Extent]:
        """Pass and return the JSON value that begins with the bracket here, by its brackets outside of strings.

        Sound JSON ends exactly where it ends. Damaged JSON ends where its brackets do, or at one of `marks` outside of
        a string, which is not passed. With `calls`, the brackets and strings are Python's. `sink` gets the text piece
        by piece instead of it being returned.
        """
        runs = _runs(calls, marks.first)
        pieces: list[str] = [] if sink is None else _Sink(sink)
        depth = 0
        quote = ""
        while True:
            text = self.text
            if quote:
                start = self.at
                end = _STRINGS[quote].match(text, start).end()  # type: ignore[union-attr] - it matches everywhere
                is_cut = end < len(text) and text[end] == "\\"  # the other half of an escape has not arrived
                if end < len(text) and not is_cut:
                    end += 1
                    quote = ""
                elif self.closed:
                    end = len(text)
                pieces.append(self.take(end))
                if not quote:
                    continue
            else:
                match = runs.match(text, self.at)
                end = match.end() if match else self.at
                if end < len(text):
                    ch = text[end]
                    if ch in marks.first:
                        pieces.append(self.take(end))
                        if marks.may_begin(text, end) and not self.closed:
                            yield
                            continue
                        if marks.match(text, end):
                            return Extent("".join(pieces), False, depth)
                        if ch not in "[{(\"'":
                            pieces.append(self.take(end + 1))
                            continue
                    if ch in _STRINGS:
                        quote = ch
                    elif ch in "[{(":
                        depth += 1
                    elif ch in "]})":
                        depth -= 1
                    pieces.append(self.take(end + 1))
                    if quote == "“":
                        quote = "”"
                    if depth <= 0 and not quote:
                        return Extent("".join(pieces), depth == 0, depth)
                    continue
                pieces.append(self.take(end))
            if self.closed:
                return Extent("".join(pieces), False, depth)
            yield


_FAR = 50_000
_SPACE = re.compile(r"\s*")
_STRINGS = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+", re.DOTALL) for quote in ('"', "'", "”")}
_STRINGS["“"] = _STRINGS["”"]
_RUNS: dict[tuple[bool, frozenset[str]], re.Pattern[str]] = {}


def _runs(calls: bool, first: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of what stands between brackets: anything, and whole strings."""
    key = calls, first
    if key not in _RUNS:
        stops = re.escape("".join(sorted({*"[]{}\"'“", *("()" if calls else ""), *first})))
        strings = r"|'(?:[^'\\]++|\\.)*+'" if calls else ""
        _RUNS[key] = re.compile(rf'(?:[^{stops}]++|"(?:[^"\\]++|\\.)*+"{strings})*+', re.DOTALL)
    return _RUNS[key]
