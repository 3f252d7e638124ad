"""What is written down of a run, and how an entry becomes a row and a row an entry.

    RunBegun        the request; always the first
    Earlier         what was said and done before it, in a conversation
    Inferred        a model was asked; what it cost
    LoopBegun       the request is answered turn by turn
    ModelSaid       what a model said in a loop, as it came; the plans after it are the calls of that turn
    PlanBegun       a plan, the tools it was checked against, every setting that the scheduler depends on. The events
                    after it belong to it. A run has several when it is planned again, or is a loop; one that no event
                    follows was only asked about
    <event>         what went into the scheduler, one row an event; feeding them again rebuilds its state (I7)
    EffectStarted   a call with an effect is about to leave; durable before it does (I4)
    Decision        a person's word on the plan or on one call (I5)
    StepResolved    a person's word, or a probe's, on an effect of which nobody knows whether it happened
    SecretLeftOut   the entry before this one stood for more than is written
    RunResumed      another process took the run over
    RunEnded        the outcome; `waiting` is one too, and more may follow it

A row is its kind and a JSON object of the fields that are not at their default. New fields get defaults, so that old
rows still read; a row of an unknown kind, or with an unknown field, is a `JournalMismatch`: it was written by a newer
version, and skipping it could repeat an effect.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from toolplan.errors import JournalMismatch
from toolplan.schedule import events as schedule_events
from toolplan.schedule.events import Event, JournalLost
from toolplan.values import Json, is_text

__all__ = [
    "FORMAT",
    "KINDS",
    "Decision",
    "Earlier",
    "EffectStarted",
    "Entry",
    "Inferred",
    "LoopBegun",
    "ModelSaid",
    "PlanBegun",
    "RunBegun",
    "RunEnded",
    "RunResumed",
    "SecretLeftOut",
    "StepResolved",
    "decode",
    "encode",
    "to_text",
]

FORMAT = 1
"""The version of what is written. A reader knows all versions up to its own."""


@dataclass(frozen=True, slots=True)
class RunBegun:
    """The first entry of a run. `now` is the time that its plans see, `version` that of toolplan."""

    run_id: str
    request: str = ""
    mode: str = "plan"
    is_callers_plan: bool = False
    """Whether the plan was given by whoever asked for the run, so that its words are theirs."""
    now: str = ""
    version: str = ""
    at: str = ""
    policy: str = ""
    policy_fingerprint: str = ""
    """The policy that it was begun under; empty in runs that older versions have written."""
    user: str = ""
    """Whom the policy knows as the user."""
    max_calls: int | None = None
    max_seconds: float | None = None
    """The budgets of the whole run."""
    trust_repairs: bool | None = None
    """Whether what was mended of its plans was trusted; None in runs that older versions have written."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was said and done before the request, in a conversation, as plans and turns of this run build on it.

    What the policy goes by (`said`, `sources`, `has_read_untrusted`) is always there; the rest is left out when it
    holds secrets.
    """

    messages: list[Json] = field(default_factory=list["Json"])
    told: str | None = None
    """The same for a plan's prompt."""
    known: Json = None
    said: list[str] = field(default_factory=list[str])
    sources: dict[str, Json] = field(default_factory=dict[str, "Json"])
    has_read_untrusted: bool = False
    used: list[str] = field(default_factory=list[str])
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class Inferred:
    """A model was asked, for a plan, an answer or a step. What it said in a loop is a `ModelSaid` instead."""

    purpose: str
    usage: dict[str, Json] = field(default_factory=dict[str, "Json"])


@dataclass(frozen=True, slots=True)
class LoopBegun:
    """From here the request is answered turn by turn; what the turns depend on besides what the model says."""

    mode: str = "loop"
    """What was asked for: `auto` where there was no plan."""
    reason: str = ""
    failure: str = "written-order"
    max_turns: int = 20
    max_repeats: int = 3
    can_ask: bool = False
    """Whether the model may ask the user."""
    shown: list[str] | None = None
    """The tools that the model was shown at first, where a router chose them."""


@dataclass(frozen=True, slots=True)
class ModelSaid:
    """What a model said in a loop, as it came: the next turn is this, whoever goes on with the run.

    `calls` are those that it made; `heard` the calls in its text, with their tools' own names, where they stand there.
    `kept` is what its provider wants back with it.
    """

    text: str = ""
    calls: list[Json] = field(default_factory=list["Json"])
    heard: list[Json] = field(default_factory=list["Json"])
    finish_reason: str | None = None
    thinking: str = ""
    kept: Json = None
    notes: list[str] = field(default_factory=list[str])
    model: str = ""
    usage: dict[str, Json] = field(default_factory=dict[str, "Json"])


@dataclass(frozen=True, slots=True)
class PlanBegun:
    """A plan and everything that has to be the same when it is resumed.

    `plan` is the canonical JSON notation, `tools` says of each tool that the plan uses what it was
    (`tools/fingerprint.py`), `settings` are those of the scheduler (`schedule/setup.py`), `known` is what earlier plans
    had left.
    """

    plan: Json
    tools: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    settings: dict[str, Json] = field(default_factory=dict[str, "Json"])
    known: Json = None
    mended: bool = False
    """Whether its text had to be mended to be read, or is unclear, so that its effects need a person's word."""
    repairs: list[str] = field(default_factory=list[str])
    """What had to be mended or is unclear, one sentence each."""
    notation: str = "json"
    """The notation in which it was written."""
    ids: list[str] = field(default_factory=list[str])
    """The ids of its steps, where they are not those after the ids that are used up: a loop leaves calls out."""


@dataclass(frozen=True, slots=True)
class EffectStarted:
    """A call with an effect leaves now. `arguments` are as shown to people: secrets are left out."""

    key: int
    step: str
    tool: str
    attempt: int
    idempotency_key: str
    arguments: Json = None
    at_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's word on the call of a step. `bound` is the hash of what was shown: it holds for nothing else (I5)."""

    answer: Literal["allow", "deny"]
    step: str = ""
    bound: str = ""
    tool: str = ""
    rules: list[str] = field(default_factory=list[str])
    """The rules that asked."""
    planned: bool = False
    """Whether it was asked before the run, so that it holds for each call of the step."""
    scope: Literal["once", "run", "pattern"] = "once"
    arguments: Json = None
    """The arguments that the person has changed."""
    pattern: Json = None
    each_call: bool = False
    reason: str = ""
    by: str = ""
    at: str = ""
    call: str = ""
    """The hash of the call alone: a refusal, and a change of its arguments, hold whatever the policy is by then."""
    policy: str = ""
    """The fingerprint of the policy that asked: a yes holds under no other. Empty in older versions' entries."""


@dataclass(frozen=True, slots=True)
class StepResolved:
    """What a person, or the tool's probe, found out about an effect that was started and not finished."""

    key: int
    step: str
    how: Literal["happened", "did_not_happen", "fail"]
    result: Json = None
    reason: str = ""
    by: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class SecretLeftOut:
    """The entry before this one holds less than was there: secrets are not written down. `what` names its kind."""

    what: str


@dataclass(frozen=True, slots=True)
class RunResumed:
    """Another process, or the same one again, took the run up."""

    holder: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over, or waits. `questions` are what it waits for."""

    outcome: str
    text: str | None = None
    error: str | None = None
    questions: list[Json] = field(default_factory=list["Json"])
    at: str = ""


Entry: TypeAlias = (
    RunBegun
    | Earlier
    | Inferred
    | LoopBegun
    | ModelSaid
    | PlanBegun
    | EffectStarted
    | Decision
    | StepResolved
    | SecretLeftOut
    | RunResumed
    | RunEnded
    | Event
)

KINDS: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        RunBegun,
        Earlier,
        Inferred,
        LoopBegun,
        ModelSaid,
        PlanBegun,
        EffectStarted,
        Decision,
        StepResolved,
        SecretLeftOut,
        RunResumed,
        RunEnded,
        *(cls for cls in cast("tuple[type[Any], ...]", schedule_events.Event.__args__) if cls is not JournalLost),
    )
}


def encode(entry: Entry) -> tuple[str, str]:
    """Return the row of an entry: its kind and its fields as JSON text, defaults left out."""
    body: dict[str, Any] = {}
    for item in dataclasses.fields(entry):
        value = getattr(entry, item.name)
        if value == _default(item) and type(value) is type(_default(item)):
            continue
        body[item.name] = sorted(cast("frozenset[str]", value)) if isinstance(value, frozenset) else value
    return type(entry).__name__, to_text(body)


def to_text(body: Mapping[str, Any]) -> str:
    """Return the fields of a row as JSON text."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text if is_text(text) else json.dumps(body, separators=(",", ":"))


def decode(kind: str, body: str) -> Entry:
    """Return the entry of a row. Raises `JournalMismatch` for a kind or field that this version does not know."""
    cls = KINDS.get(kind)
    if cls is None:
        raise JournalMismatch(f"the journal holds an entry `{kind}`, which this version of toolplan does not know")
    try:
        fields = json.loads(body)
        return cls(**fields)
    except (ValueError, TypeError) as error:
        raise JournalMismatch(f"the journal holds an entry `{kind}` that this version cannot read: {error}") from error


def _default(item: dataclasses.Field[Any]) -> Any:
    if item.default is not dataclasses.MISSING:
        return item.default
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return dataclasses.MISSING
