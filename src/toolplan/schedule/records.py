"""The records of a run: one row a call or question, as `RunResult.steps` shows them.

A loop may make a million calls, and a row for each is most of what a run would keep in memory. So of the calls that one
step makes in loops, only the first `KEPT` that succeed without an effect keep a row; of the others the number is kept
(`omitted`). A call that has an effect, fails, is cancelled or is left out always keeps its row.
"""

from __future__ import annotations

from typing import cast

from toolplan.plan import Call
from toolplan.schedule.events import StepOutcome, StepRecord
from toolplan.schedule.order import Path
from toolplan.schedule.program import Collect, Node
from toolplan.schedule.state import Frame, Instance

__all__ = ["KEPT", "NOT_NEEDED", "Records"]

KEPT = 10_000
"""How many effect-free calls of one step in loops keep their row when they succeed."""

NOT_NEEDED = "its result was not needed: the plan did not come to this step"


class Records:
    """What happened, in the order in which it began; `path` sorts it by written order."""

    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.omitted: dict[str, int] = {}
        """Of how many calls that succeeded there is no row, by the id of the step."""
        self._rows: dict[str, int] = {}  # rows of effect-free calls in loops, by the id of the step

    def _begin_record(self, inst: Instance, word: str) -> StepRecord:
        """Open the row of a step, as one that runs."""
        node, label = inst.node, inst.frame.label
        record = StepRecord(node.id + label, word, inst.path, inst.arguments, origins=inst.origins)
        inst.record = record
        if label and node.early:
            rows = self._rows.get(node.id, 0)
            if rows >= KEPT:
                inst.loose = True
                return record
            self._rows[node.id] = rows + 1
        self.records.append(record)
        return record

    def _record(self, inst: Instance, outcome: StepOutcome, *, error: str | None = None) -> StepRecord | None:
        """Note how a call or a question ended; other steps leave no record unless they fail."""
        record = inst.record
        if record is None:
            step = inst.node.step
            if inst.node.word:
                record = self._begin_record(inst, inst.node.word)
            elif outcome == "failed" and not isinstance(step, Collect):
                record = self._begin_record(inst, _word(step))
            else:
                return None
        record.outcome = outcome
        record.error = error
        if inst.loose and outcome != "running":
            self._keep(inst, record)
        return record

    def _record_success(self, inst: Instance) -> None:
        """Count a call that succeeded and keeps no row."""
        self.omitted[inst.node.id] = self.omitted.get(inst.node.id, 0) + 1

    def _record_unneeded(self, inst: Instance) -> None:
        """Note that what a call did is dropped, because written order does not come to it (`speculate`)."""
        record = inst.record
        if record is None:
            return
        if inst.loose:
            if record.outcome == "succeeded":
                self.omitted[inst.node.id] -= 1
            self._keep(inst, record)
        record.outcome = "cancelled" if record.attempts else "not_run"
        record.result = None
        record.error = NOT_NEEDED

    def _keep(self, inst: Instance, record: StepRecord) -> None:
        inst.loose = False
        self.records.append(record)

    # What was not run ---------------------------------------------------------------------------------------------

    def _record_frame_not_run(self, frame: Frame) -> None:
        for inst in frame.children.values():
            inner = [inst.inner] if inst.inner is not None else []
            inner += inst.loop.live.values() if inst.loop is not None else ()
            for body in inner:
                self._record_frame_not_run(body)
            if not inner and inst.record is None:
                self._record_not_run(inst.node, inst.path, frame.label)
        self._record_rest_not_run(frame, frame.next)

    def _record_rest_not_run(self, frame: Frame, begin: int) -> None:
        for index in range(begin, frame.end):
            self._record_not_run(frame.block.nodes[index], (*frame.path, index), frame.label)

    def _record_not_run(self, node: Node, path: Path, label: str) -> None:
        if node.kind is Call:
            step = cast(Call, node.step)
            self.records.append(StepRecord(step.id + label, step.tool, path, outcome="not_run"))
        else:
            self._record_bodies_not_run(node, path, label)

    def _record_bodies_not_run(self, node: Node, path: Path, label: str) -> None:
        for number, block in enumerate(node.blocks):
            for index, inner in enumerate(block.nodes):
                self._record_not_run(inner, (*path, number, index), label)


def _word(step: object) -> str:
    return {"If": "if", "ForEach": "for_each", "While": "while"}.get(type(step).__name__, type(step).__name__.lower())
