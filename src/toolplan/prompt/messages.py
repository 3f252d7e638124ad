"""Messages for a model: to plan, to mend a plan, to word an answer, to read a text.

Everything here is a function of its arguments: the same tools give the same text, to the letter. Whatever comes from
outside goes in as data: the request alone in its own message or part, results and texts between marks that cannot
occur in them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolplan.errors import UsageError
from toolplan.plan import Plan
from toolplan.prompt.concerned import concerned_tools
from toolplan.prompt.language import Language, wording_for
from toolplan.prompt.shorten import as_json, shortened
from toolplan.prompt.wording import Form, Wording
from toolplan.tools import ToolSet, signatures
from toolplan.values import Json

__all__ = [
    "PromptMessage",
    "StepReport",
    "answer_messages",
    "application_rules",
    "earlier_text",
    "names_within",
    "plan_messages",
    "reading_messages",
    "repair_messages",
    "replan_messages",
    "replan_repair_messages",
    "review_messages",
    "situation",
    "tools_text",
]

NAMES_ROOM = 800
SUMMARIES_ROOM = 3_200
"""So many characters go to the names of tools that are not shown; more where it is told what each is for."""
_REPLY_ROOM = 24_000
"""Characters of a rejected reply that are sent back; a plan of 100 steps has about 20,000."""


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message: who speaks, and the text."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a model gets to know about one step; `name` is what a further plan calls its result."""

    step: str
    tool: str
    outcome: str
    arguments: dict[str, Json] = field(default_factory=dict[str, Json])
    result: Json = None
    error: str | None = None
    name: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the report as a value, without what is empty."""
        shown: dict[str, Json] = {"step": self.step, "tool": self.tool, "outcome": self.outcome}
        if self.arguments:
            shown["arguments"] = dict(self.arguments)
        if self.name is not None:
            shown["name"] = self.name
        if self.error is None:
            shown["result"] = self.result
        else:
            shown["error"] = self.error
        return shown


def plan_messages(
    request: str,
    tools: ToolSet,
    *,
    language: Language = "auto",
    notation: Form = "json",
    now: str,
    context: str | None = None,
    extra_rules: Sequence[str] = (),
    may_loop: bool = False,
    earlier: str | None = None,
    others: Mapping[str, str] | Sequence[str] = (),
) -> tuple[PromptMessage, ...]:
    """Return the messages that ask for a plan: a system message with everything, and the request, verbatim.

    The `notation` "small" asks for a short plan of calls only, in JSON, and takes a few hundred tokens.
    `now` is the run's start as ISO text; `context` is what the application knows about the user (name, place);
    `extra_rules` are sentences of the application. `may_loop` tells the model what it can say when only results can
    tell what to do next; `earlier` is what went before in the conversation (`earlier_text`); `others` are the names of
    tools that there are but that are not shown, the likeliest first, perhaps with what each is for. Raises `UsageError`
    for a `now` that is no ISO date or time, an unknown language or an unknown notation.
    """
    words = wording_for(language, request)
    rules = _rules(words, notation) + (words.may_loop[notation] if may_loop else "")
    plans = words.example_plans[notation]
    further = _others(words, others) if notation != "small" else ()  # a short plan has no way to ask for one
    examples = [f"{words.request_label}{asked}\n{words.reply_label}\n{reply}" for asked, reply in plans]
    system = [
        rules,
        f"{words.examples_heading}\n{words.example_tools[notation]}\n\n" + "\n\n".join(examples),
        *application_rules(words, extra_rules),
        "\n\n".join([f"{words.tools_heading}\n{tools_text(tools) or words.no_tools}", *further]),
        *situation(words, now, context),
    ]
    asked = request if earlier is None else f"{earlier}\n\n{words.request_heading}\n{request}"
    return PromptMessage("system", "\n\n".join(system)), PromptMessage("user", asked)


def earlier_text(
    request: str, exchanges: Sequence[Mapping[str, Json]], *, language: Language = "auto", room: int = 16_000
) -> str:
    """Return what went before in a conversation as data between two marks; the newest is kept when room is short."""
    words = wording_for(language, request)
    lines: list[str] = []
    for exchange in reversed(exchanges):
        line = as_json(shortened(dict(exchange), max(room // 2, 400), words))
        if lines and len(line) > room:
            break
        room -= len(line)
        lines.append(line)
    left = len(exchanges) - len(lines)
    if left:
        lines.append(words.shortened_items.format(left=left, all=len(exchanges)))
    return _between_marks(words.earlier_heading, "\n".join(reversed(lines)))


def replan_messages(
    asked: Sequence[PromptMessage],
    request: str,
    plan: str,
    stopped: Mapping[str, Json],
    reports: Sequence[StepReport],
    values: Mapping[str, Json],
    first: str,
    *,
    language: Language = "auto",
    notation: Form = "json",
    room: int = 16_000,
) -> tuple[PromptMessage, ...]:
    """Return the messages that ask for the rest of a plan: those of the plan, the plan, what came of it.

    `asked` are the messages of `plan_messages`, sent again as they were, so that a prompt cache serves them. `stopped`
    says where the plan stopped and why, `reports` what has run, `values` the other names that the rest may use, `first`
    the id of its first step. What has run is shortened to about `room` characters, and says so.
    """
    words = wording_for(language, request)
    lines: list[Json] = [report.to_json() for report in reports]
    lines += [{"name": name, "value": value} for name, value in values.items()]
    shown = shortened(lines, room, words)
    kept = shown if isinstance(shown, list) else [shown]
    data = "\n".join(as_json(line) for line in [shortened(dict(stopped), room // 4, words), *kept])
    told = f"{_between_marks(words.results_heading, data)}\n\n{words.replan[notation].format(first=first)}"
    return (
        *asked,
        PromptMessage("assistant", str(shortened(plan, _REPLY_ROOM, words))),
        PromptMessage("user", told),
    )


def replan_repair_messages(
    asked: Sequence[PromptMessage],
    request: str,
    reply: str,
    diagnostics: str,
    *,
    language: Language = "auto",
) -> tuple[PromptMessage, ...]:
    """Return the messages that ask again for the rest of a plan, when what came (`reply`) was refused."""
    words = wording_for(language, request)
    if not reply.strip():  # two messages of one speaker must not follow each other
        *before, last = asked
        told = f"{last.content}\n\n{words.repair_prose.format(diagnostics=diagnostics.strip())}"
        return (*before, PromptMessage("user", told))
    return (
        *asked,
        PromptMessage("assistant", str(shortened(reply, _REPLY_ROOM, words))),
        PromptMessage("user", words.repair.format(diagnostics=diagnostics.strip())),
    )


def repair_messages(
    request: str,
    reply: str,
    diagnostics: str,
    tools: ToolSet,
    *,
    plan: Plan | None = None,
    language: Language = "auto",
    notation: Form = "json",
    now: str,
    context: str | None = None,
    extra_rules: Sequence[str] = (),
) -> tuple[PromptMessage, ...]:
    """Return the messages that ask for a rejected plan again: rules, only the tools concerned, the plan, its findings.

    `reply` is what the model wrote, `diagnostics` the findings as rendered text, `plan` what could be read of the
    reply, if anything. Tools that are not concerned are listed by name.
    """
    words = wording_for(language, request)
    concerned = concerned_tools(tools, reply, diagnostics, plan)
    others = [name for name in tools.names if name not in concerned]
    shown = tools_text(concerned)
    listed = words.other_tools.format(names=", ".join(others)) if others else ""
    system = [
        _rules(words, notation),
        *application_rules(words, extra_rules),
        f"{words.tools_heading}\n" + ("\n\n".join(text for text in (shown, listed) if text) or words.no_tools),
        *situation(words, now, context),
    ]
    pattern = words.repair if reply.strip() else words.repair_prose
    messages = [PromptMessage("system", "\n\n".join(system)), PromptMessage("user", request)]
    if reply.strip():
        messages.append(PromptMessage("assistant", str(shortened(reply, _REPLY_ROOM, words))))
    messages.append(PromptMessage("user", pattern.format(diagnostics=diagnostics.strip())))
    return tuple(messages)


def answer_messages(
    request: str,
    reports: Sequence[StepReport],
    *,
    language: Language = "auto",
    now: str | None = None,
    context: str | None = None,
    extra_rules: Sequence[str] = (),
    room: int = 16_000,
) -> tuple[PromptMessage, ...]:
    """Return the messages that ask for the answer to a request whose steps have run.

    The reports are shortened to about `room` characters, with notes that say how much is missing, and stand between
    two marks that do not occur in them.
    """
    words = wording_for(language, request)
    shown = shortened([report.to_json() for report in reports], room, words)
    lines = shown if isinstance(shown, list) else [shown]
    system = [words.answer_rules, *application_rules(words, extra_rules)]
    if now is not None:
        system += situation(words, now, context)
    data = _between_marks(words.results_heading, "\n".join(as_json(line) for line in lines))
    return (
        PromptMessage("system", "\n\n".join(system)),
        PromptMessage("user", f"{data}\n\n{words.request_heading}\n{request}"),
    )


def review_messages(
    request: str,
    plan: str,
    tools: ToolSet,
    *,
    language: Language = "auto",
    now: str,
    context: str | None = None,
    extra_rules: Sequence[str] = (),
) -> tuple[PromptMessage, ...]:
    """Return the messages that ask for objections to a plan, given in its canonical form, before it runs."""
    words = wording_for(language, request)
    system = [
        words.review_rules,
        *application_rules(words, extra_rules),
        f"{words.tools_heading}\n{tools_text(tools) or words.no_tools}",
        *situation(words, now, context),
    ]
    asked = f"{words.request_heading}\n{request}\n\n{words.review.format(plan=plan)}"
    return PromptMessage("system", "\n\n".join(system)), PromptMessage("user", asked)


def reading_messages(
    question: str, data: Json, returns: dict[str, Json], *, language: Language = "auto", room: int = 100_000
) -> tuple[PromptMessage, ...]:
    """Return the messages of an `ask_model` step: question and data, no tools, the JSON Schema of the reply.

    Text is given as text, other data as JSON; beyond `room` characters it is shortened and says so.
    """
    words = wording_for(language, question)
    kept = shortened(data, room, words)
    shown = _between_marks(words.data_heading, kept if isinstance(kept, str) else as_json(kept))
    return (
        PromptMessage("system", words.reading_rules.format(schema=as_json(returns))),
        PromptMessage("user", f"{shown}\n\n{words.question_heading}\n{question}"),
    )


def tools_text(tools: ToolSet) -> str:
    """Return the tools as a model sees them; empty without tools."""
    return signatures(tools).strip()


def _others(words: Wording, others: Mapping[str, str] | Sequence[str]) -> list[str]:
    """Return what is said about tools that are not shown, as many as there is room for; nothing without any."""
    if not others:
        return []
    room = NAMES_ROOM
    if isinstance(others, Mapping) and any(others.values()):
        lines = "\n".join(f"- {name}: {summary}" if summary else f"- {name}" for name, summary in others.items())
        if len(lines) <= SUMMARIES_ROOM:
            return [words.other_tools.format(names=f"\n{lines}\n")]
        room = SUMMARIES_ROOM
    names = names_within(list(others), room)
    listed = words.other_tools.format(names=", ".join(names))
    left = len(others) - len(names)
    return [f"{listed} {words.more_tools.format(left=left)}" if left > 0 else listed]


def names_within(names: Sequence[str], room: int = NAMES_ROOM) -> list[str]:
    """Return the first of these names, as many as fit into so many characters; at least one, where there is one."""
    shown: list[str] = []
    for name in names:
        room -= len(name) + 2
        if room < 0 and shown:
            break
        shown.append(name)
    return shown


def _rules(words: Wording, notation: Form) -> str:
    if notation not in words.rules:
        raise UsageError(f"no prompt for the notation {notation!r}; write notation='json', 'python' or 'small'")
    return words.rules[notation]


def application_rules(words: Wording, rules: Sequence[str]) -> list[str]:
    """Return the rules of the application as a part of a prompt; nothing without any."""
    return [f"{words.rules_heading}\n" + "\n".join(f"- {rule}" for rule in rules)] if rules else []


def situation(words: Wording, now: str, context: str | None) -> list[str]:
    """Return what a prompt says about the time and the user. Raises `UsageError` for a `now` that is no ISO time."""
    try:
        day = dt.datetime.fromisoformat(now)
    except ValueError:
        raise UsageError(f"`now` is {now!r}; write an ISO date or time such as '2026-03-18T09:00'") from None
    said = [words.situation.format(now=now, weekday=words.weekdays[day.weekday()])]
    if context and context.strip():
        said.append(f"{words.context_heading}\n{context.strip()}")
    return said


def _between_marks(heading: str, data: str) -> str:
    """Return `data` between two lines that do not occur in it and that its author could not have known."""
    mark = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    while mark in data:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:12]
    line = f"=== {mark} ==="
    return f"{heading.format(mark=line)}\n{line}\n{data}\n{line}"
