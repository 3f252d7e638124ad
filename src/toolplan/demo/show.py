"""Showing the demos: requests, the live view, answers, and the evidence of what really happened."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from toolplan.agent import AgentEvent
from toolplan.demo.play import Demo, play
from toolplan.demo.scenarios import SCENARIOS, Scenario, Tongue
from toolplan.demo.words import MIXED, WORDS
from toolplan.errors import UsageError
from toolplan.models import Usage

__all__ = ["Output", "list_demos", "run_demos"]


@dataclass(frozen=True, slots=True)
class Output:
    """Where the demos are told: to a person line by line with `say`, or to a program in one document."""

    say: Callable[[str], None]
    say_json: Callable[[Any], None] | None = None


class Seeing(Protocol):
    """Something that shows events."""

    def see(self, event: AgentEvent) -> None:
        """Show an event."""
        ...


class Watching(Protocol):
    """Gives a view for the length of a run."""

    def __call__(self, *, language: Tongue) -> AbstractContextManager[Seeing]:
        """Return the view, in a language."""
        ...


def list_demos(output: Output) -> int:
    """List the demos; return the exit code."""
    scenarios = list(SCENARIOS.values())
    if output.say_json is not None:
        output.say_json([{"demo": s.name, "shows": s.shows, "requests": s.requests} for s in scenarios])
        return 0
    width = max(len(scenario.name) for scenario in scenarios)
    for scenario in scenarios:
        output.say(f"{scenario.name:<{width}}  {scenario.shows['en']}")
    return 0


def run_demos(
    name: str | None, language: Tongue | None, output: Output, watching: Watching, *, reply_seconds: float = 0.0
) -> int:
    """Run one demo, or all; return the exit code: 0 when each ended as it should. Raises `UsageError`.

    Everything they leave behind is in a new temporary folder, so that it can be looked at.
    """
    if name is not None and name not in SCENARIOS:
        raise UsageError(f"no demo is named `{name}`; there are {', '.join(SCENARIOS)}")
    chosen = [SCENARIOS[name]] if name is not None else list(SCENARIOS.values())
    base = Path(tempfile.mkdtemp(prefix="toolplan-demo-"))
    say = output.say if output.say_json is None else _nothing
    words = WORDS[language or (chosen[0].home if name is not None else "en")]
    say(words["what_is_real"])
    if name is None and language is None:
        say(MIXED)
    demos: list[Demo] = []
    for scenario in chosen:
        spoken = language or scenario.home
        folder = base / scenario.name
        folder.mkdir()
        _introduce(scenario, spoken, say)
        with watching(language=spoken) as view:
            demo = play(scenario, spoken, folder, view.see, reply_seconds=reply_seconds)
        demos.append(demo)
        _tell(demo, say)
    good = sum(demo.is_as_expected for demo in demos)
    if output.say_json is not None:
        output.say_json(demos[0].to_dict() if name is not None else _document(demos))
        return 0 if good == len(demos) else 1
    say("")
    if name is None:
        say(words["score"].format(count=len(demos), good=good))
    if any(path.is_file() for path in base.rglob("*")):
        say(words["folder"].format(folder=base))
    say(words["next"])
    return 0 if good == len(demos) else 1


def _nothing(text: str) -> None:
    """Say nothing."""


def _introduce(scenario: Scenario, language: Tongue, say: Callable[[str], None]) -> None:
    words = WORDS[language]
    say(f"\n== {scenario.name}: {scenario.shows[language]}")
    say(words["request"].format(text=scenario.requests[language]))
    say(words["recorded"].format(file=scenario.replies(language).name) + "\n")


def _tell(demo: Demo, say: Callable[[str], None]) -> None:
    words = WORDS[demo.language]
    say("\n" + words["answer"])
    say(_indented(demo.result.answer))
    for message in demo.mails:
        say("\n" + words["mail"].format(to=message["To"], subject=message["Subject"]))
        say(_indented(message.get_content()))
    if demo.events_before:
        unchanged = "unchanged" if demo.is_calendar_unchanged else "changed"
        say("\n" + words[unchanged].format(count=len(demo.events_after)))
    say("\n" + _cost(demo))
    if not demo.is_as_expected:
        say(words["unexpected"].format(outcome=demo.scenario.expected, mails=demo.scenario.mails))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.rstrip().splitlines())


def _cost(demo: Demo) -> str:
    """Return what it took: inferences, calls, and the time beside that of one call after the other."""
    words, result = WORDS[demo.language], demo.result
    calls = len(result.steps)
    inferences = words["inference" if result.inferences == 1 else "inferences"].format(count=result.inferences)
    if not calls:
        return words["no_call"].format(inferences=inferences)
    made = words["call" if calls == 1 else "calls"].format(count=calls)
    together, alone = demo.seconds_together, demo.seconds_one_by_one
    pattern = words["cost_saved" if alone > 1.5 * together else "cost"]
    return pattern.format(inferences=inferences, calls=made, together=together, alone=alone)


def _document(demos: list[Demo]) -> dict[str, Any]:
    """Return the document of all demos: the sum of them, and each."""
    documents = [demo.to_dict() for demo in demos]
    usage = sum((demo.result.usage for demo in demos), Usage())
    return {
        "outcome": "succeeded" if all(demo.is_as_expected for demo in demos) else "failed",
        "answer": "\n\n".join(demo.result.answer for demo in demos),
        "inferences": sum(demo.result.inferences for demo in demos),
        "usage": usage.to_dict(),
        "steps": [{"demo": document["demo"], **step} for document in documents for step in document["steps"]],
        "diagnostics": [found for document in documents for found in document["diagnostics"]],
        "plan": None,
        "demos": documents,
    }
