"""Find the program in a reply: fenced in prose, or the reply as it stands.

A fence inside a string of the program does not end it: of the fences that could close a block, the first one counts
before which Python can read the text. Programs inside thinking are rehearsals and do not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from toolplan.diagnostics import Place, Source
from toolplan.diagnostics.reading import several_plans
from toolplan.errors import PlanRejected
from toolplan.parse.python_notation.fstrings import Unreadable
from toolplan.parse.python_notation.text import MAX_CHARACTERS, read_text
from toolplan.parse.python_notation.vocabulary import WORDS, dotted
from toolplan.parse.thinking_tags import CLOSING, OPENING, THINKING

__all__ = ["find_bare_program", "find_likely_program", "find_meant_program", "find_program", "words_around"]

MAX_LEAD_IN = 200
"""Longer text before a fence explains something; what the fence holds is then an example of it."""

_EXPLAINS = re.compile(
    r"\bhow\b|\b(?:you|one)\s+(?:can|could|may|might)\b|\b(?:usage|syntax)\b"
    r"|如何|怎么|怎样|用法|[你您]可以|写法",
    re.IGNORECASE,
)
"""Words around code that explains something, for somebody else to run."""
_THINKING = re.compile(rf"(?:(?<!\s)\s++)?(?:{THINKING})", re.DOTALL | re.IGNORECASE)
_LATE_THINKING = re.compile(rf"(?:(?!{OPENING}).)*?(?:{CLOSING})[ \t]*\n", re.DOTALL | re.IGNORECASE)
_CLOSING = re.compile(CLOSING, re.IGNORECASE)
_OPENING = re.compile(r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[ \t]*(?P<language>[\w+#.-]*)[^\n]*\n", re.MULTILINE)
_FENCE_BEFORE = re.compile(r"^[ \t]*(?:`{3,}+|~{3,}+)[^\n]*\n\s*\Z", re.MULTILINE)
_FENCE_BEHIND = re.compile(r"\A\s*(?:`{3,}+|~{3,}+)[ \t]*$", re.MULTILINE)
_LANGUAGES = frozenset({"", "py", "python", "python3", "tool_code"})
_FIRST_LINE = re.compile(
    r"""(?:[ \t]*(?:(?:\#|\"{3}|'{3}).*)?\r?\n)*[ \t]*
    (?:[^\W\d][\w.\[\]"', ()*]*?(?:[-+*/|&]|//|\*\*)?=(?!=)
      | (?:return|for|while|if|try|import|from|await|async|def)\b
      | [^\W\d][\w.]*\( | \[ )""",
    re.VERBOSE,
)
"""Comments and blank lines, then what may begin a program."""
_CODE_LINE = re.compile(
    r"""[ \t]*(?:
        [\w.\[\]"', ]+?[-+*/|]?=(?!=)[ \t]*\S
      | (?:return|await|import|from)\b[ \t]*\S
      | (?:for|while|if|elif|with|def)\b.*:[ \t]*$
      | (?:else|try|finally)[ \t]*:
      | except\b.*:
      | [\w.]+\(.*\)?,?[ \t]*$
      | [\])}]+[,:]?[ \t]*$
      | \#
      | (?:break|continue|pass)[ \t]*$
    )""",
    re.VERBOSE,
)
_ANSWERING = WORDS - {"input", "max_iterations", "print"}
_DOING = (
    ast.Assign,
    ast.AsyncFunctionDef,
    ast.AugAssign,
    ast.For,
    ast.FunctionDef,
    ast.If,
    ast.Import,
    ast.ImportFrom,
    ast.Return,
    ast.Try,
    ast.While,
)
"""Statements that nobody writes in prose by accident."""


def find_program(reply: str, tools: Collection[str] = (), name: str = "plan") -> Source | None:
    """Return the program in `reply`, or None when there is none.

    A fenced block counts when it is marked as Python, or when it can be read as a program. Raises `PlanRejected` when
    several different programs are there.
    """
    text = _without_thinking(reply)
    programs = dict.fromkeys(_fenced(text, tools))
    if len(programs) > 1:
        places = [Place(start=at, end=at + 1) for program in programs if (at := reply.find(program)) >= 0]
        raise PlanRejected([several_plans(places)], Source(reply, name))
    if programs:
        return Source(next(iter(programs)), name)
    return find_bare_program(text, tools, name)


def find_meant_program(
    reply: str, tools: Collection[str] = (), name: str = "plan", *, answers: bool = True
) -> Source | None:
    """Return the fenced program that a reply is, where nobody said that there must be one.

    Unless it is all of the reply, at most short texts stand around it, the first of which asks nothing, and it calls a
    tool; where nothing stands behind it, to give an answer is enough too (not without `answers`). Other code is an
    example in prose. What the words around it leave of the program is for the caller to judge.
    """
    text = _without_thinking(reply)
    opening = _OPENING.search(text)
    if opening is None:
        return None
    program, end = _block(text, opening)
    before, behind = text[: opening.start()].strip("\ufeff \t\r\n"), _THINKING.sub("", text[end:]).strip()
    if program not in _fenced(text, tools):
        return None
    if not before and not behind:
        return Source(program, name)
    if max(len(before), len(behind)) > MAX_LEAD_IN or "?" in before or "？" in before or _OPENING.search(behind):
        return None
    if _EXPLAINS.search(before) or _EXPLAINS.search(behind):
        return None
    needs_call = bool(behind) or not answers
    return Source(program, name) if _acts(program, tools, answering=not needs_call) else None


def find_bare_program(reply: str, tools: Collection[str] = (), name: str = "plan") -> Source | None:
    """Return the program that the whole of `reply` is, or None when it is anything else."""
    text = _bare(reply)
    if not _FIRST_LINE.match(text):
        return None
    if len(text) > MAX_CHARACTERS:  # too long to be read, but not to be told from prose
        return Source(text, name) if _has_code_lines(text[:MAX_CHARACTERS]) else None
    return Source(text, name) if _is_program(text, tools) or _is_broken(text) else None


def find_likely_program(reply: str, name: str = "plan") -> Source | None:
    """Return the reply, where a program is demanded and its first line may begin one: its faults are worth telling."""
    text = _bare(reply)
    return Source(text, name) if text[:1] != "[" and _FIRST_LINE.match(text) else None


def words_around(reply: str, program: str) -> tuple[str, str]:
    """Return what the reply says before and behind a program that was found in it, without thinking and its fence."""
    text = _without_thinking(reply)
    before, _, behind = text.partition(program)
    return _FENCE_BEFORE.sub("", before).strip("\ufeff \t\r\n"), _THINKING.sub("", _FENCE_BEHIND.sub("", behind))


def _bare(reply: str) -> str:
    return _without_thinking(reply).strip("\ufeff \t\r\n")


def _without_thinking(reply: str) -> str:
    """Return the reply without the thinking it begins with; the server may have kept the opening tag for itself."""
    at = 0
    while thinking := _THINKING.match(reply, at):
        at = thinking.end()
    late = _LATE_THINKING.match(reply) if at == 0 and _CLOSING.search(reply) else None
    return reply[late.end() if late else at :]


def _fenced(text: str, tools: Collection[str]) -> Iterator[str]:
    """Yield the programs that stand between fences."""
    at = 0
    while opening := _OPENING.search(text, at):
        program, at = _block(text, opening)
        language = opening.group("language").lower()
        is_marked = language in _LANGUAGES and language != ""
        is_json = program.lstrip()[:1] in ("{", "[") and not _is_program(program, tools)
        if program.strip() and not is_json and (is_marked or (not language and _is_program(program, tools))):
            yield program


def _block(text: str, opening: re.Match[str]) -> tuple[str, int]:
    """Return what stands between the fence and the one that closes it, and where the text goes on."""
    start = opening.end()
    closing = re.compile(rf"^[ \t]*{re.escape(opening.group('fence'))}[ \t]*$", re.MULTILINE)
    first: tuple[str, int] | None = None
    for number, fence in enumerate(closing.finditer(text, start)):
        block = text[start : fence.start()], fence.end()
        first = first or block
        if _is_readable(block[0]):
            return block
        if number == 9:
            break
    return first or (text[start:], len(text))


def _is_readable(program: str) -> bool:
    try:
        read_text(Source(program))
    except Unreadable:
        return False
    return True


def _is_program(text: str, tools: Collection[str]) -> bool:
    """Return whether `text` can be read and does something."""
    try:
        body = read_text(Source(text)).body
    except Unreadable:
        return False
    return any(isinstance(node, _DOING) or _calls(node, tools) for node in body)


def _is_broken(text: str) -> bool:
    """Return whether `text`, which Python cannot read, is a program all the same: it is not passed over as prose."""
    return not _is_readable(text) and _has_code_lines(text)


def _has_code_lines(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and sum(bool(_CODE_LINE.match(line)) for line in lines) > 0.6 * len(lines)


def _acts(program: str, tools: Collection[str], *, answering: bool) -> bool:
    """Return whether a program calls a tool (anything, where the tools are not known) or, if `answering`, answers.

    Where an answer is not enough, the tools have to be known.
    """
    if not answering and not tools:
        return False
    endings = _ANSWERING if answering else frozenset[str]()
    try:
        body = read_text(Source(program)).body
    except Unreadable:
        words = "|".join(map(re.escape, (*tools, *endings)))
        ends = r"|^\s*return\b" if answering else ""
        return re.search(rf"(?<![\w.])(?:{words})\s*\({ends}", program, re.MULTILINE) is not None
    stack: list[ast.AST] = [*body]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return) and answering:
            return True
        if isinstance(node, ast.Call):
            called = dotted(node.func) or ""
            is_plain = isinstance(node.func, ast.Name)
            if called in endings or (_is_tool(called, tools) if tools else is_plain and called not in WORDS):
                return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):  # its `return` gives the caller something
            stack += [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
        else:
            stack += ast.iter_child_nodes(node)
    return False


def _calls(node: ast.stmt, tools: Collection[str]) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    while isinstance(value, ast.Await):
        value = value.value
    called = dotted(value.func) if isinstance(value, ast.Call) else None
    if called is None:
        return False
    return called in WORDS or (_is_tool(called, tools) if tools else "." not in called)


def _is_tool(called: str, tools: Collection[str]) -> bool:
    """Return whether a call of this name, which may be dotted, is one of a tool (`Vocabulary.tool`)."""
    return called in tools or called.rpartition(".")[2] in tools
