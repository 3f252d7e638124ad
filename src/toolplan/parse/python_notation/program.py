"""The text of a program -> Plan: all of it in order, from the text to the named steps."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from toolplan.diagnostics import Diagnostic, Place, Source
from toolplan.diagnostics.program import empty_program, unreadable_program
from toolplan.diagnostics.reading import too_large
from toolplan.errors import PlanRejected
from toolplan.expressions import Literal, Template
from toolplan.parse.naming import give_names
from toolplan.parse.python_notation.fstrings import Unreadable
from toolplan.parse.python_notation.numbering import number
from toolplan.parse.python_notation.sharing import shared_changes
from toolplan.parse.python_notation.statements import Statements
from toolplan.parse.python_notation.survey import MAX_DEPTH, survey
from toolplan.parse.python_notation.text import MAX_CHARACTERS, read_text
from toolplan.parse.python_notation.vocabulary import Vocabulary
from toolplan.parse.python_notation.wrappers import unwrapped
from toolplan.parse.reading import CannotPlan
from toolplan.plan import Answer, Block, Cannot, Note, Plan, Replan, walk

__all__ = ["read_whole"]

MAX_STEPS = 10_000
"""More steps than this are refused."""
MAX_PROBLEMS = 100
"""More problems than this are not told; nobody reads them."""


def read_whole(source: Source, vocabulary: Vocabulary, repairs: Sequence[str], first_step: int) -> Plan | CannotPlan:
    """Return the plan that the program in `source.text` is, or its word that there can be none; see `read_program`."""
    try:
        return _read(source, vocabulary, repairs, first_step)
    except Unreadable as error:
        place = Place(start=error.start, end=max(error.end, error.start + 1))
        if not error.too_large:
            problem = unreadable_program(place, error.message)
        elif len(source.text) - source.start > MAX_CHARACTERS:
            problem = too_large(place, "characters", MAX_CHARACTERS, len(source.text) - source.start)
        else:
            problem = too_large(place, "levels", MAX_DEPTH)
        raise PlanRejected([problem], source) from None
    except RecursionError:
        place = Place(start=source.start, end=source.start + 1)
        raise PlanRejected([too_large(place, "levels", MAX_DEPTH)], source) from None


def _read(source: Source, vocabulary: Vocabulary, repairs: Sequence[str], first_step: int) -> Plan | CannotPlan:
    text = read_text(source)
    body = unwrapped(text.body)
    program = Statements(text, survey(text, body, vocabulary), vocabulary, repairs=list(repairs))
    steps = _with_answer(program, program.block(_with_return(program, body)))
    problems = [*program.problems, *(shared_changes(text, body) if program.survey.changes else ())]
    if not steps and not problems:
        problems.append(empty_program(Place(start=source.start, end=source.start + 1)))
    count = number(steps, first_step)
    if count > MAX_STEPS:
        problems.append(too_large(Place(start=source.start, end=source.start + 1), "steps", MAX_STEPS, count))
    if problems:
        raise PlanRejected(_in_order(problems), source)
    give_names(steps)
    if (refusal := _refusal(steps, source)) is not None:
        return refusal
    return Plan(steps, source=source, notation="python", repairs=tuple(dict.fromkeys(program.repairs)))


def _with_return(program: Statements, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements with a last line that is only a value read as the answer."""
    match body:
        case [*before, ast.Expr(value=value) as last] if program.is_mere_value(value):
            program.repairs.append("read the value in the last line as the answer")
            return [*before, ast.copy_location(ast.Return(value), last)]
        case _:
            return body


def _with_answer(program: Statements, steps: Block) -> Block:
    """Return the steps with a `print` in the last line read as the answer, where there is no other."""
    match steps:
        case (*before, Note() as last) if not any(isinstance(step, Answer | Cannot | Replan) for step in walk(steps)):
            program.repairs.append("read the `print` in the last line as the answer")
            return (*before, Answer("", last.text, last.place))
        case _:
            return steps


def _refusal(steps: Block, source: Source) -> CannotPlan | None:
    """Return what a program says that only says that there can be no plan."""
    match steps:
        case (Cannot(reason=Literal(value=str(reason)), missing=missing),):
            texts = [_constant(part) for part in missing]
            return (
                None if None in texts else CannotPlan(reason, tuple(text for text in texts if text is not None), source)
            )
        case _:
            return None


def _constant(template: Template) -> str | None:
    return template.value if isinstance(template, Literal) and isinstance(template.value, str) else None


def _in_order(problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the problems by where they stand in the text, none twice."""
    different = list(dict.fromkeys(problems))
    different.sort(key=lambda problem: (problem.place.start or 0, problem.place.end or 0))
    return different[:MAX_PROBLEMS]
