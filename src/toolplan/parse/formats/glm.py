"""GLM 4.5 and later: a name, then keys and bare values in tags.

<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Oslo</arg_value>
</tool_call>

LongCat writes `longcat_` before the name of each tag; Hunyuan puts `<tool_sep>` behind the name of the tool.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.bare_values import BareCall, fits
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, ReadOn
from toolplan.parse.formats.hermes import write_results
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.wrappers import closing_marks, stray_values

__all__ = ["FORMAT", "LONGCAT", "read"]

_KEY = re.compile(r"[^<>]*")
_PLAIN = re.compile(r"[\w.\-]+")
_NAME = re.compile(r"[^<>\n]*")
_SEPARATOR = Marks(("<tool_sep>",))


def _bare(prefix: str) -> BareCall:
    key_end, value = Marks((f"</{prefix}arg_key>",)), Marks((f"<{prefix}arg_value>",))

    def key(scan: Scan) -> Reader[tuple[str, bool | None] | None]:
        name = (yield from scan.cursor.while_in(_KEY)).strip()
        if not (yield from scan.cursor.mark(key_end)):
            return None
        yield from scan.cursor.space()
        if not (yield from scan.cursor.mark(value)):
            return None
        return name, None

    return BareCall(
        begin=Marks((f"<{prefix}arg_key>",)),
        key=key,
        value_end=Marks((f"</{prefix}arg_value>",)),
        end=Marks((f"</{prefix}tool_call>",)),
        openers=Marks((f"<{prefix}tool_call>",)),
        closers=Marks((f"</{prefix}tool_call>",)),
        nested=value,
    )


def _reader(call: BareCall) -> ReadOn:
    inside = Marks((*call.begin.marks, *call.end.marks, *_SEPARATOR.marks))

    def read(scan: Scan, mark: str, start: int) -> Reader[None]:
        trial = scan.try_out()
        scan.format = "glm"
        yield from scan.cursor.space()
        name = (yield from scan.cursor.while_in(_NAME)).strip()
        yield from scan.cursor.space()
        if not scan.named and (not _PLAIN.fullmatch(name) or not (yield from scan.cursor.mark(inside, take=False))):
            scan.reject(trial, mark)
            return
        yield from scan.cursor.mark(_SEPARATOR)
        yield from call.read(scan, start, name)
        scan.accept(trial)

    return read


CALL, _LONGCAT = _bare(""), _bare("longcat_")
read = _reader(CALL)
"""Reads on behind `<tool_call>`."""
LONGCAT = (
    Opener(_LONGCAT.openers.marks, _reader(_LONGCAT)),
    closing_marks(*_LONGCAT.end.marks),
    *stray_values(_LONGCAT.begin.marks, _LONGCAT.value_end.marks, _LONGCAT.end),
)
"""What LongCat writes; read by `auto`."""


def write(calls: Sequence[CallPart]) -> str:
    """Return the calls."""
    return "\n".join(
        "\n".join(
            [
                f"<tool_call>{fits(call.name)}",
                *(
                    f"<arg_key>{fits(name)}</arg_key>\n<arg_value>{CALL.bare(value)}</arg_value>"
                    for name, value in call.arguments.items()
                ),
                "</tool_call>",
            ]
        )
        for call in calls
    )


FORMAT = Format(
    "glm",
    "GLM 4.5 and later",
    (
        Opener(("<tool_call>",), read),
        closing_marks(*CALL.end.marks),
        *stray_values(("<arg_key>", "<arg_value>"), ("</arg_value>",), CALL.end),
    ),
    write,
    write_results,
    also=("glm4", "glm4_moe", "glm45"),
)
