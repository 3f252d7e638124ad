"""Running the demos and showing what they did: the live view, the answer, the mails that were really written."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from toolplan.agent import Agent, AgentEvent, Result
from toolplan.demo.scenarios import SCENARIOS, Scenario, Tongue
from toolplan.errors import UsageError
from toolplan.models import ScriptedModel, Usage

__all__ = ["Demo", "run_demo", "run_demos"]

Watch = Callable[[AgentEvent], None]
Watching = Callable[[TextIO], AbstractContextManager["Watch | None"]]


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that has run: its result, the mails it left, and whether all is as it should be."""

    scenario: Scenario
    language: Tongue
    result: Result
    mails: tuple[email.message.EmailMessage, ...]

    @property
    def is_as_expected(self) -> bool:
        """Whether outcome and mails are those that the scenario is about."""
        return self.result.outcome == self.scenario.expected and len(self.mails) == self.scenario.mails

    def to_dict(self) -> dict[str, Any]:
        """Return the demo as JSON: the result's document with the demo's name, request and mails."""
        mails = [{"to": m["To"], "subject": m["Subject"], "body": m.get_content()} for m in self.mails]
        named = {"demo": self.scenario.name, "request": self.scenario.requests[self.language]}
        return {**named, **self.result.to_dict(), "mails": mails, "as_expected": self.is_as_expected}


def run_demo(scenario: Scenario, language: Tongue, folder: Path, watch: Watch | None = None) -> Demo:
    """Run one scenario in an empty folder, on its recorded reply."""
    agent = Agent(
        ScriptedModel(scenario.replies(language)),
        scenario.prepare(folder, language),
        language=language,
        now=scenario.now,
    )
    result = asyncio.run(agent.run(scenario.requests[language], watch=watch))
    outbox = folder / "outbox"
    mails = [
        email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        for path in sorted(outbox.glob("**/*.eml") if outbox.is_dir() else [])
    ]
    return Demo(scenario, language, result, tuple(m for m in mails if isinstance(m, email.message.EmailMessage)))


def run_demos(
    name: str | None,
    *,
    language: Tongue | None,
    list_only: bool,
    as_json: bool,
    watching: Watching,
) -> int:
    """Run one demo or all; return the exit code: 0 when each ended as it should. Raises `UsageError`."""
    if name is not None and name not in SCENARIOS:
        raise UsageError(f"no demo is named `{name}`; there are {', '.join(SCENARIOS)}")
    chosen = [SCENARIOS[name]] if name is not None else list(SCENARIOS.values())
    if list_only:
        _list(chosen, as_json=as_json)
        return 0
    if not as_json:
        print("The model's replies in these demos are recordings; everything else is real.")
    base = Path(tempfile.mkdtemp(prefix="toolplan-demo-"))
    demos: list[Demo] = []
    for scenario in chosen:
        folder = base / scenario.name
        folder.mkdir()
        spoken = language or scenario.home
        if not as_json:
            print(f"\n=== {scenario.name}: {scenario.shows}\n> {scenario.requests[spoken]}\n", flush=True)
        with watching(sys.stdout) as watch:
            demo = run_demo(scenario, spoken, folder, watch)
        demos.append(demo)
        if not as_json:
            _print(demo, folder)
    if as_json:
        print(json.dumps(_document(demos, single=name is not None), ensure_ascii=False, indent=2))
    return 0 if all(demo.is_as_expected for demo in demos) else 1


def _list(scenarios: list[Scenario], *, as_json: bool) -> None:
    if as_json:
        listed = [{"demo": s.name, "shows": s.shows, "requests": dict(s.requests)} for s in scenarios]
        print(json.dumps(listed, ensure_ascii=False, indent=2))
        return
    width = max(len(scenario.name) for scenario in scenarios)
    for scenario in scenarios:
        print(f"{scenario.name:<{width}}  {scenario.shows}")


def _print(demo: Demo, folder: Path) -> None:
    result = demo.result
    print(f"\n{result.answer}\n")
    for message in demo.mails:
        print(f"outbox: a mail to {message['To']}, subject “{message['Subject']}”:")
        print("\n".join(f"    {line}" for line in message.get_content().rstrip().splitlines()))
    if demo.mails:
        print(f"    (in {folder / 'outbox'})\n")
    print(_cost(result))
    if not demo.is_as_expected:
        print(f"This is not how it should have ended (expected: {demo.scenario.expected}).", file=sys.stderr)


def _cost(result: Result) -> str:
    inferences = f"{result.inferences} inference" + ("" if result.inferences == 1 else "s")
    times = [(s.started_seconds, s.finished_seconds) for s in result.steps]
    spans = [(start, end) for start, end in times if start is not None and end is not None]
    if not spans:
        return f"{inferences}; no call was made"
    together = max(end for _, end in spans) - min(start for start, _ in spans)
    alone = sum(end - start for start, end in spans)
    calls = f"{len(spans)} call" + ("" if len(spans) == 1 else "s")
    return f"{inferences}; {calls} in {together:.2f} s (one by one: {alone:.2f} s)"


def _document(demos: list[Demo], *, single: bool) -> dict[str, Any]:
    """Return the JSON document: that of the only demo, or one that sums all of them up."""
    if single:
        return demos[0].to_dict()
    documents = [demo.to_dict() for demo in demos]
    usage = sum((demo.result.usage for demo in demos), Usage())
    return {
        "outcome": "succeeded" if all(demo.is_as_expected for demo in demos) else "failed",
        "answer": "\n\n".join(str(document["answer"]) for document in documents),
        "inferences": sum(demo.result.inferences for demo in demos),
        "usage": usage.to_dict(),
        "steps": [step for document in documents for step in document["steps"]],
        "diagnostics": [d for document in documents for d in document["diagnostics"]],
        "plan": None,
        "demos": documents,
    }
