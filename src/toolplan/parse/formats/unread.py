"""A call that nobody has read: marks of no known format, the name of a tool, and arguments.

New models bring new marks. What looks like a call is never guessed at and never run, and it is no answer either: it
becomes a broken call, whose diagnostic tells the model which form to use. So this has to be certain that no ordinary
text about tools is meant: it looks outside of code and quotes only, for marks that no such text has, directly followed
by a tool and what begins its arguments; or for a reply that is a call in code and nothing else. And where the words
around it refuse or quote it, it is text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from toolplan.diagnostics import Diagnostic, Place
from toolplan.diagnostics.formats import unread_call
from toolplan.parse.formats.invented import RESULT_MARKS
from toolplan.parse.formats.output import QUOTES
from toolplan.parse.formats.pythonic import NotCalls, read_calls
from toolplan.parse.json_text import Unacceptable, Unreadable, decode
from toolplan.parse.meant import is_meant
from toolplan.patterns import late_pattern
from toolplan.tools import ToolSet

__all__ = ["find_unread"]

MAX_MARKS = 500
"""After so many marks the rest of a text is not looked at."""
_REACH, _BEFORE = 300, 2_000
_TOKEN = r"<[|｜]{1,2}[^<>|｜\n]{1,60}[|｜]{1,2}>|\]<\][\w.\-]{1,30}\[>\[|✿[^✿\n]{1,20}✿"
_TAG = r"</?[A-Za-z_][\w:.\-]{0,60}(?:[=\s][^<>\n]{0,200})?>"
_BRACKET = r"\[/?[A-Z]{2,20}(?:[_ ][A-Z]{2,20}){0,3}\]"
_ANY = rf"(?:{_TOKEN}|{_TAG}|{_BRACKET})"
_KEYED = r"^[ \t]*(?:\[\s{0,20})?\{\s{0,20}[\"'](?P<key>[\w.\-]{1,100})[\"']\s{0,20}:\s{0,20}(?=\{)"
"""JSON with the name of a tool as its key."""
_PROMPT = r"^>>>(?=\w[\w.]{0,100}[ \t]*\n\s{0,20}\{)"
_MARK = late_pattern(
    rf"(?P<token>{_TOKEN})|(?P<tag>{_TAG}|{_BRACKET})|(?P<keyed>{_KEYED})|(?P<prompt>{_PROMPT})", re.MULTILINE
)
_CALLING = re.compile(r"tool|call|func|invo(?:ke|cation)|action|plugin|api|exec|request", re.IGNORECASE)
"""What the name of a tag has in it, if calls stand in it."""
_LEAD = late_pattern(
    rf"(?:[\s\"'“”:：=(){{}}\[\],>]++|{_ANY}"
    r"|(?:tool_?name|function_?name|name|tool|function|action|type|call|api|command|recipient|json|to)\b(?![.\-])"
    r"|(?:id|tool_call_id|call_id|index)[\"']?\s*[:=]\s*[\"']?[\w\-]{1,60})*+"
)
"""What may stand between a mark and the name of the tool."""
_NAME = re.compile(r"[\w.\-]+")
_BODY = late_pattern(
    rf"(?:[\s\"'“”:：=,;>\]]++|{_ANY}|(?:arguments|args|parameters|params|input|tool_input|action_input|kwargs|json)\b)*+[{{(]"
)
"""What stands between the name and the bracket that begins its arguments."""
_DECLARATION = re.compile(r"\s*[\"']type[\"']\s*:\s*[\"']object[\"']")
_DECLARED = re.compile(r"[\"']function[\"']\s*:")
_VALUES = late_pattern(rf"[\s\"'“”:：,>]*+{_ANY}")
MAX_CODE = 20_000
"""A longer text is no single call in code."""
_WHOLE = late_pattern(
    r"(?P<fence>(?:```|~~~)\w*+[ \t]*+\n\s*+)?(?P<code>(?P<name>[\w.\-]++)(?P<bracket>[({]).*?)"
    r"(?(fence)\n[ \t]*+(?:```|~~~)|)",
    re.DOTALL,
)
_CODE = late_pattern(
    r"(?P<fence>^[ \t]*(?P<ticks>`{3,}+|~{3,}+)[^\n]*(?:\n.*?(?:^[ \t]*(?P=ticks)[ \t]*$|\Z)|\Z))"
    r"|<!--.*?(?:-->|\Z)|(?<!`)(?P<quotes>`{1,2})(?!`)[^`\n]+(?P=quotes)(?!`)|^(?:[ \t]*>(?!>>)|\t| {4})[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""Code, quoted lines and comments."""


def find_unread(text: str, tools: ToolSet | Collection[str]) -> tuple[str, Diagnostic] | None:
    """Return the tool of a call in `text` that nobody has read, and what is to be told about it; None without one."""
    names = tools.names if isinstance(tools, ToolSet) else tools
    if (alone := _alone(text, names)) is not None:
        return alone[0], unread_call(Place(), *alone)
    first = _MARK.search(text)
    if first is None or not any(_tool(word, names) for word in set(_NAME.findall(text, first.start()))):
        return None
    results = RESULT_MARKS.search(text, 0)
    text = text[: results.start()] if results is not None else text
    text = _CODE.sub(lambda match: " " * len(match[0]), text)
    for number, mark in enumerate(_MARK.finditer(text)):
        if number == MAX_MARKS:
            break
        if not _counts(text, mark, names):
            continue
        name = _called(text, mark, names, tools)
        if name is not None and is_meant(text[max(0, mark.start() - _BEFORE) : mark.start()], ""):
            return name, unread_call(Place(), name, mark[0])
    return None


def _alone(text: str, names: Collection[str]) -> tuple[str, str] | None:
    """Return the tool that is called, and the beginning of the call, where a text is nothing but calls in code."""
    whole = _WHOLE.fullmatch(text.strip()) if len(text) <= MAX_CODE else None
    if whole is None or (name := _tool(whole["name"], names)) is None:
        return None
    code = whole["code"].strip()
    if whole["bracket"] == "{":
        try:
            is_call = not code[decode(code, whole.end("name") - whole.start("code")).end :].strip()
        except (Unreadable, Unacceptable):
            is_call = False
    else:
        is_call = _are_calls(code, names) or _are_calls(f"[{', '.join(code.splitlines())}]", names)
    return (name, f"{whole['name']}{whole['bracket']}") if is_call else None


def _are_calls(code: str, names: Collection[str]) -> bool:
    try:
        return all(_tool(call.name, names) for call in read_calls(code))
    except NotCalls:
        return False


def _tool(word: str, names: Collection[str]) -> str | None:
    """Return the tool that a word is the name of, perhaps behind a prefix with a dot."""
    if word in names:
        return word
    last = word.rpartition(".")[2]
    return last if last in names else None


def _counts(text: str, mark: re.Match[str], names: Collection[str]) -> bool:
    """Whether a mark can be one of a call: a special token, or a tag that begins a line and speaks of calls."""
    if text[mark.start() - 1 : mark.start()] in QUOTES and mark.start():
        return False
    if not mark["tag"]:
        return True
    if text[max(0, mark.start() - _REACH) : mark.start()].rpartition("\n")[2].strip():
        return False
    if mark[0].startswith("</"):
        return False
    word = _NAME.search(mark[0])
    return bool(_CALLING.search(mark[0])) or (word is not None and word[0] in names)


def _called(text: str, mark: re.Match[str], names: Collection[str], tools: ToolSet | Collection[str]) -> str | None:
    """Return the tool that is called in or behind a mark, if arguments begin there."""
    if mark["keyed"]:
        name = _tool(mark["key"], names)
        return name if name and _has_values(text[mark.end() : mark.end() + _REACH], name, tools) else None
    for word in _NAME.finditer(mark[0]):
        name = _tool(word[0], names)
        if name is not None and (
            _has_values(mark[0][word.end() :], name, tools) or _begins(text, mark.end(), name, tools)
        ):
            return name
    lead = _LEAD.match(text, mark.end(), mark.end() + _REACH)
    if lead is not None and mark[0].casefold() == "<tools>" and _DECLARED.search(lead[0]):
        return None
    word = _NAME.match(text, lead.end() if lead else mark.end())
    name = _tool(word[0], names) if word else None
    return name if word and name is not None and _begins(text, word.end(), name, tools) else None


def _begins(text: str, at: int, name: str, tools: ToolSet | Collection[str]) -> bool:
    """Whether arguments begin at a place: a bracket, or a mark with a parameter in it or behind it."""
    end = at + _REACH
    body = _BODY.match(text, at, end)
    if body is not None:
        return _DECLARATION.match(text, body.end()) is None
    values = _VALUES.match(text, at, end)
    return values is not None and _has_values(text[at:end], name, tools)


def _has_values(text: str, name: str, tools: ToolSet | Collection[str]) -> bool:
    words = _NAME.findall(text)
    if not isinstance(tools, ToolSet):
        return any(word.startswith(("param", "arg")) for word in words)
    return not tools[name].parameters["properties"].keys().isdisjoint(words)
