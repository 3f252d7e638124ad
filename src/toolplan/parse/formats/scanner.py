"""`CallScanner`: a reply in, its parts out, while it arrives. One loop over text, marks and what the formats read.

Between marks everything is text and is handed on at once; only an end that may be the beginning of a mark is held back.
At a mark the format's reader goes on (see `cursor` for how it waits), and then the loop again.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from functools import lru_cache

from toolplan.errors import UsageError
from toolplan.parse.formats import (
    deepseek,
    dialects,
    gemma,
    glm,
    harmony,
    hermes,
    invoke,
    keywords,
    kimi,
    listed_json,
    llama,
    llm_compiler,
    loose,
    mistral,
    native,
    qwen_xml,
    react,
    rewoo,
    steps,
    tagged,
)
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener
from toolplan.parse.formats.invented import RESULTS
from toolplan.parse.formats.output import QUOTES
from toolplan.parse.formats.parts import Part, TextPart, ThinkingPart, settled
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.thinking import THINKING, THINKING_ENDS
from toolplan.parse.formats.unread import find_unread
from toolplan.parse.formats.wrappers import TOKENS
from toolplan.parse.meant import is_meant
from toolplan.tools import ToolSet

__all__ = ["CUT", "FORMATS", "QUOTES", "CallScanner", "find_format", "read_calls"]

_ALL = (
    *(native.OPENAI, native.ANTHROPIC, native.GEMINI),
    *(hermes.FORMAT, qwen_xml.FORMAT, qwen_xml.SEED, llama.FORMAT, llama.PYTHONIC, llama.LLAMA4),
    *(mistral.FORMAT, mistral.V3, deepseek.FORMAT, deepseek.V3, invoke.DSML, kimi.FORMAT, glm.FORMAT, invoke.FORMAT),
    *(listed_json.GRANITE, listed_json.PHI4, gemma.FORMAT, harmony.FORMAT, loose.FORMAT),
    *(react.FORMAT, steps.FORMAT, llm_compiler.FORMAT, rewoo.FORMAT),
)
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
"""Every format by its name."""
_NAMES = {name: format for format in _ALL for name in (format.name, *format.also)}

CUT = frozenset(
    ("length", "max_tokens", "MAX_TOKENS", "model_length", "content_filter", "SAFETY", "safety", "incomplete")
)
"""Finish reasons, in the words of all providers, that mean that the reply is not complete."""


def find_format(name: str) -> Format:
    """Return the format of this name. Raises `UsageError`."""
    format = _NAMES.get(name)
    if format is None:
        raise UsageError(f"no format is named {name!r}; there are {', '.join(sorted(_NAMES))}, and auto")
    return format


_SHARED = (
    Opener(("<tool_call>",), tagged.read_any),
    tagged.NAMED,
    dialects.SHARED,
    Opener((*keywords.THOUGHT, *keywords.PLAN), keywords.notes(plan=llm_compiler.read_plan), "line", is_call=False),
    Opener(loose.BARE, loose.read_bare),
)
"""What `auto` reads where several formats have the same mark."""
_OTHERS = (*dialects.OPENERS, *glm.LONGCAT, *invoke.STEP)
"""What `auto` reads besides, where a mark belongs to none of the formats."""
_CLOSINGS = {
    mark: Marks((f"</{name}>",))
    for mark, name in (
        *((f"<{name}>", name) for name in ("tool_call", "tool_calls", "function_calls", "minimax:tool_call")),
        *(("<invoke", "invoke"), ("<function=", "function"), ("<|tool_call|>", "|tool_call|")),
        *(("<tool_call name=", "tool_call"), *((mark, mark[1:-1]) for mark in dialects.CLOSED_BY)),
    )
}
"""What closes a mark for calls, where that is a tag."""
_ALWAYS = (*THINKING, *RESULTS, TOKENS, Opener(loose.FENCES, loose.read_fence, "line", is_call=False))


@lru_cache(maxsize=64)
def _table(name: str) -> tuple[dict[str, Opener], Marks, Marks, frozenset[str], Marks]:
    """Return who reads behind each mark; all marks; those that count anywhere; what needs none; those of calls."""
    more: tuple[Opener, ...] = ()
    if name == "none":
        formats: Iterable[Format] = ()
    elif name in ("auto", "marked"):
        formats = [format for format in _ALL if format.alone]
    else:
        formats = [find_format(name)]
        more = (tagged.NAMED,) if name == "hermes" else ()
    openers: dict[str, Opener] = {}
    for opener in (*_ALWAYS, *more, *(opener for format in formats for opener in format.openers)):
        for mark in opener.marks:
            openers.setdefault(mark, opener)
    if name in ("auto", "marked"):
        openers |= {mark: opener for opener in _SHARED for mark in opener.marks}
        openers = {mark: opener for opener in _OTHERS for mark in opener.marks} | openers
    inner = Marks(mark for mark, opener in openers.items() if opener.at == "anywhere" and mark not in loose.BARE)
    kinds = frozenset(kind for format in formats for kind in format.loose)
    called = Marks(mark for mark in inner.marks if openers[mark].is_call)
    return openers, Marks(openers), inner, kinds, called


@lru_cache(maxsize=1)
def call_marks() -> Marks:
    """Return the marks behind which some format has a call, and that other text hardly has: tags, `Action 1:`."""
    return Marks((*_table("marked")[4].marks, *keywords.NUMBERED_ACTION, *keywords.INLINE_RESULT))


@lru_cache(maxsize=64)
def _line_marks(name: str) -> Marks:
    return keywords.line_marks(*_table(name)[2].marks)


class CallScanner:
    """Reads one reply. `feed` it the text as it arrives, then `close` it; both return the parts that are certain.

    `format="auto"` decides from the text alone; a format's name reads that format and nothing else. `tools` are the
    tools that may be called: with them names and arguments are mended where there is one reading, and a call of another
    tool, or one that does not fit, is a `BrokenCall`.

    Text is given at once, a call when something follows it or the reply ends. The parts depend on the text alone, not
    on how it was cut into chunks, except for where pieces of text and thinking are cut (`settled` joins them).

    Raises `UsageError` for an unknown format, and when used after `close`.
    """

    def __init__(self, format: str = "auto", tools: ToolSet | None = None) -> None:
        name = format if format in ("auto", "marked", "none") else find_format(format).name
        scan = Scan(tools, named=name not in ("auto", "marked"))
        scan.openers, scan.marks, scan.inner_marks, scan.loose, scan.call_marks = _table(name)
        scan.line_marks = _line_marks(name)
        scan.in_plan = name == "marked"
        if scan.in_plan:
            scan.loose -= {"json"}
        self._scan = scan
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._run = _prose(scan)
        self._is_closed = False
        self._said: list[str] | None = [] if name == "auto" and tools is not None else None
        """The text so far, where calls in it that nobody has read can be told."""
        next(self._run)

    @property
    def formats(self) -> tuple[str, ...]:
        """The format of each call so far, by its position."""
        return tuple(self._scan.formats)

    @property
    def has_answered(self) -> bool:
        """Whether the reply says, in the words of its format, that its text is the final answer."""
        return self._scan.style == "answered"

    def feed(self, chunk: str | bytes) -> list[Part]:
        """Read on. Bytes are UTF-8, and may be cut inside a character."""
        if self._is_closed:
            raise UsageError("this scanner is closed; a reply needs a new one")
        text = chunk if isinstance(chunk, str) else self._decoder.decode(chunk)
        if text:
            self._scan.cursor.push(text)
            next(self._run)
        return self._taken()

    def _taken(self) -> list[Part]:
        parts = self._scan.taken()
        if self._said is not None:
            for part in parts:
                if isinstance(part, TextPart):
                    self._said.append(part.text)
                elif isinstance(part, ThinkingPart) and part.all_before:
                    self._said.clear()
        return parts

    def close(self, finish_reason: str | None = None) -> list[Part]:
        """Read what is left: the reply has ended, for this reason. After `length` or the like nothing is mended."""
        if self._is_closed:
            raise UsageError("this scanner is closed; a reply needs a new one")
        self._is_closed = True
        self._scan.cursor.push(self._decoder.decode(b"", final=True))
        self._scan.cursor.closed = True
        self._scan.is_cut = finish_reason in CUT
        for _ in self._run:
            raise AssertionError("a reader waits for more text behind the end")
        self._scan.end()
        parts = self._taken()
        if (
            self._said
            and self._scan.tools is not None
            and (unread := find_unread("".join(self._said), self._scan.tools))
        ):
            self._scan.format = ""
            self._scan.broken(unread[1], unread[0])
            self._scan.end()
            parts += self._scan.taken()
        return parts


def _prose(scan: Scan) -> Reader[None]:
    """Hand on text, and at each mark let its reader go on."""
    cursor, marks, openers = scan.cursor, scan.marks, scan.openers
    plan: _TextPlan | None = None
    while True:
        text, mark = cursor.piece(marks)
        if text:
            scan.text(text)
        if mark:
            opener = openers[mark]
            if opener.at == "line" and not scan.is_blank_line:
                scan.text(mark)
            elif opener.is_call and mark not in loose.BARE and scan.is_spoken_of:
                yield from _quoted(scan, mark)
            else:
                start = cursor.offset - len(mark)
                if plan is not None and mark in THINKING_ENDS:
                    plan.accept()  # if this ends the thinking, the parts so far are taken back together
                    plan = None
                begun = plan is None and opener.is_call and opener.at == "line" and not scan.named
                if begun and mark not in loose.BARE:
                    plan = _TextPlan(scan, mark)
                yield from opener.read(scan, mark, start)
                if plan is not None and plan.is_none:
                    plan.accept()
                    plan = None
        elif cursor.closed:
            if plan is not None:
                plan.end()
            return
        else:
            yield


class _TextPlan:
    """Calls in a format whose marks are words that any text may have, until the end of the reply.

    Only the whole reply tells whether they are meant, or proposed, or an example. What is not meant is text.
    """

    def __init__(self, scan: Scan, mark: str) -> None:
        self._scan, self._mark, self._before = scan, mark, scan.recent
        self._calls = scan.calls
        self._trial = scan.try_out()

    @property
    def is_none(self) -> bool:
        """Whether there was no call after all."""
        return self._scan.calls == self._calls

    def accept(self) -> None:
        self._scan.accept(self._trial)

    def end(self) -> None:
        said = "".join(part.text for part in self._scan.on_trial() if isinstance(part, TextPart))
        if self._scan.style == "answered" or is_meant(self._before, said):
            self.accept()
        else:
            self._scan.reject(self._trial, self._mark)


def _quoted(scan: Scan, mark: str) -> Reader[None]:
    """Hand on a mark that is only spoken of, and what stands between it and the one that closes it, as text."""
    scan.text(mark)
    closing = _CLOSINGS.get(mark)
    if closing is None or (yield from scan.cursor.ahead()) in QUOTES:
        return
    while True:
        text, end = scan.cursor.piece(closing)
        scan.text(text + end)
        if end or scan.cursor.closed:
            return
        yield


def read_calls(
    text: str | bytes, format: str = "auto", tools: ToolSet | None = None, finish_reason: str | None = None
) -> tuple[Part, ...]:
    """Return the parts of a whole reply: text, thinking, calls and broken calls, in order."""
    scanner = CallScanner(format, tools)
    return settled([*scanner.feed(text), *scanner.close(finish_reason)])
