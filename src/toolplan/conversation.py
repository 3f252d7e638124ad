"""A conversation: requests that may speak of what was said and done before.

    talk = agent.conversation()
    await talk.send("Which tanks are too salty?")
    await talk.send("Add water to the worst of them.")

What went before is kept as exchanges: a request, what was done for it, the answer. How a model gets to see them depends
on the mode of the next request: for a plan as data with the names of results, which the plan may use; for a loop as
messages in the provider's valid shape, calls and results included. When it gets too long, the oldest exchanges are left
out, whole, so that no call ever stands without its result.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from toolplan.agent_events import Watcher
from toolplan.errors import UsageError
from toolplan.known import Known
from toolplan.models import Message, ToolCallPart, ToolResultPart
from toolplan.past import Past
from toolplan.policy import Sources
from toolplan.prompt import StepReport, earlier_text, estimate_tokens, result_text
from toolplan.replan import name_of, reports
from toolplan.result import Result
from toolplan.spoken import message_from_json, message_to_json
from toolplan.turn import Turn
from toolplan.values import Json, Value

if TYPE_CHECKING:
    from toolplan.agent import Agent

__all__ = ["Conversation", "Exchange", "trimmed"]

Mode: TypeAlias = Literal["plan", "loop", "auto"]

FORMAT = 1
"""The version of the exported form."""
_NUMBER = re.compile(r"s(\d+)")
ROOM = 2_000
"""Characters of one result that a later request gets to see; the whole value stays known by its name."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came of it. `done` has what was done, a row a step; `talk` what was said in a loop."""

    request: str
    answer: str
    outcome: str
    done: tuple[dict[str, Json], ...] = ()
    talk: tuple[Message, ...] = ()

    def told(self) -> dict[str, Json]:
        """Return the exchange as data for a prompt."""
        done: dict[str, Json] = {"done": list(self.done)} if self.done else {}
        return {"request": self.request, **done, "outcome": self.outcome, "answer": self.answer}

    def messages(self) -> tuple[Message, ...]:
        """Return the exchange in the provider's valid shape; steps of a plan become calls with their results."""
        if self.talk:
            return self.talk
        calls: list[ToolCallPart] = []
        results: list[ToolResultPart] = []
        for row in self.done:
            if "tool" not in row:
                continue
            id, tool = str(row["step"]), str(row["tool"])
            error = row.get("error")
            said = error if error is not None else row.get("result")
            calls.append(ToolCallPart(id, tool, cast("dict[str, Any]", row.get("arguments") or {})))
            text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
            results.append(ToolResultPart(id, tool, text, error is not None))
        made = (Message("assistant", "", tuple(calls)), Message("tool", tool_results=tuple(results))) if calls else ()
        return (Message("user", self.request), *made, Message("assistant", self.answer))


@dataclass
class Conversation:
    """What was said and done so far, and the way to go on. Made by `Agent.conversation`; one request at a time."""

    agent: Agent
    mode: Mode | None = None
    token_budget: int | None = None
    """What of the past is sent along, in estimated tokens; None for all of it."""
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    known: Known = field(default_factory=Known)
    """The results so far that a plan may use by their names."""
    said: tuple[str, ...] = ()
    """What the user has said so far."""
    sources: Mapping[str, Sources] = field(default_factory=dict[str, Sources])
    """Where the known results come from, for the policy."""
    has_read_untrusted: bool = False
    """Whether what was said and done so far may hold other people's text."""
    _is_busy: bool = False

    async def send(self, text: str, *, mode: Mode | None = None, watch: Watcher | None = None) -> Result:
        """Answer the next request, with what went before in view, and keep what came of it.

        Raises `UsageError` while another request of this conversation is being answered, and what `Agent.run` raises.
        Of a request that was cancelled, or ended in an error, what had been done by then is kept, so that the next one
        does not do it again; where nothing had been done, nothing is kept.
        """
        if self._is_busy:
            raise UsageError("this conversation is still answering a request; wait for it, or begin another one")
        self._is_busy = True
        try:
            turn = self.agent.turn(text, watch, mode=mode or self.mode, past=self._past(text))
            turn.going = {}
            try:
                result = await self.agent.answer_turn(turn)
            except BaseException as error:
                if any(step.outcome != "not_run" for step in turn.so_far):
                    self._keep(_broken_off(turn, error), turn)
                    self.has_read_untrusted = True  # nobody has looked into what the run had read when it ended
                raise
        finally:
            self._is_busy = False
        self._keep(result, turn)
        return result

    def send_sync(self, text: str, *, mode: Mode | None = None, watch: Watcher | None = None) -> Result:
        """`send`, from code that is not async."""
        return self.agent.run_blocking("send", self.send(text, mode=mode, watch=watch))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation in the provider's valid shape, without a system message."""
        return tuple(message for exchange in self.exchanges for message in exchange.messages())

    # What a request gets to see of the past -----------------------------------------------------------------------

    def _past(self, request: str) -> Past:
        origins = (self.said, self.sources, self.has_read_untrusted)
        if not self.exchanges:
            return Past((), None, self.known, self.token_budget, *origins)
        kept = trimmed(self.exchanges, self.token_budget)
        language = self.agent.language
        told = earlier_text(request, [exchange.told() for exchange in kept], language=language, room=10**9)
        messages = tuple(message for exchange in kept for message in exchange.messages())
        return Past(messages, told, self.known, self.token_budget, *origins, used=_used(kept))

    def _keep(self, result: Result, turn: Turn) -> None:
        """Remember an exchange, and the results that later plans may use."""
        values = dict(turn.known.values if turn.known is not None else self.known.values)
        for step in result.steps:
            if step.outcome == "succeeded":
                values.setdefault(name_of(step.id), Value(step.result, frozenset((step.id,))))
        taken = [int(found[1]) for step in result.steps if (found := _NUMBER.match(step.id))]
        self.known = Known(values, steps=max([turn.known.steps if turn.known else 0, self.known.steps, *taken]))
        self.said = tuple(turn.origins.said)
        self.sources = turn.origins.of_known(self.known)
        self.has_read_untrusted = turn.origins.has_read_untrusted
        said, _ = reports(result.steps, self.known)
        done = tuple(self._row(report, turn.request) for report in said)
        self.exchanges.append(Exchange(turn.request, result.answer, result.outcome, done, turn.talk))

    def _row(self, report: StepReport, request: str) -> dict[str, Json]:
        row = report.to_json()
        if len(json.dumps(row.get("result"), ensure_ascii=False)) > ROOM:
            row["result"] = result_text(row["result"], language=self.agent.language, request=request, room=ROOM)
        return row

    # Out and in ---------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Json]:
        """Return the conversation as a JSON document, for `Conversation.from_json` to go on with elsewhere or later."""
        groups: dict[int, tuple[list[Json], Value]] = {}
        for name, value in self.known.values.items():
            groups.setdefault(id(value), ([], value))[0].append(name)
        return {
            "format": FORMAT,
            "mode": self.mode,
            "token_budget": self.token_budget,
            "exchanges": [_exchange_json(exchange) for exchange in self.exchanges],
            "values": [
                {"names": names, "value": value.data, "origins": cast("list[Json]", sorted(value.origins))}
                for names, value in groups.values()
            ],
            "steps": self.known.steps,
            "said": list(self.said),
            "sources": {name: sources.to_json() for name, sources in self.sources.items()},
            "has_read_untrusted": self.has_read_untrusted,
        }

    @classmethod
    def from_json(cls, agent: Agent, document: Mapping[str, Any]) -> Conversation:
        """Return the conversation that `to_json` has written. Raises `UsageError` for anything else."""
        if document.get("format") != FORMAT:
            raise UsageError(
                f"this is no conversation of the format {FORMAT}: its `format` is {document.get('format')!r}"
            )
        try:
            values: dict[str, Value] = {}
            for group in document["values"]:
                value = Value(group["value"], frozenset(group["origins"]))
                values.update((str(name), value) for name in group["names"])
            exchanges = [_exchange(each) for each in document["exchanges"]]
            known = Known(values, steps=int(document["steps"]))
            said = tuple(document.get("said", [exchange.request for exchange in exchanges]))
            sources = {str(name): Sources.from_json(each) for name, each in document.get("sources", {}).items()}
            has_read = bool(document.get("has_read_untrusted", bool(exchanges)))
            return cls(agent, document["mode"], document["token_budget"], exchanges, known, said, sources, has_read)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"this conversation cannot be read: {error!r}") from error


def _broken_off(turn: Turn, error: BaseException) -> Result:
    """Return what is known of a request that did not come to its own end."""
    is_cancelled = isinstance(error, asyncio.CancelledError)
    why = "the request was cancelled" if is_cancelled else str(error) or type(error).__name__
    turn.talk = ()  # it may end in calls that nobody answered; what is kept is told from the steps
    return turn.broken_off("cancelled" if is_cancelled else "failed", why, turn.so_far)


def _used(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    """Return the tools that were called, the newest first."""
    rows = [row for exchange in reversed(exchanges) for row in reversed(exchange.done)]
    return tuple(dict.fromkeys(str(row["tool"]) for row in rows if "tool" in row))


def trimmed(exchanges: Sequence[Exchange], budget: int | None) -> list[Exchange]:
    """Return the newest exchanges that fit into about `budget` tokens, in order; whole ones, perhaps none."""
    if budget is None:
        return list(exchanges)
    kept: list[Exchange] = []
    for exchange in reversed(exchanges):
        budget -= sum(estimate_tokens(message.text) + 4 for message in exchange.messages())
        if budget < 0:
            break
        kept.append(exchange)
    return kept[::-1]


def _exchange_json(exchange: Exchange) -> Json:
    return {
        "request": exchange.request,
        "answer": exchange.answer,
        "outcome": exchange.outcome,
        "done": list(exchange.done),
        "talk": [message_to_json(message) for message in exchange.talk],
    }


def _exchange(given: Mapping[str, Any]) -> Exchange:
    talk = tuple(message_from_json(message) for message in given["talk"])
    return Exchange(given["request"], given["answer"], given["outcome"], tuple(given["done"]), talk)
