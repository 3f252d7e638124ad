"""Kill a run wherever it can be killed, resume it until it is done, and see that no effect was doubled or lost.

    with Witness() as witness:
        report = kill_everywhere(make_agent, plan, witness)      at every boundary between two entries of the journal
        report += kill_at_random(make_agent, plan, witness, times=50)
    assert not report.problems, report.problems

Each run is a process of its own with a real journal, killed with SIGKILL. `make_agent(journal, url)` makes the agent;
its tools tell the witness (`tell_witness`), a server in another process, when they take effect, as any service would
notice. Whether an effect that was under way has happened is asked from the witness, in place of a person, who also
allows what a run asks for. In place of a plan a `Request` may stand: the agent answers it in its mode, so that loops
are killed too; its model has to say at each place of the conversation what it said there before (`FunctionModel`).

What is checked: an effect that must not be repeated was noticed at most once; one that the run reports as finished was
noticed; every one of which nobody knew could be told. Effects of tools that are declared `idempotent` may be repeated,
with the same key, for that is what is done with them; `may_repeat` names further tools.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from toolplan.agent import Agent
from toolplan.errors import RunIsHeld
from toolplan.journal import EffectStarted, Entry, Journal, RunBegun, RunResumed, RunWriter, tell
from toolplan.journal.waiting import answer, approve, questions, resolve
from toolplan.schedule import CallSucceeded
from toolplan.tools import ToolContext

__all__ = [
    "KillReport",
    "MakeAgent",
    "Request",
    "Witness",
    "ask_witness",
    "fight_over",
    "kill_at_random",
    "kill_everywhere",
    "tell_witness",
]

MakeAgent: TypeAlias = Callable[[Journal, str], Agent]
"""Makes the agent of a process from its journal and the witness's address. A function of a module: it is sent over."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the agent is to answer, in place of a plan; `answer` is what its questions are answered with."""

    text: str
    answer: str = "yes"


ATTEMPTS = 40
"""How often a run is resumed before that is a problem of its own."""

HELD = 75
"""The exit code of a process that found another one at work on the run."""

SECONDS = 60.0
"""How long one process may take."""


@dataclass
class KillReport:
    """What came of the trials."""

    trials: int = 0
    kills: int = 0
    takeovers: int = 0
    """How often a run went over to another process."""
    held: int = 0
    """How often a process found that another one was at work on the run."""
    happened: int = 0
    """How many effects nobody knew of that had happened, as it turned out."""
    did_not_happen: int = 0
    effects: int = 0
    problems: list[str] = field(default_factory=list[str])

    def __add__(self, other: KillReport) -> KillReport:
        """Return both together."""
        return KillReport(
            self.trials + other.trials,
            self.kills + other.kills,
            self.takeovers + other.takeovers,
            self.held + other.held,
            self.happened + other.happened,
            self.did_not_happen + other.did_not_happen,
            self.effects + other.effects,
            self.problems + other.problems,
        )


# The witness ----------------------------------------------------------------------------------------------------------


class Witness:
    """A server in another process that notices effects, one after the other. A context manager."""

    def __init__(self) -> None:
        self.url = ""

    def __enter__(self) -> Witness:
        here, there = _context().Pipe()
        self._process = _context().Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        self.url = here.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def seen(self, key: str = "") -> list[str]:
        """Return the keys of the effects that were noticed, in order; of those that begin with `key`."""
        return ask_witness(self.url, key)


def tell_witness(url: str, context: ToolContext) -> None:
    """Let an effect happen: the witness notices it. Waits for the answer, as a call of a service does."""
    _get(f"{url}/effect?key={urllib.parse.quote(context.idempotency_key)}")


def ask_witness(url: str, key: str) -> list[str]:
    """Return the effects whose key begins like this. Whatever was sent before the question is among them."""
    return json.loads(_get(f"{url}/seen?key={urllib.parse.quote(key)}"))


def _get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=SECONDS) as reply:
        return reply.read()


def _serve(pipe: Connection) -> None:
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            key = urllib.parse.parse_qs(address.query).get("key", [""])[0]
            if address.path == "/effect":
                seen.append(key)
            body = json.dumps([one for one in seen if one.startswith(key)]).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # whoever asked is dead
                pass

        def log_message(self, format: str, *args: Any) -> None:
            pass

    # One connection after the other, in the order in which they came: a question is answered after all that was said
    # before it, even by a process that is dead by now.
    class Server(HTTPServer):
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        pipe.send(f"http://127.0.0.1:{server.server_address[1]}")
        server.serve_forever()


# Processes that die ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fate:
    """When a process dies: at the entry of this number, before it is added or when it is durable; or after a time."""

    entry: int | None = None
    is_durable: bool = False
    seconds: float | None = None


class _Writer(RunWriter):
    """Dies at an entry."""

    fate = Fate()
    added = 0

    def add(self, entry: Entry) -> None:
        self.added += 1
        is_the_one = self.added == self.fate.entry
        if is_the_one and not self.fate.is_durable:
            _die()
        super().add(entry)
        if is_the_one:
            self.flush()
            _die()


class _Journal(Journal):
    """A journal whose writers die."""

    def __init__(self, path: Path, fate: Fate) -> None:
        super().__init__(path)
        self.fate = fate

    def writer(self, run_id: str, token: int, number: int, begun: RunBegun | None = None) -> RunWriter:
        writer = _Writer(self, run_id, token, number, begun)
        writer.fate = self.fate
        return writer


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _work(make: MakeAgent, plan: Any, url: str, path: Path, run_id: str | None, fate: Fate) -> None:
    """Run the plan, or resume the run, in this process."""
    if fate.seconds is not None:
        timer = threading.Timer(fate.seconds, _die)
        timer.daemon = True
        timer.start()

    async def main() -> None:
        with _Journal(path, fate) as journal:
            agent = make(journal, url)
            if run_id is not None:
                await agent.resume(run_id)
            else:
                await (agent.run(plan.text) if isinstance(plan, Request) else agent.run_plan(plan))

    try:
        asyncio.run(main())
    except RunIsHeld:
        sys.exit(HELD)


def _context() -> Any:
    """Return how processes are made: quickly, out of one that has imported everything, where there is such a thing."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["toolplan.testing.kill"])
    return context


def _run(make: MakeAgent, plan: Any, url: str, path: Path, run_id: str | None, *fates: Fate) -> list[int]:
    """Return the exit codes of processes that do the work side by side; negative for one that was killed."""
    found = [_context().Process(target=_work, args=(make, plan, url, path, run_id, fate)) for fate in fates]
    for process in found:
        process.start()
    for process in found:
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
    return [process.exitcode for process in found]


# Trials ---------------------------------------------------------------------------------------------------------------


def kill_everywhere(
    make: MakeAgent, plan: Any, witness: Witness, *, every: int = 1, may_repeat: Iterable[str] = ()
) -> KillReport:
    """Kill a run of the plan at every boundary of its journal, before each entry and after it; resume it each time.

    Where the run waits for a person, so is the process that goes on with it. With `every`, only at every so-many-th.
    `may_repeat` are the tools whose effects may happen more than once, besides those that are idempotent.
    """
    report, repeats = KillReport(), _may_repeat(make, witness, may_repeat)
    fates = [
        [*[Fate()] * process, Fate(entry, durable)]
        for process, entries in enumerate(_entries(make, plan, witness))
        for entry in range(1, entries + 1)
        for durable in (False, True)
    ]
    for fate in fates[::every]:
        report += _trial(make, plan, witness, fate, repeats)
    return report


def _may_repeat(make: MakeAgent, witness: Witness, given: Iterable[str]) -> frozenset[str]:
    """Return the tools whose effects may happen more than once: those `given`, and those that say so themselves."""
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "none.db") as journal:
        return frozenset(given) | {tool.name for tool in make(journal, witness.url).tools if tool.idempotent}


def _entries(make: MakeAgent, plan: Any, witness: Witness) -> list[int]:
    """Return how many entries each process writes of a run that nobody kills."""
    found: list[int] = []
    run_id: str | None = None
    before = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.db"
        while len(found) < ATTEMPTS:
            _run(make, plan, witness.url, path, run_id, Fate())
            with Journal(path) as journal:
                run_id, outcome = journal.runs()[0].run_id, journal.runs()[0].outcome
                found.append(len(journal.read(run_id)) - before)
                if outcome != "waiting":
                    break
                _answer(journal, run_id, witness, KillReport(), plan)
                before = len(journal.read(run_id))
    return found


def kill_at_random(
    make: MakeAgent,
    plan: Any,
    witness: Witness,
    *,
    times: int,
    seed: int = 0,
    longest: float = 0.1,
    may_repeat: Iterable[str] = (),
) -> KillReport:
    """Kill runs at random instants, and at random entries, again and again until so many kills have been made.

    Each run is killed once to three times. `longest` are the seconds within which most of a run happens.
    """
    report, repeats = KillReport(), _may_repeat(make, witness, may_repeat)
    chance = random.Random(seed)
    while report.kills < times:
        fates = [
            Fate(seconds=chance.uniform(0, longest))
            if chance.random() < 0.6
            else Fate(chance.randrange(1, 12), chance.random() < 0.5)
            for _ in range(chance.randrange(1, 4))
        ]
        before = report.kills
        report += _trial(make, plan, witness, fates, repeats)
        if report.kills == before:
            longest = max(longest * 0.8, 0.002)
    return report


def fight_over(
    make: MakeAgent, plan: Any, witness: Witness, *, takeovers: int, seed: int = 0, may_repeat: Iterable[str] = ()
) -> KillReport:
    """Let two processes at a time go on with runs whose process was killed, and be killed, until so many have."""
    report, chance = KillReport(), random.Random(seed)
    repeats = _may_repeat(make, witness, may_repeat)
    while report.takeovers < takeovers:
        fates = [Fate(chance.randrange(2, 10), chance.random() < 0.5) for _ in range(7)]
        report += _trial(make, plan, witness, fates, repeats, workers=2)
    return report


def _trial(
    make: MakeAgent,
    plan: Any,
    witness: Witness,
    fates: Iterable[Fate],
    may_repeat: frozenset[str],
    workers: int = 1,
) -> KillReport:
    """Run the plan, killed as the fates say, until it is done; look at what has happened.

    When there are several `workers`, so many processes resume it side by side.
    """
    report = KillReport(trials=1)
    fate = iter(fates)
    with tempfile.TemporaryDirectory() as folder:
        run_id: str | None = None
        path = Path(folder) / "0.db"
        for attempt in range(ATTEMPTS):
            several = workers if run_id is not None else 1
            codes = _run(make, plan, witness.url, path, run_id, *(next(fate, Fate()) for _ in range(several)))
            report.kills += sum(code < 0 for code in codes)
            report.held += codes.count(HELD)
            with Journal(path) as journal:
                runs = journal.runs()
                if not runs or not _has_begun(journal, runs[0].run_id):
                    run_id, path = None, Path(folder) / f"{attempt + 1}.db"
                    continue
                run_id, outcome = runs[0].run_id, runs[0].outcome
                if failed := [code for code in codes if code > 0 and (code != HELD or workers == 1)]:
                    report.problems.append(f"run {run_id}: a process failed with exit code {failed[0]}")
                if outcome == "waiting":
                    _answer(journal, run_id, witness, report, plan)
                elif outcome != "running":
                    _check(journal, run_id, outcome, witness, may_repeat, report)
                    report.takeovers += sum(isinstance(entry, RunResumed) for entry in journal.read(run_id))
                    return report
    report.problems.append(f"run {run_id} has no end after {ATTEMPTS} processes")
    return report


def _has_begun(journal: Journal, run_id: str) -> bool:
    """Return whether there is something to go on with: a plan, or what the model of a loop said."""
    story = tell(journal.read(run_id))
    return bool(story.parts or story.said)


def _answer(journal: Journal, run_id: str, witness: Witness, report: KillReport, plan: Any) -> None:
    """Say of effects that nobody knows of whether they happened, as the witness tells; allow what is asked for."""
    for question in questions(journal.read(run_id)):
        if question["kind"] == "approval":
            approve(journal, run_id, steps=[question["step"]])
            continue
        if question["kind"] == "question" and isinstance(plan, Request):
            answer(journal, run_id, plan.answer, step=question["step"])
            continue
        if question["kind"] != "unknown":
            report.problems.append(f"run {run_id} waits for something else: {question}")
            continue
        if witness.seen(f"{run_id}:{question['step']}"):
            report.happened += 1
            resolve(journal, run_id, question["step"], "happened", result="found out")
        else:
            report.did_not_happen += 1
            resolve(journal, run_id, question["step"], "did_not_happen")


def _check(
    journal: Journal, run_id: str, outcome: str, witness: Witness, may_repeat: frozenset[str], report: KillReport
) -> None:
    entries = journal.read(run_id)
    if outcome != "succeeded":
        report.problems.append(f"run {run_id} ended as {outcome}: {tell(entries).ended}")
    seen = Counter(witness.seen(f"{run_id}:"))
    report.effects += len(seen)
    strangers = set(seen)
    for _, part in tell(entries).parts:  # each counts its calls anew
        started = {entry.key: entry for entry in part if isinstance(entry, EffectStarted)}
        finished = {entry.key for entry in part if isinstance(entry, CallSucceeded)}
        for key, effect in started.items():
            times = seen[effect.idempotency_key]
            strangers.discard(effect.idempotency_key)
            if times > 1 and effect.tool not in may_repeat:
                report.problems.append(f"run {run_id}: {effect.step} ({effect.tool}) happened {times} times")
            if key in finished and not times:
                report.problems.append(f"run {run_id}: {effect.step} ({effect.tool}) is finished, but never happened")
    if strangers:
        report.problems.append(f"run {run_id}: effects that are not in the journal happened: {sorted(strangers)}")
