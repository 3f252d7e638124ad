"""The classic loop: the model asks for calls, sees every result, and goes on until it answers in words.

    messages -> (model) -> calls -> one turn at the gate -> results -> messages
                   | words
                   v
                 answer

Each turn's calls are a fragment of a plan and pass the same checker, policy and engine (P7). The conversation keeps the
provider's valid shape: every call is answered exactly once, in order. The loop ends with an answer, or clearly: too
many turns, a model that goes round in circles, is cut off or says nothing twice, a person who has to speak first.

Of a loop with a journal everything that the model says is written down before its calls are made, so another process
can tell the loop again as far as it got and go on (`retelling.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from toolplan.agent_events import CallsRequested
from toolplan.answer import approval_text, failure_text
from toolplan.diagnostics import Source
from toolplan.errors import ModelError
from toolplan.journal import LoopBegun
from toolplan.loop.calls import Answer, Answered, Gate, TurnCaller
from toolplan.loop.early import Arriving
from toolplan.loop.heard import Ear, Heard, as_written, hear
from toolplan.loop.offered import Offered
from toolplan.loop.repeats import Repeats
from toolplan.loop.trim import fitting
from toolplan.models import Message, Reply, ToolCallPart, ToolResultPart
from toolplan.plan import Plan
from toolplan.prompt import loop_rules, loop_words, result_text
from toolplan.result import Result
from toolplan.spoken import entry_of_reply
from toolplan.turn import Turn
from toolplan.values import Json

if TYPE_CHECKING:
    from toolplan.agent import Agent

__all__ = ["Loop"]

RESULT_ROOM = 12_000
"""A result is shown in so many characters, about."""
PATIENCE = 2
"""So many useless turns in a row end the loop: cut off, empty, or nothing but repeated calls."""


class Loop:
    """One request, answered turn by turn, as it was `begun`. `before` is what was said earlier in the conversation."""

    def __init__(self, agent: Agent, turn: Turn, gate: Gate, begun: LoopBegun, before: Sequence[Message] = ()) -> None:
        self._agent = agent
        self._turn = turn
        self._words = loop_words(agent.language, turn.request)
        self._begun = begun
        self._can_ask = begun.can_ask
        self._offered = self._offer()
        used = [self._offered.real(call.name) for message in before for call in message.tool_calls]
        if turn.offer.show(used):  # not every provider takes calls of tools that are not there any more
            self._offered = self._offer()
        self._caller = TurnCaller(
            gate,
            agent.tools,
            self._words,
            Repeats(begun.max_repeats),
            self._shown,
            turn.tell,
            can_ask=begun.can_ask,
            holds_back=begun.failure != "independent",
            steps=turn.past.known.steps,
        )
        rules = loop_rules(
            turn.request,
            language=agent.language,
            now=turn.now,
            context=agent.context,
            extra_rules=agent.extra_rules,
        )
        self._system = Message("system", rules)
        self._before = [self._native(message) for message in before]
        self._talk: list[Message] = [Message("user", turn.request)]
        self._useless = 0

    async def run(self) -> Result:
        """Return the end of the request.

        Raises `ModelError` when the model cannot be reached at first, also by a process that goes on with the loop;
        later on that is a part of the result, with everything that was done.
        """
        most, has_asked = self._begun.max_turns, False
        for number in range(1, most + 1):
            try:
                reply = await self._turn.next_turn(self._sent(), self._offered.specs, await self._ear())
            except ModelError as error:
                if not has_asked:
                    raise
                return self._stopped(f"there is no next turn: {error}")
            heard = hear(reply, self._offered)
            if self._turn.is_live:
                has_asked = True
                self._note(reply, heard)
            if reply.is_cut_off and (heard.calls or not heard.text):
                end = self._useless_turn(heard.text, self._words.cut_off, "the model's replies are cut off")
            elif heard.calls:
                end = await self._calls(heard, number)
            elif heard.text:
                return self._answered(heard, reply)
            else:
                why = ": ".join(("the model says nothing", *reply.notes[-1:]))
                end = self._useless_turn("", self._words.silent, why)
            if end is not None:
                return end
        return self._stopped(f"there is no answer after {most} turns, which is the limit (max_turns)")

    # Turns --------------------------------------------------------------------------------------------------------

    async def _calls(self, heard: Heard, number: int) -> Result | None:
        """Make the calls of a turn and note their results; return the end of the request, if this is one."""
        real = self._offered.real
        asked = tuple((real(call.name), call.arguments_text) for call in heard.calls)
        self._turn.tell(CallsRequested(number, asked))
        finds = {n: self._find(call) for n, call in enumerate(heard.calls) if call.name == self._offered.finder}
        calls = [call for number, call in enumerate(heard.calls) if number not in finds]
        self._turn.begin_run()
        answered = await self._caller.make(
            [as_written(call, self._offered) for call in calls],
            self._turn.offer.others,
        )
        made = iter(answered.answers)
        answers = [finds[number] if number in finds else next(made) for number in range(len(heard.calls))]
        results = [
            ToolResultPart(call.id, call.name, answer.text, answer.is_error)
            for call, answer in zip(heard.calls, answers, strict=True)
        ]
        if answered.guessed:
            self._turn.offer.reasked += 1
            self._turn.shows(self._turn.offer.show(answered.guessed), "the model called what it had not been shown")
        if answered.guessed or finds:
            self._offered = self._offer()
        self._talk += [heard.message, Message("tool", tool_results=tuple(results))]
        self._turn.plan = Plan(tuple(self._caller.made), source=Source(""), notation="calls")
        if answered.asks or answered.waits is not None:
            return self._waiting(answered)
        if self._turn.record.has_failed:
            return self._stopped(f"nothing more can be written down: {self._turn.record.failure}")
        idle = answered.repeated + sum(answer.is_error for answer in finds.values())
        self._useless = self._useless + 1 if idle == len(heard.calls) else 0
        if self._useless >= PATIENCE:
            name = asked[-1][0]
            return self._stopped(
                f"the model goes round in circles: it asks for the same call of `{name}` again and again"
            )
        return None

    def _note(self, reply: Reply, heard: Heard) -> None:
        """Write down what the model has said, before anything of it is done."""
        if self._turn.record.journal is not None:
            real = self._offered.real
            calls = [(real(call.name), call.arguments) for call in heard.calls]
            self._turn.record.note(entry_of_reply(reply, calls))

    def _offer(self) -> Offered:
        others = self._turn.offer.others
        return Offered(self._agent.tools, self._words, can_ask=self._can_ask, others=others)

    def _find(self, call: ToolCallPart) -> Answer:
        """Show the tools that the model looks for."""
        new = self._turn.offer.search(call.arguments_text)
        if not new:
            return Answer(self._words.found_none, True)
        self._turn.shows(new, "the model looked for more")
        return Answer(self._words.found.format(names=", ".join(map(self._offer().native, new))))

    def _useless_turn(self, text: str, told: str, why: str) -> Result | None:
        """Tell the model what was wrong with its reply; return the end of the request when it is not the first time."""
        self._useless += 1
        if self._useless >= PATIENCE:
            return self._stopped(why)
        if text:
            self._talk.append(Message("assistant", text))
        self._talk.append(Message("user", told))
        return None

    async def _ear(self) -> Ear | None:
        """Return what hears the next reply while it arrives, for whoever watches and for calls that may start."""
        turn = self._turn
        if not turn.starts_early:
            return Ear(self._offered, turn.said, turn.starts_over) if turn.watch is not None else None
        await turn.early.close()  # what the turn before has asked for, and not made after all
        turn.early.go_on()
        arriving = Arriving(turn.early, self._caller, self._offered, turn.offer.others)

        def start_over() -> None:
            turn.starts_over()
            arriving.begin()

        return Ear(self._offered, turn.said, start_over, arriving.hear)

    def _sent(self) -> tuple[Message, ...]:
        budget = self._turn.past.budget
        return fitting(self._system, self._before, self._talk, budget, self._words.left_out)

    def _native(self, message: Message) -> Message:
        """Return a message of the past with the names under which tools are offered now."""
        native = self._offered.native
        calls = tuple(replace(call, name=native(call.name)) for call in message.tool_calls)
        results = tuple(replace(result, name=native(result.name)) for result in message.tool_results)
        return replace(message, tool_calls=calls, tool_results=results)

    def _shown(self, value: Json) -> str:
        room = min(RESULT_ROOM, self._turn.room)
        return result_text(value, language=self._agent.language, request=self._turn.request, room=room)

    # Ends ---------------------------------------------------------------------------------------------------------

    def _answered(self, heard: Heard, reply: Reply) -> Result:
        self._talk.append(heard.message)
        self._turn.talk = tuple(self._talk)
        where = "at the model's length limit" if reply.finish_reason == "length" else f"({reply.finish_reason})"
        error = f"the answer was cut off {where}" if reply.is_cut_off else None
        return self._turn.result("succeeded", heard.text, error=error)

    def _waiting(self, answered: Answered) -> Result:
        turn = self._turn
        turn.talk = tuple(self._talk)
        if answered.waits is not None:
            return turn.waits_for_people(answered.waits)
        turn.card = answered.card
        calls = [(call.step, call.tool) for call in answered.asks]
        text = approval_text(calls, turn.language, refused=False, rest=bool(turn.steps))
        return turn.result("waiting", text, error="the calls wait for approval", approvals=answered.asks)

    def _stopped(self, why: str) -> Result:
        turn = self._turn
        changes = frozenset(tool.name for tool in self._agent.tools if tool.effects.has_effects)
        text = failure_text(why, None, turn.steps, changes, turn.language)
        self._talk.append(Message("assistant", text))
        turn.talk = tuple(self._talk)
        return turn.result("failed", text, error=why)
