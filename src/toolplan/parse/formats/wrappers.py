"""Marks that mean nothing by themselves: around several calls, behind one, or at the end of a reply."""

from __future__ import annotations

from toolplan.diagnostics import formats as say
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Opener
from toolplan.parse.formats.scan import Scan

__all__ = ["TOKENS", "after_calls", "around_calls", "closing_marks", "pass_after_calls", "stray_values"]


def around_calls(*marks: str, inner: Marks) -> Opener:
    """Return the opener for marks that begin a group of calls. Where none of `inner` follows they are text."""

    def read(scan: Scan, mark: str, start: int) -> Reader[None]:
        gap = yield from scan.cursor.space()
        if (yield from scan.cursor.mark(inner, take=False)):
            scan.mark_passed()
        else:
            scan.text(mark + gap)

    return Opener(marks, read)


def pass_after_calls(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Pass a mark that ends a group of calls. Before any call it is text."""
    if scan.calls:
        scan.mark_passed()
    else:
        scan.text(mark)
    return
    yield


def after_calls(*marks: str) -> Opener:
    """Return the opener for marks that end a group of calls. Before any call they are text."""
    return Opener(marks, pass_after_calls, is_call=False)


def closing_marks(*marks: str) -> Opener:
    """Return the opener for marks that close one call, where none is open."""

    def read(scan: Scan, mark: str, start: int) -> Reader[None]:
        if scan.calls:
            scan.left_over()
        return pass_after_calls(scan, mark, start)

    return Opener(marks, read, is_call=False)


def stray_values(opening: tuple[str, ...], closing: tuple[str, ...], closers: Marks) -> tuple[Opener, ...]:
    """Return the openers for marks around a bare value that stand outside of any call.

    An opening one at the beginning of a line belongs to a call whose own beginning is damaged: all of it, up to one of
    `closers`, is a broken call. A closing one directly behind a call shows that this was a text in such a value.
    """

    def begun(scan: Scan, mark: str, start: int) -> Reader[None]:
        yield from scan.cursor.until(closers)
        problem = f"`{mark.strip()}` stands outside of any call"
        scan.broken(say.broken_call(scan.place(start), None, problem), None)

    def ended(scan: Scan, mark: str, start: int) -> Reader[None]:
        if scan.calls:
            scan.left_over()
            scan.doubt()
        return pass_after_calls(scan, mark, start)

    return Opener(opening, begun, "line", is_call=False), Opener(closing, ended, is_call=False)


_TOKENS = Marks(
    (
        *("<|im_end|>", "<|eom_id|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>", "</s>", "<end_of_turn>"),
        *("<｜end▁of▁sentence｜>", "<|end|>", "<|return|>", "<|user|>", "<|observation|>", "<turn|>"),
    )
)


def _token(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Pass tokens that end a reply: dropped behind a call and at the end, text anywhere else."""
    if scan.follows_call:
        return
    passed = mark
    while True:
        passed += yield from scan.cursor.space()
        more = yield from scan.cursor.mark(_TOKENS)
        if not more:
            break
        passed += more
    if (yield from scan.cursor.ahead()):
        scan.text(passed)


TOKENS = Opener(_TOKENS.marks, _token, is_call=False)
"""Special tokens that a server may leave in the text."""
