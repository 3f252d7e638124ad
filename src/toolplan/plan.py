"""The plan: the small language below the notations. Every other module reads or writes it.

    Plan     = steps: Step*, answer: Template?, thought, inputs
    Step     = Call      tool(arguments: Fields) -> result      one tool call
             | If        test ? then : otherwise                 one side runs
             | ForEach   name in items: body [collect]           the body once per element
             | While     test: body, at most max_iterations      a bounded loop
             | Parallel  members: Step*                          the author says they are independent
             | Let       name = Template, ...                    pure values
             | Try       body, handler [error name]              handler runs when a call in body fails
             | AskUser   question -> result                      the run pauses for a person
             | AskModel  question, data, returns -> result       a quarantined reading of text
             | Replan    reason                                  stop here and plan the rest
             | Answer    text      | Cannot  reason, missing     end the plan, like `return`
             | Note      text                                    shown while running, means nothing
             | Break | Continue                                  of the innermost loop
    Template = Literal | Reference | Text | Items | Fields       see `expressions.templates`

Names. A step that produces a value defines its `result` variable, if the plan gave one. Without one, it is known as
`TOOL_result` and, for a tool used once in the plan, as `TOOL`. Every step is also known by its `id`: `s1`, `s2`, ... in
written order, counted through bodies. `Step.defines` lists all of these; later definitions of a name hide earlier ones.
A name that is assigned inside a loop body and was defined before the loop is the same variable; all other names of a
body end with the round.

Value semantics. Values are JSON data and never shared: `b = a` followed by a change of `b` leaves `a` alone. The
statements `xs.append(e)`, `d[k] = e` and `x += e` of a text notation are `Let`s with a new value.

Where. Every step and template knows its `place` in the plan's `Source`, so that both notations get the same messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from toolplan.diagnostics import NOWHERE, Place, Source
from toolplan.expressions import Expression, Fields, Template
from toolplan.values import Json

__all__ = [
    "Answer",
    "AskModel",
    "AskUser",
    "Block",
    "Break",
    "Call",
    "Cannot",
    "Continue",
    "ForEach",
    "If",
    "Let",
    "Note",
    "OnError",
    "Parallel",
    "Plan",
    "Replan",
    "Retry",
    "Step",
    "Try",
    "While",
    "assigned_names",
    "blocks_of",
    "walk",
]

Block: TypeAlias = "tuple[Step, ...]"


@dataclass(frozen=True, slots=True)
class OnError:
    """What a failing call means: `fail` the run (default), `skip`, put in a `value`, `do` other steps, or `replan`."""

    action: str = "fail"
    value: Template | None = None
    do: Block = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how patiently to try again where repeating is safe. Waits are in seconds."""

    attempts: int = 1
    wait_seconds: float = 0.5
    max_wait_seconds: float = 30.0


FAIL = OnError()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one tool. `result` is the name its value was given in the plan, if any."""

    id: str
    tool: str
    arguments: Fields
    result: str | None = None
    defines: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    on_error: OnError = FAIL
    retry: Retry | None = None
    timeout_seconds: float | None = None
    place: Place = NOWHERE
    tool_place: Place = NOWHERE
    """The place of the tool's name, for messages about it."""
    again: str | None = None
    """Why the call is made again, when it is one whose effect has happened in an earlier plan of the run."""


@dataclass(frozen=True, slots=True)
class If:
    """One side runs, by the truth of `test`."""

    id: str
    test: Expression
    then: Block
    otherwise: Block = ()
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class ForEach:
    """`body` once per element of `items`; the values of `collect` become a list in element order.

    `items` is a template, so that a literal list of templates is possible. `keep` filters what is collected
    (a comprehension's `if` with calls before it); None keeps every round.
    """

    id: str
    items: Template
    name: str
    body: Block
    collect: Template | None = None
    keep: Expression | None = None
    result: str | None = None
    defines: tuple[str, ...] = ()
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class While:
    """`body` while `test` is true. Reaching `max_iterations` with `test` still true fails the step."""

    id: str
    test: Expression
    body: Block
    max_iterations: int
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Parallel:
    """The author's claim that the members are independent: undeclared tools among them may overlap."""

    id: str
    members: Block
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Let:
    """Pure values. Each entry sees the ones above it."""

    id: str
    values: tuple[tuple[str, Template], ...]
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Try:
    """When a step of `body` fails, the rest of `body` is left out and `handler` runs, with the message as `error`."""

    id: str
    body: Block
    handler: Block
    error: str | None = None
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class AskUser:
    """The run pauses until a person answers; the answer is text."""

    id: str
    question: Template
    result: str | None = None
    defines: tuple[str, ...] = ()
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class AskModel:
    """Text read or written by a model that sees only the question and `data`, has no tools, and returns the schema."""

    id: str
    question: Template
    data: Template
    returns: dict[str, Json]
    result: str | None = None
    defines: tuple[str, ...] = ()
    on_error: OnError = FAIL
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Replan:
    """Stop here, send what is known to the model, go on with the steps it answers."""

    id: str
    reason: Template
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Answer:
    """End the plan with this answer."""

    id: str
    text: Template
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Cannot:
    """End the plan: it cannot be done, for this reason; `missing` names what would be needed."""

    id: str
    reason: Template
    missing: tuple[Template, ...] = ()
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Note:
    """A word for whoever watches; it changes nothing."""

    id: str
    text: Template
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Break:
    """Leave the innermost loop."""

    id: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the next round of the innermost loop."""

    id: str
    place: Place = NOWHERE


Step: TypeAlias = (
    Call
    | If
    | ForEach
    | While
    | Parallel
    | Let
    | Try
    | AskUser
    | AskModel
    | Replan
    | Answer
    | Cannot
    | Note
    | Break
    | Continue
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in written order, and how to answer. `source` is the text it was read from."""

    steps: Block
    answer: Template | None = None
    thought: str | None = None
    inputs: dict[str, Json] = field(default_factory=dict[str, Json])
    """Values that the plan's names may refer to, besides its own steps' results (a saved plan's parameters)."""
    source: Source = field(default_factory=lambda: Source(""))
    notation: str = "json"
    repairs: tuple[str, ...] = ()
    """What had to be mended to read the text or is unclear about it, one sentence each; empty for a sound text."""


def blocks_of(step: Step) -> tuple[Block, ...]:
    """Return the step's bodies in written order; `on_error: do` counts as one."""
    if type(step) is Call or type(step) is AskModel:  # by far the commonest, so the first to be asked for
        return (step.on_error.do,) if step.on_error.do else ()
    if isinstance(step, If):
        return (step.then, step.otherwise)
    if isinstance(step, ForEach | While):
        return (step.body,)
    if isinstance(step, Parallel):
        return (step.members,)
    if isinstance(step, Try):
        return (step.body, step.handler)
    return ()


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield every step in written order, each before the steps of its bodies."""
    stack = list(reversed(steps))
    while stack:
        step = stack.pop()
        yield step
        if blocks := blocks_of(step):
            for block in reversed(blocks):
                stack.extend(reversed(block))


def assigned_names(steps: Sequence[Step]) -> frozenset[str]:
    """Return every name that some step of the block, at any depth, may define for the steps after it.

    The names of loop variables are left out: they end with their round.
    """
    names: set[str] = set()
    for step in walk(steps):
        if isinstance(step, Let):
            names.update(name for name, _ in step.values)
        elif isinstance(step, Call | ForEach | AskUser | AskModel):
            names.update(step.defines)
        elif isinstance(step, Try) and step.error:
            names.add(step.error)
    return frozenset(names)
