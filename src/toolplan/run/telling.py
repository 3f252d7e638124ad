"""What whoever watches a run is told: each attempt's beginning and one end, in order, and nothing after the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from toolplan.run.events import RunEvent, RunFinished, StepFinished, StepLeftOut, StepStarted
from toolplan.schedule import StepRecord
from toolplan.tools import ToolSet

__all__ = ["Telling", "Watcher"]

_log = logging.getLogger("toolplan.run")

Watcher = Callable[[RunEvent], None]


class Telling:
    """Tells the watcher of a run, if there is one. A watcher that fails spoils nothing."""

    def __init__(self, watch: Watcher | None) -> None:
        self._watch = watch
        self._open: dict[int, StepRecord] = {}  # attempts whose beginning was told, and whose end was not

    def tell(self, event: RunEvent) -> None:
        """Tell an event."""
        if self._watch is None:
            return
        try:
            self._watch(event)
        except Exception:
            _log.exception("a watcher of the run failed on %s", type(event).__name__)

    def begin(self, key: int, record: StepRecord | None, event: StepStarted) -> None:
        """Tell that the attempt with this key begins; `record` is that of its step."""
        if record is not None:
            self._open[key] = record
        self.tell(event)

    def take(self, key: int) -> StepRecord | None:
        """Return the record of an attempt whose end is going to be told with `finished`."""
        return self._open.pop(key, None)

    def finished(self, record: StepRecord) -> None:
        """Tell how an attempt ended. A step that is tried again goes on; the record told is that of the attempt."""
        if record.outcome == "running":
            record = replace(record, outcome="failed")
        self.tell(StepFinished(record))

    def end(self, records: Iterable[StepRecord], tools: ToolSet, event: RunFinished) -> None:
        """Tell how every attempt ended of which that was not told, which steps were not even begun, and the end."""
        if self._watch is None:
            return
        for record in self._open.values():
            if record.outcome == "running":  # it ended the program, or nobody waited for it any more
                tool = tools.get(record.tool)
                changing = tool is not None and tool.effects.has_effects
                record = replace(record, outcome="unknown" if changing else "cancelled")
            self.tell(StepFinished(record))
        for record in sorted(records, key=lambda record: record.path):
            if not record.attempts:
                self.tell(StepLeftOut(record))
        self.tell(event)
        self._watch = None
