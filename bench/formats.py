"""Reading tool calls as models write them: how fast, beside `json.loads`, and what each chunk of a stream costs.

The same calls are written in every format. Whole texts are read at once, by the format's name and by `auto`; the floor
is `json.loads` of the calls as JSON. Streams come in 4-character chunks, whose floor is to collect them in a list and
join them at the end; a reply ten times as long shows that a chunk costs the same wherever it stands.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.harness import Bench, Goal, Listing, Report, Times, at_most, interleaved
from toolplan.parse.formats import FORMATS, CallPart, CallScanner, read_calls, write_calls

NAME = "formats"
CHUNK = 4
SHOWN = (
    "hermes",
    "qwen_xml",
    "mistral",
    "deepseek",
    "kimi",
    "glm",
    "minimax",
    "llama_pythonic",
    "gemma",
    "react",
    "json",
)


def _calls(count: int) -> list[dict[str, object]]:
    rng = random.Random(7)
    words = 'the invoice of March 北京的天气 is attached, please pay "soon" & confirm\n a < b'.split(" ")  # noqa: SIM905 - white space counts
    return [
        {
            "name": rng.choice(["send_email", "get_weather", "create_event"]),
            "arguments": {
                "to": [f"person{number}@example.org" for _ in range(rng.randrange(3))],
                "subject": " ".join(rng.choices(words, k=5)),
                "body": " ".join(rng.choices(words, k=rng.choice([5, 40, 120]))),
                "options": {
                    "urgent": rng.random() < 0.5,
                    "amount": rng.uniform(0, 1e4),
                    "tags": rng.choices(words, k=3),
                },
            },
        }
        for number in range(count)
    ]


def _whole(text: str, format: str, count: int) -> Callable[[], object]:
    def run() -> object:
        parts = read_calls(text, format)
        assert sum(isinstance(part, CallPart) for part in parts) == count, format
        return parts

    return run


def _stream(text: str, format: str, count: int) -> Callable[[], object]:
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]

    def run() -> object:
        scanner = CallScanner(format)
        found = 0
        for chunk in chunks:
            for part in scanner.feed(chunk):
                found += isinstance(part, CallPart)
        found += sum(isinstance(part, CallPart) for part in scanner.close())
        assert found == count, format
        return found

    return run


def _collected(text: str) -> Callable[[], object]:
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]

    def run() -> object:
        kept: list[str] = []
        for chunk in chunks:
            kept.append(chunk)
        return "".join(kept)

    return run


@dataclass(frozen=True, slots=True)
class Measured:
    """Times for a character of whole texts and for a chunk of streams, by format, and both as listings."""

    whole: dict[str, Times]
    chunked: dict[str, Times]
    listings: tuple[Listing, Listing]


async def measured(formats: Sequence[str], count: int, *, repeats: int) -> Measured:
    """Return what reading `count` calls in each of the formats costs, beside `json.loads` and collecting chunks."""
    calls = _calls(count)
    as_json = json.dumps(calls, ensure_ascii=False)
    texts = {format: write_calls(format, calls) for format in formats}
    long = write_calls("hermes", _calls(10 * count))
    prose = "A paragraph of plain words, as a model writes it: no calls, 2 numbers, a <b>tag</b>.\n" * 600
    runners: dict[str, Callable[[], object]] = {"json.loads": lambda: json.loads(as_json)}
    sizes = {"json.loads": len(as_json), "prose, auto": len(prose)}
    runners["prose, auto"] = _whole(prose, "auto", 0)
    for format, text in texts.items():
        runners[format] = _whole(text, format, count)
        runners[f"{format}, auto"] = _whole(text, "auto", count)
        sizes |= {format: len(text), f"{format}, auto": len(text)}
    streams: dict[str, tuple[Callable[[], object], int]] = {
        "collecting": (_collected(texts["hermes"]), len(texts["hermes"]))
    }
    streams |= {format: (_stream(text, format, count), len(text)) for format, text in texts.items()}
    streams["hermes, auto"] = _stream(texts["hermes"], "auto", count), len(texts["hermes"])
    streams["hermes, ten times as long"] = _stream(long, "hermes", 10 * count), len(long)
    streams["prose, auto"] = _stream(prose, "auto", 0), len(prose)
    times = await interleaved(runners, repeats=repeats, units=sizes)
    chunked = await interleaved(
        {name: runner for name, (runner, _) in streams.items()},
        repeats=repeats,
        units={name: -(-length // CHUNK) for name, (_, length) in streams.items()},
    )
    floor = times["json.loads"]
    whole = Listing(
        f"{count} calls, read whole",
        ("format", "MB/s", "x json.loads"),
        tuple((name, f"{1e-6 / each.median:.1f}", f"{each.ratio_to(floor):.1f}") for name, each in times.items()),
        ("sizes in characters; x is the time per character",),
    )
    pieces = Listing(
        f"{count} calls, in {CHUNK}-character chunks",
        ("format", "us/chunk", "x collecting"),
        tuple(
            (name, f"{each.median * 1e6:.2f}", f"{each.ratio_to(chunked['collecting']):.1f}")
            for name, each in chunked.items()
        ),
    )
    return Measured(times, chunked, (whole, pieces))


async def run(full: bool) -> Report:
    """Measure; the figures are `auto` beside `json.loads`, and a late chunk beside an early one."""
    formats = [name for name in FORMATS if FORMATS[name].alone] if full else list(SHOWN)
    found = await measured(formats, 200 if full else 50, repeats=7 if full else 3)
    speed = found.whole["hermes, auto"]
    growth = found.chunked["hermes, ten times as long"].ratio_to(found.chunked["hermes"])
    chunk = found.chunked["hermes, auto"].median * 1e6
    goals = [
        at_most(speed.ratio_to(found.whole["json.loads"]), 30, of=f"json.loads ({1e-6 / speed.median:.0f} MB/s)"),
        Goal(f"{chunk:.1f} us a chunk", chunk, 10, "<= 10 us"),
        Goal(f"{growth:.2f}x as much in a text ten times as long", growth, 1.3, "<= 1.3x"),
    ]
    return Report(NAME, list(found.listings), goals)


BENCH = Bench(NAME, "tool calls as models write them", run)
