"""What models write in place of `<tool_call>` with JSON in it, when they miss their own format by a little.

    <tool_call name="get_weather">{"city": "Oslo"}</tool_call>      the name in the tag
    <tool_call>get_weather(city="Oslo")</tool_call>                 Python, one call or a list
    <tool_call>get_weather {"city": "Oslo"}</tool_call>             the name before the arguments
    <tool_call><tool_name>get_weather</tool_name><parameters>{...}</parameters></tool_call>     both in tags

Each has one reading. Other marks than `<tool_call>` are in `dialects`.
"""

from __future__ import annotations

import re

from toolplan.parse.formats import dialects, glm, hermes, qwen_xml
from toolplan.parse.formats.arguments import Refused
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Opener
from toolplan.parse.formats.pythonic import NotCalls, read_calls
from toolplan.parse.formats.scan import FoundValue, Scan, call_in, says_arguments

__all__ = ["NAMED", "read_any"]

_WORD = re.compile(r"[\w.\-]*")
_LIST = re.compile(r"[\[\s]*")
_TAG = re.compile(r"[^>\n]*")
_TAG_END = Marks((">",))
_TAG_NAME = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>/]+))(.*)""", re.DOTALL)
_ID = re.compile(r"""(?:\s+(?:id|call_id|type)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>/]+))*\s*(/?)\s*""")
_STOPS = Marks(("</tool_call>", "\n\n"))
_HELP = "write the arguments as one JSON object between the tags"


def read_any(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<tool_call>`, which several formats have; what follows tells them apart."""
    gap = yield from scan.cursor.space()
    following = yield from scan.cursor.ahead()
    fence = following == "`" and (yield from scan.cursor.ahead(3)) == "```"
    if following == "[":
        head = yield from scan.cursor.while_in(_LIST)
        is_python = yield from _is_python(scan)
        scan.cursor.put_back(gap + head)
        yield from _python(scan, start) if is_python else hermes.read(scan, mark, start)
    elif following in ("{", "") or fence:
        scan.cursor.put_back(gap)
        yield from hermes.read(scan, mark, start)
    elif following == "<":
        trial = scan.try_out()
        if (yield from dialects.named_by_tags(scan, hermes.BOTH, start)):
            scan.accept(trial)
            yield from scan.closing(hermes.CLOSERS)
        else:
            scan.undo(trial)
            scan.cursor.put_back(gap)
            yield from qwen_xml.read(scan, mark, start)
    elif (yield from _is_python(scan)):
        scan.cursor.put_back(gap)
        yield from _python(scan, start)
    else:
        name = yield from scan.cursor.while_in(_WORD)
        between = yield from scan.cursor.space()
        if name and (yield from scan.cursor.ahead()) == "{":
            scan.format = "hermes"
            yield from _body(scan, start, name)
        else:
            scan.cursor.put_back(gap + name + between)
            yield from glm.read(scan, mark, start)


def _is_python(scan: Scan) -> Reader[bool]:
    """Whether a name and a parenthesis stand here; nothing is passed."""
    name = yield from scan.cursor.while_in(_WORD)
    following = yield from scan.cursor.ahead()
    scan.cursor.put_back(name)
    return following == "(" and name[:1].isidentifier()


def _python(scan: Scan, start: int) -> Reader[None]:
    scan.format = "llama_pythonic"
    yield from scan.cursor.space()
    name = yield from scan.cursor.while_in(_WORD)
    extent = yield from scan.cursor.value(hermes.BOTH, calls=True)
    text = name + extent.text
    gap = yield from scan.closing(hermes.CLOSERS)
    try:
        if gap is not None and (not extent.whole or scan.is_cut):
            raise NotCalls("it is not closed")
        calls = read_calls(text)
    except NotCalls as error:
        ended = gap is not None and not extent.whole and not (yield from scan.cursor.ahead())
        refused = Refused("cut") if ended else Refused("broken", error.problem)
        scan.damaged(FoundValue(text, None, refused), start, hermes.OPENERS, hermes.CLOSERS, name or None)
    else:
        for call in calls:
            scan.call(call.name, call.arguments, start, values=call.values)
    if gap:
        scan.cursor.put_back(gap)


def _body(scan: Scan, start: int, name: str) -> Reader[None]:
    """Pass the arguments of `name`, as JSON, and the closing tag, and hand on the call."""
    found = yield from hermes.fenced_value(scan)
    if found.read is None:
        scan.damaged(found, start, hermes.OPENERS, hermes.CLOSERS, name)
    gap = yield from scan.closing(hermes.CLOSERS)
    if gap is not None:
        scan.cursor.put_back(gap)
    if found.read is None:
        return
    arguments = found.read.value
    inner = call_in(arguments)
    if inner is not None and inner[0] == name and says_arguments(arguments):
        arguments = inner[1]
    scan.call(name, arguments, start, repairs=found.read.repairs)


def _named(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<tool_call name=`."""
    trial = scan.try_out()
    scan.format = "hermes"
    written = yield from scan.cursor.while_in(_TAG)
    match = _TAG_NAME.fullmatch(written)
    if match is None or not (yield from scan.cursor.mark(_TAG_END)):
        scan.reject(trial, mark)
        return
    name = (match[1] or match[2] or match[3] or "").strip()
    rest = _ID.fullmatch(match[4])
    if rest is None or rest[1]:
        problem = "its arguments stand in the tag" if rest is None else "it has no arguments"
        _refuse(scan, start, written, name, problem)
        scan.accept(trial)
        return
    gap = yield from scan.cursor.space()
    if (yield from scan.cursor.mark(hermes.CLOSERS)):
        scan.call(name, {}, start)
        scan.accept(trial)
        return
    following = yield from scan.cursor.ahead(3)
    if following[:1] == "{" or following == "```":
        yield from _body(scan, start, name)
        scan.accept(trial)
        return
    scan.cursor.put_back(gap)
    text, stop = yield from scan.cursor.until(_STOPS, take=False)
    if stop != "</tool_call>":
        scan.reject(trial, mark)
        return
    scan.cursor.take(scan.cursor.at + len(stop))
    _refuse(scan, start, text, name, "expected a JSON object")
    scan.accept(trial)


def _refuse(scan: Scan, start: int, text: str, name: str, problem: str) -> None:
    refused = Refused("broken", problem, _HELP)
    scan.damaged(FoundValue(text, None, refused), start, hermes.OPENERS, hermes.CLOSERS, name)


NAMED = Opener(("<tool_call name=",), _named)
