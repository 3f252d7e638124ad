"""Carrying a request out in view of the user: one event loop, one view, and a result even when it was interrupted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolplan.agent import Agent, AgentEvent, Result
from toolplan.approval import Card
from toolplan.cli.outputs import INTERRUPTED, print_result
from toolplan.cli.person import Person, is_there
from toolplan.cli.progress import watching
from toolplan.cli.streams import warn
from toolplan.cli.words import WORDS, Tongue
from toolplan.errors import ModelError
from toolplan.policy import PlannedCall
from toolplan.stream import AgentStream

__all__ = ["Manner", "carry_out"]

See: TypeAlias = Callable[[AgentEvent], None]
Work: TypeAlias = Callable[[Agent], AgentStream]
"""What an agent is to do."""


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


def _allow_all(calls: Sequence[PlannedCall], card: Card) -> bool:
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
    stream = work(agent)
    interrupted = WORDS[language]["interrupted"]

    async def main() -> Result:
        seen = 0
        try:
            async with stream as run:
                try:
                    async for event in run:
                        seen += 1
                        see(event)
                except asyncio.CancelledError:  # Ctrl-C; how the calls in flight end is worth seeing, too
                    run.cancel(interrupted)
                    async for event in run.events(after=seen):
                        see(event)
                    raise
                return await run.result()
        finally:
            await agent.close()

    try:
        return asyncio.run(main())
    except ModelError as error:
        return stream.so_far("failed", error.message, language)
    except SystemExit as error:  # a tool called `sys.exit`
        return stream.so_far("failed", f"a tool ended the program (SystemExit: {error.code})", language)
    except KeyboardInterrupt:
        raise _Interrupted(stream.so_far("cancelled", interrupted, language)) from None
