"""Plan -> JSON notation with the canonical keys.

Reading what is printed gives the same plan: same steps, same names, same templates. Where a text would be read as
something else than what it stands for, an unambiguous form is printed: `{"$literal": ...}`, `{"$expr": "..."}`, or
`{"$text": "..."}` for text with holes, in expression positions and where it looks like another system's reference; with
a list of its pieces, where the literal ones look like holes.
"""

from __future__ import annotations

import ast
import json
import re

from toolplan.expressions import (
    Expression,
    ExpressionError,
    Fields,
    Hole,
    Items,
    Literal,
    Reference,
    Template,
    Text,
    parse_template,
)
from toolplan.plan import (
    FAIL,
    Answer,
    AskModel,
    AskUser,
    Block,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    OnError,
    Parallel,
    Plan,
    Replan,
    Retry,
    Step,
    Try,
    While,
)
from toolplan.values import Json

__all__ = ["canonical", "template_json", "to_json"]

WIDTH = 110


def canonical(plan: Plan) -> str:
    """Return the plan's canonical text: JSON with what fits into a line in one line."""
    return _pretty(to_json(plan), 0)


def to_json(plan: Plan) -> dict[str, Json]:
    """Return the plan as a JSON value with the canonical keys."""
    shown: dict[str, Json] = {}
    if plan.thought is not None:
        shown["thought"] = plan.thought
    if plan.inputs:
        shown["inputs"] = plan.inputs
    shown["steps"] = _steps(plan.steps)
    if plan.answer is not None:
        shown["answer"] = _given(_template(plan.answer))
    return shown


def template_json(template: Template) -> Json:
    """Return the JSON value that is read as this template."""
    return _template(template)


def _given(value: Json) -> Json:
    """Return a value for a key of a step, where null would mean that the key is not given and true that it is empty."""
    return {"$literal": value} if value is None or value is True else value


def _steps(block: Block) -> list[Json]:
    return [_step(step) for step in block]


def _step(step: Step) -> dict[str, Json]:
    match step:
        case Call():
            return _call(step)
        case If():
            shown: dict[str, Json] = {"if": _expression(step.test), "then": _steps(step.then)}
            if step.otherwise:
                shown["else"] = _steps(step.otherwise)
            return shown
        case ForEach():
            return _for_each(step)
        case While():
            bound = step.max_iterations
            return {"while": _expression(step.test), "do": _steps(step.body), "max_iterations": bound}
        case Parallel():
            return {"parallel": _steps(step.members)}
        case Let():
            return {"let": {name: _operand(value) for name, value in step.values}}
        case Try():
            error: dict[str, Json] = {"as": step.error} if step.error else {}
            return {"try": _steps(step.body), "except": _steps(step.handler), **error}
        case AskUser():
            return {"ask_user": _given(_template(step.question)), **_result(step.result)}
        case AskModel():
            return _ask_model(step)
        case Replan():
            return {"replan": _given(_template(step.reason))}
        case Answer():
            return {"answer": _given(_template(step.text))}
        case Cannot():
            missing: dict[str, Json] = {"missing": [_template(item) for item in step.missing]} if step.missing else {}
            return {"cannot": _given(_template(step.reason)), **missing}
        case Note():
            return {"note": _given(_template(step.text))}
        case Break():
            return {"break": True}
        case Continue():
            return {"continue": True}


def _call(step: Call) -> dict[str, Json]:
    shown: dict[str, Json] = {
        "tool_name": step.tool,
        "arguments": {name: _template(value) for name, value in step.arguments.fields},
        **_result(step.result),
    }
    if step.depends_on:
        shown["depends_on"] = list(step.depends_on)
    shown |= _on_error(step.on_error)
    if step.retry is not None:
        shown["retry"] = _retry(step.retry)
    if step.timeout_seconds is not None:
        shown["timeout_seconds"] = step.timeout_seconds
    if step.again is not None:
        shown["again"] = step.again
    return shown


def _for_each(step: ForEach) -> dict[str, Json]:
    shown: dict[str, Json] = {"for_each": _given(_operand(step.items)), "as": step.name, "do": _steps(step.body)}
    if step.collect is not None:
        collect: Json = _given(_operand(step.collect))
        if step.result is None and isinstance(collect, str) and collect.isidentifier():
            collect = {"$expr": collect}  # a bare name alone may be read as the list's own name
        shown["collect"] = collect
    if step.keep is not None:
        shown["collect_if"] = _expression(step.keep)
    return shown | _result(step.result)


def _ask_model(step: AskModel) -> dict[str, Json]:
    shown: dict[str, Json] = {"ask_model": _given(_template(step.question))}
    if not isinstance(step.data, Literal) or step.data.value is not None:
        shown["data"] = _given(_operand(step.data))
    shown["returns"] = step.returns
    return shown | _result(step.result) | _on_error(step.on_error)


def _result(name: str | None) -> dict[str, Json]:
    return {"result_variable": name} if name else {}


def _on_error(on_error: OnError) -> dict[str, Json]:
    if on_error == FAIL:
        return {}
    if on_error.action == "value" and on_error.value is not None:
        return {"on_error": {"value": _template(on_error.value)}}
    if on_error.action == "do":
        return {"on_error": {"do": _steps(on_error.do)}}
    return {"on_error": on_error.action}


def _retry(retry: Retry) -> dict[str, Json]:
    usual = Retry()
    shown: dict[str, Json] = {"attempts": retry.attempts}
    if retry.wait_seconds != usual.wait_seconds:
        shown["wait_seconds"] = retry.wait_seconds
    if retry.max_wait_seconds != usual.max_wait_seconds:
        shown["max_wait_seconds"] = retry.max_wait_seconds
    return shown


# --- expressions and templates ---------------------------------------------------------------------------------------

_LIKE_REFERENCE = re.compile(r"#E\d|\$[^\W\d]\w*[^$]*\$|^\s*\$[^\W\d]|\$\{(?!\s)")
"""Text that other systems' references look like; the reader may take it for one."""


def _expression(expression: Expression) -> Json:
    """Return an expression for a position where text is one."""
    text = _apart(expression)
    return {"$expr": text} if "{" in text else text


def _apart(expression: Expression) -> str:
    """Return the expression's text, in parentheses where its own brace would touch another one."""
    text = expression.text.strip()
    return f"({text})" if text.startswith("{") else text


def _operand(template: Template) -> Json:
    """Return a template for a position where text is an expression."""
    if isinstance(template, Reference):
        return _expression(template.expression)
    if isinstance(template, Text):
        text = _text(template)
        return {"$text": text} if isinstance(text, str) else text
    if isinstance(template, Literal) and isinstance(template.value, str):
        plain = not _LIKE_REFERENCE.search(template.value)
        return repr(template.value) if plain else {"$literal": template.value}
    return _template(template)


def _template(template: Template) -> Json:
    """Return a template for a position where text is one."""
    match template:
        case Literal():
            return _literal(template.value)
        case Reference():
            return _reference(template)
        case Text():
            return _text(template)
        case Items():
            return [_template(item) for item in template.items]
        case Fields():
            return {key: _template(item) for key, item in template.fields}


def _literal(value: Json) -> Json:
    if isinstance(value, str):
        if not _LIKE_REFERENCE.search(value):
            for written in (value, value.replace("{", "{{").replace("}", "}}")):
                if ("{" not in written and "}" not in written) or _reads_as(written, Literal(value)):
                    return written
        return {"$literal": value}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    if isinstance(value, dict):
        if len(value) == 1 and value.keys() & {"$expr", "$literal", "$text"}:
            return {"$literal": value}
        return {key: _literal(item) for key, item in value.items()}
    return value


def _reference(template: Reference) -> Json:
    text = _apart(template.expression)
    written = f"{{{text}}}"
    return written if _reads_as(written, template) else {"$expr": text}


def _text(template: Text) -> Json:
    """Return text with holes; a dollar sign stands apart from the hole behind it (`${ total}`)."""
    for escaped in (False, True):
        pieces: list[str] = []
        sure = ""
        for part in template.parts:
            if isinstance(part, str):
                pieces.append(part.replace("{", "{{").replace("}", "}}") if escaped else part)
            else:
                pieces.append(_hole(part, after_dollar=bool(pieces) and pieces[-1].endswith("$")))
            sure += "{ }" if isinstance(part, Hole) and part.doubtful else pieces[-1]
        written = "".join(pieces)
        if _reads_as(written, template):
            return {"$text": written} if _LIKE_REFERENCE.search(sure) else written
    return {"$text": [part if isinstance(part, str) else _separate(part) for part in template.parts]}


def _hole(hole: Hole, *, after_dollar: bool) -> str:
    if hole.doubtful:
        return hole.raw
    space = " " if after_dollar else ""
    conversion = f"!{hole.conversion}" if hole.conversion else ""
    return f"{{{space}{_apart(hole.expression)}{conversion}{f':{hole.spec}' if hole.spec else ''}}}"


def _separate(hole: Hole) -> Json:
    """Return a hole apart from the text around it."""
    shown: dict[str, Json] = {"$expr": _apart(hole.expression)}
    if hole.spec:
        shown["format"] = hole.spec
    if hole.conversion:
        shown["conversion"] = hole.conversion
    return shown


def _reads_as(written: str, meant: Template) -> bool:
    try:
        return _is(parse_template(written), meant)
    except ExpressionError:  # it has more brace groups than one text may have
        return False


def _is(read: Template, meant: Template) -> bool:
    """Whether two templates are the same, wherever they stand."""
    if isinstance(meant, Literal):
        return isinstance(read, Literal) and read.value == meant.value
    if isinstance(meant, Reference):
        return isinstance(read, Reference) and _are_same(read.expression, meant.expression)
    if not isinstance(read, Text) or not isinstance(meant, Text) or len(read.parts) != len(meant.parts):
        return False
    return all(_is_part(a, b) for a, b in zip(read.parts, meant.parts, strict=True))


def _is_part(read: str | Hole, meant: str | Hole) -> bool:
    if isinstance(read, str) or isinstance(meant, str):
        return read == meant
    same = _are_same(read.expression, meant.expression)
    return same and (read.spec or None, read.conversion) == (meant.spec or None, meant.conversion)


def _are_same(read: Expression, meant: Expression) -> bool:
    return read.text.strip() == meant.text.strip() or ast.dump(read.tree) == ast.dump(meant.tree)


# --- layout ----------------------------------------------------------------------------------------------------------


def _pretty(value: Json, indent: int) -> str:
    """Return JSON text; lists and objects that fit into a line stay in one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(value, list | dict) or not value:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, list):
        entries = [_pretty(item, indent + 2) for item in value]
    else:
        entries = [f"{json.dumps(key, ensure_ascii=False)}: {_pretty(item, indent + 2)}" for key, item in value.items()]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    return opening + "\n" + ",\n".join(inner + entry for entry in entries) + "\n" + " " * indent + closing
