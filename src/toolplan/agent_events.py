"""What somebody who watches a request is told, in order: what the model does, then everything of the run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from toolplan import show
from toolplan.check import CheckedPlan
from toolplan.errors import PlanRejected
from toolplan.models import Message, Usage
from toolplan.result import Result
from toolplan.run import EarlyEvent, RunEvent
from toolplan.schedule import StepRecord
from toolplan.values import Json

__all__ = [
    "AgentEvent",
    "CallMended",
    "CallRefused",
    "CallsRequested",
    "ModeChosen",
    "ModelAsked",
    "ModelReplied",
    "PlanAccepted",
    "PlanRefused",
    "Replanning",
    "ReplyStartsOver",
    "ReplyStreamed",
    "RequestFinished",
    "ToolsShown",
    "Watcher",
    "event_to_json",
]


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """A model is being asked; `purpose` is plan, repair, replan, loop, review, answer or ask_model."""

    purpose: str
    model: str
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyStreamed:
    """A piece of the reply has arrived: of a plan its text, of a loop what the model says to the user."""

    text: str


@dataclass(frozen=True, slots=True)
class ReplyStartsOver:
    """The reply broke off and is asked for again: what has been streamed of it is void, and it begins anew."""


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """The reply is there."""

    purpose: str
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True)
class PlanAccepted:
    """The plan has passed every check and may run."""

    checked: CheckedPlan


@dataclass(frozen=True, slots=True)
class PlanRefused:
    """The reply was no plan that may run; `attempt` counts from 1."""

    rejection: PlanRejected
    attempt: int


@dataclass(frozen=True, slots=True)
class Replanning:
    """The plan stopped and its rest is asked for anew; `number` counts from 1, `step` is what failed, if anything."""

    number: int
    reason: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class ModeChosen:
    """The request goes on in another way than it began: as a `loop`, for this reason."""

    mode: str
    reason: str


@dataclass(frozen=True, slots=True)
class CallsRequested:
    """In the loop, the model asks for these calls: tools, and the arguments as it wrote them. Turns count from 1."""

    turn: int
    calls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CallMended:
    """In the loop, a call had to be mended to be read; `repairs` says in one sentence each what was done."""

    step: str
    tool: str
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallRefused:
    """In the loop, a call is not made; `reason` is what the model is told. `step` is empty when it cannot be read."""

    step: str
    tool: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolsShown:
    """The model is shown further tools, for this reason; `tools` are their names."""

    tools: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class RequestFinished:
    """The last event of a stream: the result is there."""

    result: Result


AgentEvent: TypeAlias = (
    RunEvent
    | EarlyEvent
    | ModelAsked
    | ReplyStreamed
    | ReplyStartsOver
    | ModelReplied
    | PlanAccepted
    | PlanRefused
    | Replanning
    | ModeChosen
    | CallsRequested
    | CallMended
    | CallRefused
    | ToolsShown
    | RequestFinished
)
Watcher: TypeAlias = Callable[[AgentEvent], None]


def event_to_json(event: AgentEvent) -> dict[str, Json]:
    """Return an event as a JSON object: its kind under `event` (`step_started`, `plan_accepted`), and its fields.

    For clients in another process. Steps, results and diagnostics look as they do in `Result.to_dict`, plans as in
    `plan` there.
    """
    kind = _CAPITAL.sub("_", type(event).__name__).lower()
    return {"event": kind, **cast("dict[str, Json]", _fields(event))}


_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def _fields(value: object) -> Json:
    if isinstance(value, StepRecord | Usage | Result):
        return value.to_dict()
    if isinstance(value, CheckedPlan):
        warnings: list[Json] = [warning.to_dict(value.plan.source) for warning in value.warnings]
        return {"plan": show.to_json(value.plan), "warnings": warnings}
    if isinstance(value, PlanRejected):
        return [diagnostic.to_dict(value.source) for diagnostic in value.diagnostics]
    if isinstance(value, tuple):
        return [_fields(item) for item in cast("tuple[object, ...]", value)]
    if dataclasses.is_dataclass(value):
        return {field.name: _fields(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return cast(Json, value)
