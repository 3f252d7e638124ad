"""Carrying a request out in view of the user: one event loop, one view, and a result even when it was interrupted."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolplan.agent import Agent, AgentEvent, ModelAsked, ModelReplied, PlanAccepted, Result
from toolplan.answer import failure_text
from toolplan.check import CheckedPlan
from toolplan.cli.outputs import INTERRUPTED, print_result
from toolplan.cli.person import Person, is_there
from toolplan.cli.progress import watching
from toolplan.cli.streams import warn
from toolplan.cli.words import WORDS, Tongue
from toolplan.errors import ModelError
from toolplan.models import Usage
from toolplan.plan import Plan
from toolplan.policy import PlannedCall
from toolplan.run import StepFinished, StepStarted
from toolplan.schedule import StepRecord

__all__ = ["Manner", "carry_out"]

See: TypeAlias = Callable[[AgentEvent], None]
Work: TypeAlias = Callable[[Agent, See], Awaitable[Result]]
"""What an agent is to do; it is told whom to tell every event."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a command shows what happens, and whether it asks a person."""

    language: Tongue = "en"
    yes: bool = False
    as_json: bool = False
    quiet: bool = False
    trace: bool = False


def carry_out(make_agent: Callable[..., Agent], work: Work, manner: Manner) -> int:
    """Let the agent work in view of the user and print what came of it; return the exit code."""
    as_json, language = manner.as_json, manner.language
    interrupted = False
    with watching(sys.stderr, language=language, quiet=manner.quiet or as_json, trace=manner.trace) as view:
        person = Person(language, view.paused) if is_there() and not as_json else None
        approve = _allow_all if manner.yes else person.approve if person else None
        agent = make_agent(approve=approve, ask_user=person.answer if person else None)
        try:
            result = _result_of(agent, work, view.see, language)
        except _Interrupted as interruption:
            result, interrupted = interruption.result, True
    if person is not None and not manner.quiet:
        warn()  # the answer stands apart
    code = print_result(result, language, as_json=as_json)
    return INTERRUPTED if interrupted else code


def _allow_all(calls: Sequence[PlannedCall], checked: CheckedPlan) -> bool:
    return True


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C while a request was carried out; `result` says what had happened by then."""

    def __init__(self, result: Result) -> None:
        super().__init__("interrupted")
        self.result = result


def _result_of(agent: Agent, work: Work, see: See, language: Tongue) -> Result:
    """Return the result of the agent's work. When the model cannot be reached, the result says so.

    Raises `_Interrupted` on Ctrl-C, after everything that can be ended has ended.
    """
    memory = _Memory(agent)

    def told(event: AgentEvent) -> None:
        memory.keep(event)
        see(event)

    async def main() -> Result:
        try:
            return await work(agent, told)
        finally:
            await agent.close()

    try:
        return asyncio.run(main())
    except ModelError as error:
        return memory.result(error.message, language)
    except SystemExit as error:  # a tool called `sys.exit`
        return memory.result(f"a tool ended the program (SystemExit: {error.code})", language)
    except KeyboardInterrupt:
        raise _Interrupted(memory.result(WORDS[language]["interrupted"], language)) from None


class _Memory:
    """What has happened so far, for a request that does not come to its own end."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._steps: dict[str, StepRecord] = {}
        self._inferences = 0
        self._usage = Usage()
        self._plan: Plan | None = None

    def keep(self, event: AgentEvent) -> None:
        match event:
            case ModelAsked():
                self._inferences += 1
            case ModelReplied(usage=usage):
                self._usage += usage
            case PlanAccepted(checked=checked):
                self._plan = checked.plan
            case StepStarted(step=step, tool=tool, arguments=arguments, at_seconds=at):
                self._steps[step] = StepRecord(step, tool, arguments=arguments, started_seconds=at)
            case StepFinished(record=record):
                self._steps[record.id] = record
            case _:
                pass

    def result(self, error: str, language: Tongue) -> Result:
        """Return a failed result: `error`, and every step as far as it got."""
        steps = [self._settled(step) for step in self._steps.values()]
        changing = frozenset(tool.name for tool in self._agent.tools if tool.effects.has_effects)
        answer = failure_text(error, None, steps, changing, language)
        source = self._plan.source if self._plan else None
        return Result(
            "failed", answer, tuple(steps), self._inferences, self._usage, plan=self._plan, error=error, source=source
        )

    def _settled(self, step: StepRecord) -> StepRecord:
        """Return the record of a step that was cut off as what is known of it: nothing, if it may change something."""
        if step.outcome != "running":
            return step
        tool = self._agent.tools.get(step.tool)
        unknown = tool is not None and tool.effects.has_effects
        return dataclasses.replace(step, outcome="unknown" if unknown else "cancelled", error="interrupted")
