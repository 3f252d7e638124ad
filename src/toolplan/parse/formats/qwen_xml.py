"""Qwen3-Coder's XML-like format, and Seed-OSS, which has it in other tags. Values stand bare.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Oslo
    </parameter>
    </function>
    </tool_call>

The outer tag is often forgotten, so `<function=` begins a call too; followed by JSON it is Llama 3.1's own format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import Refused
from toolplan.parse.formats.bare_values import BareCall, fits, without_line_ends
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener
from toolplan.parse.formats.hermes import write_results
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.parse.formats.wrappers import closing_marks, stray_values

__all__ = ["FORMAT", "SEED", "read", "read_function"]

OPENERS = Marks(("<tool_call>", "<function=", "<seed:tool_call>"))
OUTER = Marks(("</tool_call>", "</seed:tool_call>"))
_FUNCTION = Marks(("<function=",))
_TAG_END = Marks((">",))
_NAME = re.compile(r"[^<>\n]*")


def _name(scan: Scan) -> Reader[str]:
    """Pass a name and the end of its tag."""
    name = (yield from scan.cursor.while_in(_NAME)).strip().strip("\"'")
    yield from scan.cursor.mark(_TAG_END)
    return name


def _key(scan: Scan) -> Reader[tuple[str, bool | None] | None]:
    name = yield from _name(scan)
    return (name, None) if name else None


CALL = BareCall(
    begin=Marks(("<parameter=",)),
    key=_key,
    value_end=Marks(("</parameter>",)),
    end=Marks(("</function>",)),
    openers=OPENERS,
    closers=OUTER,
    trim=without_line_ends,
)


def read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind the outer tag. It may hold several functions."""
    scan.format = "qwen_xml"
    at = start
    gap = yield from scan.cursor.space()
    if not (yield from scan.cursor.mark(_FUNCTION)):
        text, _ = yield from scan.cursor.until(OUTER)
        ended = not text.strip() and not (yield from scan.cursor.ahead())
        refused = Refused("cut") if ended else Refused("broken", "expected `<function=NAME>`")
        scan.damaged(FoundValue(gap + text, None, refused), start, OPENERS, OUTER)
        return
    while True:
        yield from read_function(scan, mark, at)
        gap = yield from scan.closing(OUTER)
        if gap is None:
            return
        at = scan.cursor.offset
        if not (yield from scan.cursor.mark(_FUNCTION)):
            scan.cursor.put_back(gap)
            return


def read_function(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<function=`."""
    scan.format = "qwen_xml"
    name = yield from _name(scan)
    gap = yield from scan.cursor.space()
    if (yield from scan.cursor.ahead()) == "{":
        found = yield from scan.json_body(start, OPENERS, CALL.end, name=name)
        if found is not None:
            scan.call(name, found.value, start, repairs=found.repairs)
        return
    scan.cursor.put_back(gap)
    yield from CALL.read(scan, start, name)


def _function(call: CallPart) -> str:
    lines = [f"<function={fits(call.name)}>"]
    for name, value in call.arguments.items():
        lines += [f"<parameter={fits(name)}>", CALL.bare(value), "</parameter>"]
    return "\n".join([*lines, "</function>"])


def write(calls: Sequence[CallPart]) -> str:
    """Return the calls."""
    return "\n".join(f"<tool_call>\n{_function(call)}\n</tool_call>" for call in calls)


STRAY = (
    closing_marks("</tool_call>", "</seed:tool_call>", "</function>"),
    *stray_values(CALL.begin.marks, CALL.value_end.marks, Marks((*OUTER.marks, "</function>"))),
)
FORMAT = Format(
    "qwen_xml",
    "Qwen3-Coder",
    (Opener(("<tool_call>",), read), Opener(("<function=",), read_function), *STRAY),
    write,
    write_results,
    also=("qwen3_xml", "qwen3_coder"),
)
SEED = Format(
    "seed_oss",
    "Seed-OSS",
    (Opener(("<seed:tool_call>",), read), *STRAY),
    lambda calls: "\n".join(f"<seed:tool_call>\n{_function(call)}\n</seed:tool_call>" for call in calls),
    write_results,
)
