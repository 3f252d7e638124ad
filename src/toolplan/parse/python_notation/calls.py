"""Calls that become steps of their own: of tools, and the words of the notation."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from toolplan.diagnostics import program_calls as wording
from toolplan.expressions import Fields, Literal, Template
from toolplan.parse.python_notation import schemas
from toolplan.parse.python_notation.lowering import Lowering, Refused
from toolplan.parse.python_notation.vocabulary import Meaning
from toolplan.plan import Answer, AskModel, AskUser, Call, Cannot, Note, Replan, Step

__all__ = ["call", "has_result", "word_of"]

_PARAMETERS = {
    "answer": ("text",),
    "ask_model": ("question", "data", "returns"),
    "ask_user": ("question",),
    "cannot": ("reason", "missing"),
    "replan": ("reason",),
}
_ALSO = {
    "final_answer": "answer",
    "input": "ask_user",
}
_SPELLINGS = {
    "answer": "text",
    "context": "data",
    "content": "data",
    "input": "data",
    "instruction": "question",
    "message": "question",
    "output_schema": "returns",
    "prompt": "question",
    "schema": "returns",
    "text": "data",
}


def word_of(low: Lowering, node: ast.Call) -> str | None:
    """Return the word of the notation that the call uses, such as `ask_model`, or None."""
    function = node.func
    if isinstance(function, ast.Name) and low.vocabulary.meaning(function.id) is Meaning.WORD:
        return _ALSO.get(function.id, function.id)
    return None


def has_result(low: Lowering, node: ast.Call) -> bool:
    """Return whether the call is a step that gives a value: a tool's, or a question's."""
    return low.vocabulary.tool(node.func, low.survey.values) is not None or word_of(low, node) in (
        "ask_model",
        "ask_user",
    )


def call(low: Lowering, node: ast.Call, result: str | None, out: list[Step], timeout: float | None = None) -> bool:
    """Append the step that the call is, if it is one, and return whether it is. Raises `Refused`."""
    tool = low.vocabulary.tool(node.func, low.survey.values)
    if tool is not None:
        if tool != ast.unparse(node.func):
            low.repairs.append(f"`{ast.unparse(node.func)}` was read as the tool `{tool}`")
        arguments = _tool_arguments(low, node, tool, out)
        out.append(
            Call(
                "",
                tool,
                arguments,
                result,
                timeout_seconds=timeout,
                place=low.place(node),
                tool_place=low.place(node.func),
                again=_again(low, node),
            )
        )
        return True
    word = word_of(low, node)
    if word is None:
        return False
    _word(low, node, word, result, out)
    return True


_AGAIN = re.compile(r"\s*again\s*[:：]\s*(\S.*)", re.IGNORECASE | re.DOTALL)


def _again(low: Lowering, node: ast.Call) -> str | None:
    """Return why the call is made again: what a comment `# again: reason` on one of its lines says."""
    for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
        comment = low.text.comments.get(line)
        if comment and (found := _AGAIN.match(comment)):
            return found[1].strip()
    return None


# --- tools -----------------------------------------------------------------------------------------------------------


def _tool_arguments(low: Lowering, node: ast.Call, tool: str, out: list[Step]) -> Fields:
    fields: dict[str, Template] = {}
    known = low.vocabulary.parameters.get(tool)
    for number, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred):
            raise Refused(wording.starred_arguments(low.place(argument), tool, "*"))
        if known is not None and number >= len(known):
            raise Refused(wording.too_many_arguments(low.place(argument), tool, list(known)))
        if known is None and (tool in low.vocabulary.tools or not low.vocabulary.tools):
            raise Refused(wording.unnamed_argument(low.place(argument), tool))
        # A tool that does not exist is the checker's to report, whatever its arguments are called.
        name = known[number] if known is not None else f"argument_{number + 1}"
        fields[name] = low.given(argument, out)
    for keyword in node.keywords:
        for name, value, at in _keyword_arguments(low, keyword, tool):
            if name in fields:
                raise Refused(wording.argument_twice(low.place(at), tool, name))
            fields[name] = low.given(value, out)
    return Fields(tuple(fields.items()), low.place(node))


def _keyword_arguments(
    low: Lowering, keyword: ast.keyword, tool: str
) -> list[tuple[str, ast.expr, ast.keyword | ast.expr]]:
    if keyword.arg is not None:
        return [(keyword.arg, keyword.value, keyword)]
    if not isinstance(keyword.value, ast.Dict):
        raise Refused(wording.starred_arguments(low.place(keyword.value), tool, "**"))
    found: list[tuple[str, ast.expr, ast.keyword | ast.expr]] = []
    for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise Refused(wording.starred_arguments(low.place(keyword.value), tool, "**"))
        found.append((key.value, value, key))
    return found


# --- the notation's own words ----------------------------------------------------------------------------------------


def _word(low: Lowering, node: ast.Call, word: str, result: str | None, out: list[Step]) -> None:
    place = low.place(node)
    if word == "print":
        if note := _note(low, node, out):
            out.append(Note("", note, place))
        return
    if word == "max_iterations":
        raise Refused(wording.misplaced_bound(place))
    given = _word_arguments(low, node, word)
    parts = {name: value for name, value in given.items() if name not in ("returns", "missing")}
    lowered = {name: low.given(value, out) for name, value in parts.items()}
    first = _PARAMETERS[word][0]
    if first not in lowered:
        raise Refused(wording.word_needs(place, word, first))
    match word:
        case "answer":
            out.append(Answer("", lowered[first], place))
        case "ask_user":
            out.append(AskUser("", lowered[first], result, place=place))
        case "replan":
            out.append(Replan("", lowered[first], place))
        case "cannot":
            out.append(Cannot("", lowered[first], _missing(low, given.get("missing"), out), place))
        case _:
            returns = given.get("returns")
            schema = schemas.schema_of(low, returns) if returns is not None else dict(schemas.TEXT)
            data = lowered.get("data", Literal(None, place))
            out.append(AskModel("", lowered[first], data, schema, result, place=place))


def _word_arguments(low: Lowering, node: ast.Call, word: str) -> dict[str, ast.expr]:
    names = _PARAMETERS[word]
    given: dict[str, ast.expr] = {}
    for number, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred) or number >= len(names):
            raise Refused(wording.word_argument(low.place(argument), word, None))
        given[names[number]] = argument
    for keyword in node.keywords:
        name = keyword.arg
        if name is not None and name not in names:
            meant = _SPELLINGS.get(name)
            name = meant if meant is None or meant in names else names[0]
        if name is None:
            raise Refused(wording.word_argument(low.place(keyword), word, keyword.arg))
        if name in given:
            raise Refused(wording.argument_twice(low.place(keyword), word, name))
        given[name] = keyword.value
    return given


def _missing(low: Lowering, node: ast.expr | None, out: list[Step]) -> tuple[Template, ...]:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return ()
    elements: Sequence[ast.expr] = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    return tuple(low.given(element, out) for element in elements)


def _note(low: Lowering, node: ast.Call, out: list[Step]) -> Template | None:
    """Return the text of a `print`: its arguments with spaces between them."""
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            raise Refused(wording.word_argument(low.place(argument), "print", None))
    arguments = [low.value(argument, out) for argument in node.args]
    if not arguments:
        return None
    if len(arguments) == 1:
        return low.template(arguments[0])
    values: list[ast.expr] = []
    for argument in arguments:
        if values:
            values.append(ast.copy_location(ast.Constant(" "), argument))
        if isinstance(argument, ast.JoinedStr):
            values += argument.values
        elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            values.append(argument)
        else:
            values.append(ast.copy_location(ast.FormattedValue(argument, -1, None), argument))
    return low.template(ast.copy_location(ast.JoinedStr(values), node))
