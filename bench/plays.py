"""What the plays of public task sets share: calls as a plan, calls that take a while, and who overlapped whom."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from toolplan import Tool
from toolplan.run.events import StepFinished, StepStarted
from toolplan.tools.declaration import Facts

__all__ = ["Document", "Overlaps", "Stage", "after_a_while", "plan_of", "sample", "share"]

T = TypeVar("T")

Call = tuple[str, Mapping[str, Any]]
"""A tool's name and its arguments."""


def plan_of(calls: Iterable[Call], *, may_fail: Iterable[int] = ()) -> list[Any]:
    """Return the JSON plan that makes these calls, in this order. Those at `may_fail` say `on_error: skip`."""
    skipping = set(may_fail)
    return [
        {
            "tool_name": name,
            "arguments": {key: _constant(value) for key, value in arguments.items()},
            **({"on_error": "skip"} if number in skipping else {}),
        }
        for number, (name, arguments) in enumerate(calls)
    ]


def _constant(value: Any) -> Any:
    """Return the value as a plan writes it when no part of it is to be taken for a reference."""
    return {"$literal": value} if "{" in json.dumps(value) else value


def after_a_while(function: Callable[..., Any], seed: str, at_most_seconds: float) -> Callable[..., Any]:
    """Return the function, each call of which first waits: as long for the same arguments, differently for others.

    So calls that overlap end in another order than they were written in, the same one in every run.
    """

    def run(**arguments: Any) -> Any:
        time.sleep(random.Random(f"{seed} {arguments}").random() * at_most_seconds)
        return function(**arguments)

    return run


@dataclass(frozen=True)
class Document:
    """What is published about a function: its name, what it does, and the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Stage:
    """The tools of some functions, made once; what a call does is in `methods` and changes from task to task."""

    def __init__(self, documents: Iterable[Document], effects: Mapping[str, Facts]) -> None:
        """`effects` says what each function declares; empty for nothing."""
        self.methods: Mapping[str, Callable[..., Any]] = {}
        self.tools = [
            Tool.from_schema(d.name, d.description, d.parameters, self._caller(d.name), **effects.get(d.name, {}))
            for d in documents
        ]

    def _caller(self, name: str) -> Callable[..., Any]:
        return lambda **arguments: self.methods[name](**arguments)


class Overlaps:
    """A watcher of runs that counts calls, and those of them that were under way together with another one."""

    def __init__(self) -> None:
        self.calls = 0
        self.overlapped = 0
        self._running: dict[str, bool] = {}
        """Each call under way: whether it has been counted as overlapped."""

    def __call__(self, event: object) -> None:
        if isinstance(event, StepStarted):
            self.calls += 1
            others = bool(self._running)
            for step in [step for step, counted in self._running.items() if not counted and others]:
                self._running[step] = True
                self.overlapped += 1
            self._running[event.step] = others
            self.overlapped += others
        elif isinstance(event, StepFinished):
            self._running.pop(event.record.id, None)


def sample(items: Sequence[T], count: int) -> list[T]:
    """Return `count` of the items at equal distances, always the same ones; all when there are no more."""
    if len(items) <= count:
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]


def share(part: int, whole: int) -> str:
    """Return the part in per cent of the whole."""
    return f"{part / whole:.0%}" if whole else "-"
