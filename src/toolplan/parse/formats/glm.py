"""GLM 4.5 and later: a name, then keys and bare values in tags.

<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Oslo</arg_value>
</tool_call>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.bare_values import BareCall, fits
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener
from toolplan.parse.formats.hermes import write_results
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.wrappers import closing_marks, stray_values

__all__ = ["FORMAT", "read"]

_KEY_END = Marks(("</arg_key>",))
_VALUE = Marks(("<arg_value>",))
_KEY = re.compile(r"[^<>]*")
_PLAIN = re.compile(r"[\w.\-]+")
_INSIDE = Marks(("<arg_key>", "</tool_call>"))
_NAME = re.compile(r"[^<>\n]*")


def _key(scan: Scan) -> Reader[tuple[str, bool | None] | None]:
    name = (yield from scan.cursor.while_in(_KEY)).strip()
    if not (yield from scan.cursor.mark(_KEY_END)):
        return None
    yield from scan.cursor.space()
    if not (yield from scan.cursor.mark(_VALUE)):
        return None
    return name, None


CALL = BareCall(
    begin=Marks(("<arg_key>",)),
    key=_key,
    value_end=Marks(("</arg_value>",)),
    end=Marks(("</tool_call>",)),
    openers=Marks(("<tool_call>",)),
    closers=Marks(("</tool_call>",)),
    nested=_VALUE,
)


def read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<tool_call>`."""
    trial = scan.try_out()
    scan.format = "glm"
    yield from scan.cursor.space()
    name = (yield from scan.cursor.while_in(_NAME)).strip()
    yield from scan.cursor.space()
    if not scan.named and (not _PLAIN.fullmatch(name) or not (yield from scan.cursor.mark(_INSIDE, take=False))):
        scan.reject(trial, mark)
        return
    yield from CALL.read(scan, start, name)
    scan.accept(trial)


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
