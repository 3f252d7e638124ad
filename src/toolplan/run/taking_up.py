"""Going on with a run whose process has ended: what was under way there is found out, or done again.

The journal gives the machine in the state that it was in, and the commands that were being carried out. What was no
effect is carried out again; an effect that had begun is looked into first (`recovery.py`). The places that calls had at
the limits of their tools are lost, so they wait for others.
"""

from __future__ import annotations

import asyncio

from toolplan.journal import EffectStarted, Open, Replayed, StepResolved
from toolplan.run.approvals import Ruling
from toolplan.run.calls import Stop
from toolplan.run.events import StepStarted
from toolplan.run.making import Making
from toolplan.run.recovery import misfit, what_happened
from toolplan.schedule import CallEnded, CallFailed, CallSucceeded, CancelRun, StartCall
from toolplan.tools import Tool
from toolplan.tools.secrets import shown

__all__ = ["TakingUp"]


class TakingUp(Making):
    """A run that can go on after another process."""

    _cancelled: str | None = None
    """Why the run was cancelled, if it was before it began here."""

    def _take_up(self, state: Replayed) -> None:
        """Go on with what was under way when the last process ended."""
        machine = self._machine
        self._see_again(state)
        if machine.finished is not None:
            self._done.set_result(machine.finished)
            return
        self._is_feeding = True  # nothing is looked at before everything is there
        if self._cancelled is not None:
            self._feed(CancelRun(self._cancelled))
        self._left_behind.take_up(self.run_id)
        for key in list(machine.left_behind):  # what still goes on is in the way of calls, but not of the scheduler
            self._feed(CallEnded(key))
        for command in list(state.open.values()):
            if command.key in machine.running or command.key in machine.resting:
                self._take_up_one(state, command)
        for command in machine.ask_again():
            self._carry_out(command)
        self._work_off()

    def _see_again(self, state: Replayed) -> None:
        """Note the secrets that were seen before: what this process writes and tells has none of them."""
        self._secrets.see_all(state.secrets)
        if self._journal is not None and self._journal.secrets:
            for record in self._machine.records:
                self._journal.secrets.see(record.tool, None, record.arguments or {})

    def _take_up_one(self, state: Replayed, command: Open) -> None:
        key, at = command.key, self._seconds()
        started = state.started.get(key)
        if self._machine.is_stopping:
            error = "the run was ended while this was under way, and so was its process"
            self._feed(CallFailed(key, error, "none" if started is None else "unknown", False, at, at))
        elif not isinstance(command, StartCall) or started is None:
            self._carry_out(command)
        else:
            arguments = shown(command.arguments, self._tools[command.tool])
            self._note_started(key, StepStarted(command.step, command.tool, arguments, at, command.attempt))
            self._spawn(key, self._take_up_effect(command, started, state.resolved.get(key)))

    async def _take_up_effect(self, command: StartCall, started: EffectStarted, word: StepResolved | None) -> None:
        """Find out whether an effect has happened that an earlier process has begun; if it has not, make the call."""
        key, tool = command.key, self._tools[command.tool]
        self._begin(key)
        at = self._seconds()
        event: CallSucceeded | CallFailed | None
        try:
            if self._journal is not None and self._journal.secrets:
                self._journal.secrets.see(tool.name, key, command.arguments)
            context = self._context(command, Stop())
            wrong = misfit(tool, word)
            event, found = None, None
            if wrong is None:
                event, found = await what_happened(tool, command, word, context, at, self._seconds, self._secrets)
            if found is not None and (wrong := misfit(tool, found)) is not None:
                event, found = None, None
        except asyncio.CancelledError:
            self._settle(key, self._failed(key, tool, "the call was cancelled", "unknown", at))
            return
        if event is not None:
            if word is None and self._journal is not None and found is not None:
                self._journal.add(found)
            self._settle(key, event)
        elif found is None:
            self._tasks.pop(key, None)
            instance = self._machine.running.get(key)
            if instance is not None and instance.record is not None:
                instance.record.outcome = "unknown"
                instance.record.error = wrong
            self._unsettled[key] = started
            self._stop_if_idle()
        else:
            await self._make_again(command, tool)

    async def _make_again(self, command: StartCall, tool: Tool) -> None:
        """Make a call that had left in an earlier process, so that it was allowed with these values.

        That it is forbidden by now counts all the same.
        """
        guard = self._guard if self._guard is not None and self._guard.watches(command.step) else None
        ruling = guard.judge(command.step, command.arguments) if guard is not None else None
        if guard is not None and isinstance(ruling, Ruling) and not ruling.allowed:
            await self._call_if_allowed(guard, command, tool, ())
        else:
            await self._calls_in_turn(command, tool, ())
