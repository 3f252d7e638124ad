"""Complete steps out of a reply that arrives in pieces, and what starting them early is worth.

The scanners read the 100 steps, 20 kB, of bench `compile` in pieces of four characters and hand over each step as soon
as it is complete. The floor tries `json.JSONDecoder.raw_decode` on the open step whenever a `}` arrives. Beside it is
`json.loads` of the whole text, which finds nothing before the end. Peers that read the whole text so far again at every
piece are measured where they are installed. Tool calls in models' own formats are read by another scanner; two tables
show some of them, bench `formats` all.

The last tables answer one request twice with a model that writes at a stated rate, on a virtual clock: with calls that
change nothing started while the plan, or the turn of a loop, streams in, and without. They show what is saved, and have
no goal.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from bench.compile import plan_text
from bench.formats import measured
from bench.harness import Bench, Listing, Report, Table, Times, at_most, interleaved
from toolplan import Agent, tool
from toolplan.models import ScriptedModel
from toolplan.parse.streaming import PlanStream

STEPS = 100
CHUNK = 4
REACH = 3.0
FLOOR = "raw_decode retried at each }"
AT_THE_END = "json.loads at the end"
FORMATS = ("hermes", "qwen_xml", "mistral")

Scanner: TypeAlias = "Callable[[Sequence[str]], list[Any]]"
"""Takes the pieces of a text and returns the steps in it, each found as soon as it is complete."""


def pieces_of(text: str, size: int = CHUNK) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def ours(pieces: Sequence[str]) -> list[Any]:
    stream = PlanStream()
    found: list[Any] = []
    for piece in pieces:
        if steps := stream.feed(piece):
            found += steps
    return found


def loads_at_the_end(pieces: Sequence[str]) -> list[Any]:
    return json.loads("".join(pieces))


def raw_decode_retried(pieces: Sequence[str]) -> list[Any]:
    """Hold only the open step; try to decode it whenever a `}` arrives."""
    decoder = json.JSONDecoder()
    text, found, at = "", [], 0
    for piece in pieces:
        text += piece
        if "}" not in piece:
            continue
        while True:
            while at < len(text) and text[at] in " \n\r\t,[":
                at += 1
            if at >= len(text) or text[at] != "{":
                break
            try:
                value, at = decoder.raw_decode(text, at)
            except ValueError:
                break
            found.append(value)
        text, at = text[at:], 0
    return found


def read_again(parse: Callable[[str], Any]) -> Scanner:
    """Return a scanner that reads the whole text so far at every piece: all steps but the last are complete."""

    def scan(pieces: Sequence[str]) -> list[Any]:
        text, found, value = "", [], None
        for piece in pieces:
            text += piece
            value = parse(text)
            if isinstance(value, list) and len(value) - 1 > len(found):
                found += value[len(found) : -1]
        assert isinstance(value, list)
        return found + value[len(found) :]

    return scan


def peers() -> tuple[dict[str, Scanner], list[str]]:
    """Return the scanners of other libraries, and what is not installed."""
    found: dict[str, Scanner] = {}
    absent: list[str] = []
    for module, make in (
        ("jiter", lambda m: lambda text: m.from_json(text.encode(), partial_mode=True)),
        ("partial_json_parser", lambda m: m.loads),
        ("json_repair", lambda m: m.loads),
    ):
        try:
            library = importlib.import_module(module)
        except ImportError:
            absent.append(module)
        else:
            found[f"{module}, all of it at each piece"] = read_again(make(library))
    return found, absent


async def scanner_table(
    title: str, text: str, scanners: dict[str, Scanner], expected: list[Any], *, repeats: int, notes: Sequence[str] = ()
) -> Table:
    """Return the times of scanners of one text, beside the floor. All of them must find the same steps."""
    pieces = pieces_of(text)

    def expect(name: str, result: object) -> None:
        assert result == expected, f"{name} found something else"

    runners = {name: (lambda scan=scan: scan(pieces)) for name, scan in scanners.items()}
    rows = await interleaved(runners, repeats=repeats, expect=expect)
    size = f"{len(text.encode()) / 1000:.1f} kB in {len(pieces):,} pieces"
    return Table(title, "ms/plan", rows, floors=(FLOOR,), notes=(size, *_speed(text, len(pieces), rows), *notes))


def _speed(text: str, pieces: int, rows: dict[str, Times]) -> list[str]:
    megabytes = len(text.encode()) / 1e6
    return [
        f"{name}: {megabytes / times.median:.1f} MB/s, {times.median / pieces * 1e6:.2f} us a piece"
        for name, times in rows.items()
        if name in ("ours", FLOOR, AT_THE_END)
    ]


# What an early start saves --------------------------------------------------------------------------------------------

CALL_SECONDS = 1.5
RATES = (30, 80, 200)
"""Tokens a second; a token is taken to be four characters."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as there is nothing else to do."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


@tool(reads="web")
async def search(query: str, most: int = 5) -> list[str]:
    """Searches the web; returns addresses."""
    await asyncio.sleep(CALL_SECONDS)
    return [f"https://example.org/{query}/{number}" for number in range(most)]


@tool(reads="web")
async def load_page(url: str) -> str:
    """Loads a page."""
    await asyncio.sleep(CALL_SECONDS)
    return f"what {url} says"


@tool(reads="market")
async def price(symbol: str, day: str) -> float:
    """Looks up a price."""
    await asyncio.sleep(CALL_SECONDS)
    return len(symbol) * 10.5


@tool(writes="outbox")
async def send(to: str, subject: str, body: str) -> str:
    """Sends a mail."""
    await asyncio.sleep(CALL_SECONDS)
    return "sent"


REQUEST_PLAN = {
    "thought": "Look up the prices and the news of the two companies, then send one mail with all of it.",
    "steps": [
        {"tool_name": "search", "arguments": {"query": "acme quarterly report"}, "result_variable": "news"},
        {"tool_name": "load_page", "arguments": {"url": "{news[0]}"}, "result_variable": "report"},
        {"tool_name": "price", "arguments": {"symbol": "ACME", "day": "2026-01-15"}, "result_variable": "acme"},
        {"tool_name": "price", "arguments": {"symbol": "GLOBEX", "day": "2026-01-15"}, "result_variable": "globex"},
        {
            "tool_name": "send",
            "arguments": {
                "to": "me@example.org",
                "subject": "Acme and Globex on 15 January",
                "body": "Acme stands at {acme}, Globex at {globex}. The report says: {report}. It is at {news[0]}.",
            },
        },
    ],
    "answer": "Acme stands at {acme} and Globex at {globex}; the mail with the report is on its way.",
}


def seconds_of(rate: float, *, early_start: bool) -> float:
    """Return how long the request takes on the virtual clock, with a model that writes so many tokens a second."""
    text = json.dumps(REQUEST_PLAN)
    model = ScriptedModel([{"text": text, "chunks": CHUNK, "delay_seconds": len(text) / CHUNK / rate}])
    agent = Agent(model, [search, load_page, price, send], early_start=early_start, policy="declared")
    loop = VirtualLoop()
    try:
        result = loop.run_until_complete(agent.run("How are Acme and Globex? Send me a mail."))
        assert result.outcome == "succeeded"
        assert len(result.steps) == 5
        assert not result.discarded
        return loop.time()
    finally:
        loop.close()


LOOK_UPS = [
    {"name": "search", "arguments": {"query": "acme quarterly report"}},
    {"name": "price", "arguments": {"symbol": "ACME", "day": "2026-01-15"}},
    {"name": "price", "arguments": {"symbol": "GLOBEX", "day": "2026-01-15"}},
]
MAIL = {
    "name": "send",
    "arguments": {
        "to": "bob@example.org",
        "subject": "Acme and Globex on 15 January",
        "body": "I am looking up what the two stood at, and what the report says; you hear of it within the hour.",
    },
}


def loop_seconds_of(calls: list[Any], rate: float, *, early_start: bool) -> float:
    """Return how long a loop takes whose model asks for these calls in one turn and then answers at once."""
    writing = len(json.dumps(calls)) / CHUNK / rate
    model = ScriptedModel([{"tool_calls": calls, "chunks": CHUNK, "delay_seconds": writing}, "done"])
    agent = Agent(model, [search, price, send], early_start=early_start, policy="declared", mode="loop")
    loop = VirtualLoop()
    try:
        # Somebody watches, so that both hear the calls while they arrive.
        result = loop.run_until_complete(agent.run("How are Acme and Globex?", watch=lambda _: None))
        assert (result.outcome, len(result.steps), result.discarded) == ("succeeded", len(calls), ())
        return loop.time()
    finally:
        loop.close()


def loop_listing() -> Listing:
    rows: list[tuple[str, ...]] = []
    for title, calls in (("look-ups alone", LOOK_UPS), ("look-ups, then a mail", [*LOOK_UPS, MAIL])):
        for rate in RATES:
            writing = len(json.dumps(calls)) / CHUNK / rate
            late, early = (loop_seconds_of(calls, rate, early_start=early) for early in (False, True))
            seconds = (writing, late, early, late - early)
            rows.append((title, str(rate), *(f"{each:.2f}" for each in seconds)))
    return Listing(
        f"the same in a loop: a turn of {len(LOOK_UPS)} look-ups of {CALL_SECONDS} s, alone or with a mail behind them",
        ("the turn", "tokens/s", "it is written in (s)", "all at the end (s)", "early start (s)", "saved (s)"),
        tuple(rows),
        notes=("the last call is known when the reply is whole, so look-ups alone that take as long save nothing",),
    )


def early_start_listing() -> Listing:
    rows: list[tuple[str, ...]] = []
    for rate in RATES:
        writing = len(json.dumps(REQUEST_PLAN)) / CHUNK / rate
        late, early = (seconds_of(rate, early_start=early) for early in (False, True))
        rows.append((str(rate), *(f"{s:.2f}" for s in (writing, late, early)), f"{late - early:.2f}"))
    return Listing(
        f"what an early start saves: a plan of 5 calls of {CALL_SECONDS} s, on a virtual clock",
        ("tokens/s", "the plan is written in (s)", "all at the end (s)", "early start (s)", "saved (s)"),
        tuple(rows),
        notes=("4 calls change nothing, one of them uses another's result; the mail waits for the whole plan",),
    )


async def run(full: bool) -> Report:
    text = plan_text(STEPS)
    scanners: dict[str, Scanner] = {FLOOR: raw_decode_retried, AT_THE_END: loads_at_the_end, "ours": ours}
    table = await scanner_table(f"{STEPS} steps", text, scanners, json.loads(text), repeats=51 if full else 31)
    tables: list[Table | Listing] = [table]
    others, absent = peers()
    if others:
        some = text if full else plan_text(20)
        notes = () if full else ("shorter, for the peers take time that grows with the square of the length",)
        tables.append(
            await scanner_table(
                "beside peers", some, {**scanners, **others}, json.loads(some), repeats=3 if full else 5, notes=notes
            )
        )
    if absent:
        tables.append(Listing(f"not run, not installed: {', '.join(absent)}", ("",), ()))
    tables += (await measured(FORMATS, 50, repeats=7 if full else 3)).listings
    tables += [await asyncio.to_thread(listing) for listing in (early_start_listing, loop_listing)]
    ratio = table.rows["ours"].ratio_to(table.rows[FLOOR])
    megabytes = len(text.encode()) / 1e6
    ours_speed, whole_speed = (megabytes / table.rows[name].median for name in ("ours", AT_THE_END))
    piece = table.rows["ours"].median / len(pieces_of(text)) * 1e6
    of = f"{FLOOR} ({ours_speed:.0f} MB/s, json.loads {whole_speed:.0f} MB/s, {piece:.2f} us a piece)"
    return Report("stream", tables, [at_most(ratio, REACH, of=of)])


BENCH = Bench("stream", f"complete steps out of pieces of {CHUNK} characters", run)
