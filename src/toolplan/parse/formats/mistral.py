"""Mistral: `[TOOL_CALLS]` before a list of calls (up to tokenizer v7), or before each name (from v11 on).

[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "9Ae3bDc2F"}]
[TOOL_CALLS]get_weather{"city": "Oslo"}
[TOOL_CALLS]get_weather[CALL_ID]9Ae3bDc2F[ARGS]{"city": "Oslo"}
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, result_text
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.values import Json

__all__ = ["FORMAT", "V3"]

_OPENERS = Marks(("[TOOL_CALLS]",))
_ENDS = Marks(("[TOOL_CALLS]", "</s>"))
_NONE = Marks(())
_NAME = re.compile(r"[^\s{\[]*")
_ID = re.compile(r"[^\[\s]*")
_CALL_ID, _ARGS = Marks(("[CALL_ID]",)), Marks(("[ARGS]",))


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    scan.format = "mistral"
    yield from scan.cursor.space()
    name = yield from scan.cursor.while_in(_NAME)
    yield from scan.cursor.space()
    id = None
    if name:
        if (yield from scan.cursor.mark(_CALL_ID)):
            id = yield from scan.cursor.while_in(_ID)
        yield from scan.cursor.mark(_ARGS)
        yield from scan.cursor.space()
    found = yield from scan.json_value(_ENDS)
    if found.read is None:
        scan.damaged(found, start, _OPENERS, _NONE, name or None, id)
    elif name:
        scan.call(name, found.read.value, start, id=id, repairs=found.read.repairs)
    else:
        scan.json_calls(found.read, start)


_MARKS = ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "</s>")


def _write(calls: Sequence[CallPart]) -> str:
    return "".join(f"[TOOL_CALLS]{call.name}[ARGS]{json_without(call.arguments, _MARKS)}" for call in calls)


def _write_list(calls: Sequence[CallPart]) -> str:
    listed: list[Json] = [{"name": call.name, "arguments": call.arguments, "id": call.id} for call in calls]
    return f"[TOOL_CALLS]{json_without(listed, _MARKS)}"


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "".join(f"[TOOL_RESULTS]{result_text(result)}[/TOOL_RESULTS]" for result in results)


FORMAT = Format(
    "mistral", "Mistral, tokenizer v11 and later", (Opener(_OPENERS.marks, _read),), _write, _write_results,
    also=("mistral_v11",),
)  # fmt: skip
V3 = Format(
    "mistral_v3", "Mistral, tokenizers up to v7", FORMAT.openers, _write_list, _write_results,
    also=("mistral_pre_v11", "mistral_v7"), alone=False,
)  # fmt: skip
