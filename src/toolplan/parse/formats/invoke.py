"""`<invoke name="...">` with bare `<parameter name="...">` values: MiniMax, and DeepSeek from V3.2 in its own marks.

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Oslo</parameter>
    </invoke>
    </minimax:tool_call>

DeepSeek says of each value whether it is text: `<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>`.
The bars of its marks come doubled and as ASCII too. Step 3 has a prefix of its own, inside of DeepSeek's older marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.bare_values import BareCall, fits
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, no_results
from toolplan.parse.formats.hermes import write_results
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.wrappers import after_calls, around_calls, closing_marks, stray_values

__all__ = ["DSML", "FORMAT", "STEP"]

_TAG = re.compile(r"[^>\n]*")
_END = Marks((">",))
_NAME = re.compile(r"""\bname\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_IS_TEXT = re.compile(r"""\bstring\s*=\s*["']?(true|false)\b""")


def _tag(scan: Scan) -> Reader[tuple[str, bool | None] | None]:
    """Pass the rest of an opening tag; return its name and whether it says that its value is text."""
    written = yield from scan.cursor.while_in(_TAG)
    if not (yield from scan.cursor.mark(_END)):
        return None
    name, is_text = _NAME.search(written), _IS_TEXT.search(written)
    if name is None:
        return None
    return (name[1] or name[2] or name[3] or "").strip(), is_text[1] == "true" if is_text else None


def _call(prefixes: Sequence[str], wrappers: Sequence[str]) -> BareCall:
    invoke = tuple(f"<{prefix}invoke" for prefix in prefixes)
    invoke_end = tuple(f"</{prefix}invoke>" for prefix in prefixes)
    return BareCall(
        begin=Marks(f"<{prefix}parameter" for prefix in prefixes),
        key=_tag,
        value_end=Marks(f"</{prefix}parameter>" for prefix in prefixes),
        end=Marks(invoke_end),
        openers=Marks((*invoke, *(f"<{wrapper}>" for wrapper in wrappers))),
        closers=Marks((*invoke_end, *(f"</{wrapper}>" for wrapper in wrappers))),
    )


def _openers(format: str, call: BareCall, prefixes: Sequence[str], wrappers: Sequence[str]) -> tuple[Opener, ...]:
    invoke = tuple(f"<{prefix}invoke" for prefix in prefixes)

    def read(scan: Scan, mark: str, start: int) -> Reader[None]:
        scan.format = format
        tag = yield from _tag(scan)
        yield from call.read(scan, start, tag[0] if tag else "")

    return (
        Opener(invoke, read),
        around_calls(*(f"<{wrapper}>" for wrapper in wrappers), inner=Marks(invoke)),
        after_calls(*(f"</{wrapper}>" for wrapper in wrappers)),
        closing_marks(*call.end.marks),
        *stray_values(tuple(f"<{prefix}parameter name=" for prefix in prefixes), call.value_end.marks, call.closers),
    )


def _format(name: str, title: str, prefixes: Sequence[str], within: tuple[str, ...], also: tuple[str, ...]) -> Format:
    wrappers = [f"{prefix}{wrapper}" for prefix in prefixes for wrapper in within]
    call, prefix = _call(prefixes, wrappers), prefixes[0]
    invoke = f"<{prefix}invoke"

    def write(calls: Sequence[CallPart]) -> str:
        lines = [f"<{wrappers[0]}>"]
        for each in calls:
            lines.append(f'{invoke} name="{fits(each.name)}">')
            for key, item in each.arguments.items():
                kind = ""
                if prefix:
                    plain = isinstance(item, str) and not any(mark in item for mark in call.marks)
                    kind = f' string="{"true" if plain else "false"}"'
                    text = item if plain else json_without(item, call.marks)
                else:
                    text = call.bare(item)
                lines.append(f'<{prefix}parameter name="{fits(key)}"{kind}>{text}</{prefix}parameter>')
            lines.append(f"</{prefix}invoke>")
        return "\n".join([*lines, f"</{wrappers[0]}>"])

    openers = _openers(name, call, prefixes, wrappers)
    return Format(name, title, openers, write, write_results if not prefix else no_results, also=also)


FORMAT = _format("minimax", "MiniMax M2", ("",), ("minimax:tool_call", "function_calls"), ("minimax_m2",))
DSML = _format(
    "deepseek_dsml",
    "DeepSeek V3.2 and later",
    tuple(f"{bar}DSML{bar}" for bar in ("｜", "|", "｜｜", "||")),
    ("tool_calls", "function_calls"),
    ("deepseek_v32", "deepseek_v4"),
)
_STEP = ("steptml:",)
STEP = _openers("minimax", _call(_STEP, ()), _STEP, ())
"""What Step 3 writes; read by `auto`."""
