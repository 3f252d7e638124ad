"""Plan -> Mermaid flowchart: a node a step, loops and branches as boxes, arrows from definitions to uses.

Solid arrows carry values and say which; dotted ones lead from a test to the side that it chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolplan.expressions import Template, names_of
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
    Parallel,
    Plan,
    Replan,
    Step,
    Try,
    While,
)
from toolplan.show.words import operand_text, template_text
from toolplan.values import Json

__all__ = ["mermaid"]

LABEL = 80

Definitions = dict[str, tuple[str, ...]]
"""What a name may stand for at some place: the nodes that may have defined it."""


def mermaid(plan: Plan) -> str:
    """Return the plan as the text of a Mermaid flowchart."""
    chart = _Chart()
    inputs: Definitions = {}
    for name, value in plan.inputs.items():
        inputs[name] = (chart.node(f"input_{len(inputs)}", f"{name} = {_short(value)}", "([{}])"),)
    known = chart.block(plan.steps, inputs)
    if plan.answer is not None:
        chart.node("answer", f"answer: {template_text(plan.answer, LABEL)}", "([{}])")
        chart.uses("answer", names_of(plan.answer), known)
    return "\n".join(["flowchart TD", *chart.lines, *chart.arrows]) + "\n"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def _label(text: str) -> str:
    """Return text that Mermaid shows as it is."""
    short = " ".join(text.split())
    short = short if len(short) <= LABEL else short[:LABEL] + "…"
    return '"' + "".join(ch if ch.isalnum() or ch in " _.,:()=+-*/!?…·→" else f"#{ord(ch)};" for ch in short) + '"'


class _Chart:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arrows: list[str] = []
        self.depth = 1

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def node(self, id: str, text: str, shape: str) -> str:
        self.line(id + shape.format(_label(text)))
        return id

    def uses(self, node: str, names: Iterable[str], known: Mapping[str, tuple[str, ...]]) -> None:
        """Draw an arrow from each definition of the names to the node."""
        for name in sorted(names):
            for source in known.get(name, ()):
                arrow = f"  {source} -->|{_label(name)}| {node}"
                if source != node and arrow not in self.arrows:
                    self.arrows.append(arrow)

    def box(self, id: str, title: str, block: Block, known: Definitions) -> Definitions:
        """Draw the steps inside a box and return what is known at its end."""
        self.line(f"subgraph {id}[{_label(title)}]")
        self.depth += 1
        if not block:
            self.node(f"{id}_empty", "nothing", "[{}]")
        known = self.block(block, known)
        self.depth -= 1
        self.line("end")
        return known

    def block(self, block: Block, known: Definitions) -> Definitions:
        """Draw the steps and return what is known after them."""
        for step in block:
            known = self.step(step, known)
        return known

    def step(self, step: Step, known: Definitions) -> Definitions:
        id = step.id
        match step:
            case Call():
                arguments = ", ".join(f"{name}={operand_text(value, 24)}" for name, value in step.arguments.fields)
                self.node(id, f"{step.tool}({arguments})", "[{}]")
                self.uses(id, names_of(step.arguments) | set(step.depends_on), known)
                return self.rescue(step, known | dict.fromkeys(step.defines, (id,)))
            case AskModel():
                self.node(id, f"ask a model: {template_text(step.question, LABEL)}", "[/{}/]")
                self.uses(id, names_of(step.question) | names_of(step.data), known)
                return self.rescue(step, known | dict.fromkeys(step.defines, (id,)))
            case AskUser():
                self.simple(id, f"ask the user: {template_text(step.question, LABEL)}", step.question, known, "[/{}/]")
                return known | dict.fromkeys(step.defines, (id,))
            case If():
                return self.branch(step, known)
            case ForEach() | While():
                return self.loop(step, known)
            case Parallel():
                return self.box(id, "in parallel", step.members, known)
            case Let():
                text = ", ".join(f"{name} = {operand_text(value, 40)}" for name, value in step.values)
                self.node(id, text, "[{}]")
                for name, value in step.values:
                    self.uses(id, names_of(value), known)
                    known = known | {name: (id,)}
                return known
            case Try():
                after = self.box(id, "try", step.body, known)
                caught = known | ({step.error: (id,)} if step.error else {})
                handled = self.box(f"{id}_except", "if that fails", step.handler, caught)
                self.arrows.append(f"  {id} -.->|{_label('fails')}| {id}_except")
                return _either(after, handled)
            case Answer():
                self.simple(id, f"answer: {template_text(step.text, LABEL)}", step.text, known, "([{}])")
            case Cannot():
                self.simple(id, f"cannot: {template_text(step.reason, LABEL)}", step.reason, known, "([{}])")
            case Replan():
                self.simple(id, f"plan again: {template_text(step.reason, LABEL)}", step.reason, known, "([{}])")
            case Note():
                self.simple(id, f"note: {template_text(step.text, LABEL)}", step.text, known, ">{}]")
            case Break() | Continue():
                self.node(id, "leave the loop" if isinstance(step, Break) else "next round", "([{}])")
        return known

    def simple(self, id: str, text: str, template: Template, known: Definitions, shape: str) -> None:
        self.node(id, text, shape)
        self.uses(id, names_of(template), known)

    def rescue(self, step: Call | AskModel, known: Definitions) -> Definitions:
        """Draw what happens instead when the step fails, if that is steps."""
        if not step.on_error.do:
            return known
        handled = self.box(f"{step.id}_failed", "if that fails", step.on_error.do, known)
        self.arrows.append(f"  {step.id} -.->|{_label('fails')}| {step.id}_failed")
        return _either(known, handled)

    def branch(self, step: If, known: Definitions) -> Definitions:
        self.node(step.id, step.test.text, "{{{}}}")
        self.uses(step.id, step.test.names, known)
        after: list[Definitions] = []
        for word, block in (("yes", step.then), ("no", step.otherwise)):
            if not block:
                after.append(known)
                continue
            after.append(self.box(f"{step.id}_{word}", word, block, known))
            self.arrows.append(f"  {step.id} -.->|{_label(word)}| {step.id}_{word}")
        return _either(*after)

    def loop(self, step: ForEach | While, known: Definitions) -> Definitions:
        inside = known
        if isinstance(step, ForEach):
            title = f"for each {step.name} in {operand_text(step.items, 40)}"
            names = names_of(step.items)
            inside = {name: nodes for name, nodes in known.items() if name != step.name}
        else:
            title = f"while {step.test.text}, at most {step.max_iterations} times"
            names = step.test.names
        self.uses(step.id, names, known)
        after = self.box(step.id, title, step.body, inside)
        kept = {name: after.get(name, nodes) for name, nodes in known.items()}
        return kept | dict.fromkeys(step.defines, (step.id,)) if isinstance(step, ForEach) else kept


def _either(*known: Definitions) -> Definitions:
    """Return what is known where several ways meet."""
    names = dict.fromkeys(name for definitions in known for name in definitions)
    return {name: tuple(dict.fromkeys(node for d in known for node in d.get(name, ()))) for name in names}
