"""Plan -> words: what a run will do, step by step, for whoever has to agree to it."""

from __future__ import annotations

from collections.abc import Iterator

from toolplan.plan import (
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
    Step,
    Try,
    While,
    walk,
)
from toolplan.show.words import operand_text, template_text
from toolplan.tools import ToolSet

__all__ = ["summary"]

LINE = 70


def summary(plan: Plan, tools: ToolSet) -> str:
    """Return what a run of the plan will do, one line a step, with what each call may change.

    A tool that is not among `tools`, or declares nothing, is said to be able to change anything.
    """
    calls = [step for step in walk(plan.steps) if isinstance(step, Call)]
    changing = [step for step in calls if _may_change(step, tools)]
    lines = [_head(plan, len(calls), len(changing))]
    lines += _block(plan.steps, tools, 1)
    if plan.answer is not None:
        lines.append(f'Then it answers: "{template_text(plan.answer, LINE)}"')
    return "\n".join(lines) + "\n"


def _head(plan: Plan, calls: int, changing: int) -> str:
    if not calls:
        return "This plan calls no tool." if plan.steps else "This plan only answers."
    looping = any(isinstance(step, ForEach | While) for step in walk(plan.steps))
    number = f"{calls} call{'s' if calls > 1 else ''}" + (", some of them once a round" if looping else "")
    if not changing:
        return f"This plan makes {number}. None of them changes anything."
    which = "it" if calls == 1 else f"{changing} of them" if changing < calls else "all of them"
    return f"This plan makes {number}; {which} may change something (marked !)."


def _may_change(step: Call, tools: ToolSet) -> bool:
    tool = tools.get(step.tool)
    return tool is None or tool.effects.has_effects


def _block(block: Block, tools: ToolSet, depth: int) -> Iterator[str]:
    for step in block:
        yield from _step(step, tools, depth)


def _step(step: Step, tools: ToolSet, depth: int) -> Iterator[str]:
    match step:
        case Call():
            mark = "!" if _may_change(step, tools) else " "
            yield _line(step, depth, _call_text(step) + _effects(step, tools), mark)
            if step.again is not None:
                yield _line(None, depth + 1, f"made again, because: {step.again}")
            yield from _rescue(step.on_error, tools, depth)
        case If():
            yield _line(step, depth, f"if {step.test.text.strip()}:")
            yield from _block(step.then, tools, depth + 1)
            if step.otherwise:
                yield _line(None, depth, "otherwise:")
                yield from _block(step.otherwise, tools, depth + 1)
        case ForEach():
            gathered = f", gathering {operand_text(step.collect, LINE)}" if step.collect is not None else ""
            known = f" as `{step.result}`" if step.result and step.collect is not None else ""
            yield _line(step, depth, f"for each {step.name} in {operand_text(step.items, LINE)}{gathered}{known}:")
            yield from _block(step.body, tools, depth + 1)
        case While():
            yield _line(step, depth, f"while {step.test.text.strip()}, at most {step.max_iterations} times:")
            yield from _block(step.body, tools, depth + 1)
        case Parallel():
            yield _line(step, depth, "at the same time:")
            yield from _block(step.members, tools, depth + 1)
        case Let():
            yield _line(step, depth, "; ".join(f"{name} = {operand_text(value, LINE)}" for name, value in step.values))
        case Try():
            yield _line(step, depth, "try:")
            yield from _block(step.body, tools, depth + 1)
            yield _line(None, depth, "if that fails:")
            yield from _block(step.handler, tools, depth + 1)
        case AskUser():
            yield _line(step, depth, f'ask you: "{template_text(step.question, LINE)}"{_as(step.result)}')
        case AskModel():
            seen = operand_text(step.data, 30)
            question = template_text(step.question, LINE)
            yield _line(step, depth, f'let a model read {seen}: "{question}"{_as(step.result)}')
            yield from _rescue(step.on_error, tools, depth)
        case Replan():
            yield _line(step, depth, f'stop and plan again: "{template_text(step.reason, LINE)}"')
        case Answer():
            yield _line(step, depth, f'end with the answer: "{template_text(step.text, LINE)}"')
        case Cannot():
            yield _line(step, depth, f'end, saying that it cannot be done: "{template_text(step.reason, LINE)}"')
        case Note():
            yield _line(step, depth, f'say: "{template_text(step.text, LINE)}"')
        case Break():
            yield _line(step, depth, "leave the loop")
        case Continue():
            yield _line(step, depth, "go on with the next round")


def _line(step: Step | None, depth: int, text: str, mark: str = " ") -> str:
    number = step.id if step is not None else ""
    return f"{mark} {number:<4}{'  ' * (depth - 1)}{text}"


def _as(result: str | None) -> str:
    return f" -> {result}" if result else ""


def _call_text(step: Call) -> str:
    arguments = ", ".join(f"{name}={operand_text(value, 40)}" for name, value in step.arguments.fields)
    return f"{step.tool}({arguments}){_as(step.result)}"


def _effects(step: Call, tools: ToolSet) -> str:
    tool = tools.get(step.tool)
    if tool is None:
        return "  [unknown tool]"
    effects = tool.effects
    if not effects.declared:
        return "  [declares nothing: may change anything]"
    said = [f"changes {', '.join(effects.writes)}"] if effects.writes else []
    said += [f"reads {', '.join(effects.reads)}"] if effects.reads else []
    if tool.approval == "ask":
        said.append("asks first")
    return f"  [{'; '.join(said)}]" if said else ""


def _rescue(on_error: OnError, tools: ToolSet, depth: int) -> Iterator[str]:
    if on_error.action == "skip":
        yield _line(None, depth + 1, "if that fails: go on without it")
    elif on_error.action == "value" and on_error.value is not None:
        yield _line(None, depth + 1, f"if that fails: take {operand_text(on_error.value, 40)} instead")
    elif on_error.action == "replan":
        yield _line(None, depth + 1, "if that fails: plan again")
    elif on_error.action == "do":
        yield _line(None, depth + 1, "if that fails:")
        yield from _block(on_error.do, tools, depth + 2)
