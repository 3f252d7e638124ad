"""Messages for a model: to plan, to mend a plan, to word an answer, to read a text.

Everything here is a function of its arguments: the same tools give the same text, to the letter. Whatever comes from
outside goes in as data: the request alone in its own message or part, results and texts between marks that cannot
occur in them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolplan.errors import UsageError
from toolplan.plan import Plan
from toolplan.prompt.concerned import concerned_tools
from toolplan.prompt.language import Language, wording_for
from toolplan.prompt.shorten import as_json, shortened
from toolplan.prompt.wording import Notation, Wording
from toolplan.tools import ToolSet, signatures
from toolplan.values import Json

__all__ = [
    "PromptMessage",
    "StepReport",
    "answer_messages",
    "plan_messages",
    "reading_messages",
    "repair_messages",
    "review_messages",
    "tools_text",
]

_REPLY_ROOM = 24_000
"""Characters of a rejected reply that are sent back; a plan of 100 steps has about 20,000."""


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message: who speaks, and the text."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class StepReport:
    """What the wording of an answer gets to know about one step."""

    step: str
    tool: str
    outcome: str
    arguments: dict[str, Json] = field(default_factory=dict[str, Json])
    result: Json = None
    error: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the report as a value, without what is empty."""
        shown: dict[str, Json] = {"step": self.step, "tool": self.tool, "outcome": self.outcome}
        if self.arguments:
            shown["arguments"] = dict(self.arguments)
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
    notation: Notation = "json",
    now: str,
    context: str | None = None,
    extra_rules: Sequence[str] = (),
) -> tuple[PromptMessage, ...]:
    """Return the messages that ask for a plan: a system message with everything, and the request, verbatim.

    `now` is the run's start as ISO text; `context` is what the application knows about the user (name, place);
    `extra_rules` are sentences of the application. Raises `UsageError` for a `now` that is no ISO date or time, an
    unknown language or an unknown notation.
    """
    words = wording_for(language, request)
    rules = _rules(words, notation)
    plans = words.example_plans[notation]
    examples = [f"{words.request_label}{asked}\n{words.reply_label}\n{reply}" for asked, reply in plans]
    system = [
        rules,
        f"{words.examples_heading}\n{words.example_tools}\n\n" + "\n\n".join(examples),
        *_application_rules(words, extra_rules),
        f"{words.tools_heading}\n{tools_text(tools) or words.no_tools}",
        *_situation(words, now, context),
    ]
    return PromptMessage("system", "\n\n".join(system)), PromptMessage("user", request)


def repair_messages(
    request: str,
    reply: str,
    diagnostics: str,
    tools: ToolSet,
    *,
    plan: Plan | None = None,
    language: Language = "auto",
    notation: Notation = "json",
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
        *_application_rules(words, extra_rules),
        f"{words.tools_heading}\n" + ("\n\n".join(text for text in (shown, listed) if text) or words.no_tools),
        *_situation(words, now, context),
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
    system = [words.answer_rules, *_application_rules(words, extra_rules)]
    if now is not None:
        system += _situation(words, now, context)
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
        *_application_rules(words, extra_rules),
        f"{words.tools_heading}\n{tools_text(tools) or words.no_tools}",
        *_situation(words, now, context),
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


def _rules(words: Wording, notation: Notation) -> str:
    if notation not in words.rules:
        raise UsageError(f"no prompt for the notation {notation!r}; write notation='json' or 'python'")
    return words.rules[notation]


def _application_rules(words: Wording, rules: Sequence[str]) -> list[str]:
    return [f"{words.rules_heading}\n" + "\n".join(f"- {rule}" for rule in rules)] if rules else []


def _situation(words: Wording, now: str, context: str | None) -> list[str]:
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
