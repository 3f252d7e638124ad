"""From a model's text to a plan that may run: reading and every pass of the checker.

The plan is of the size that long real ones have: 100 steps over six tools with nested arguments, 20 kB of JSON, every
fourth step using results of earlier ones: as a whole value, in text, in an expression. The floor is `json.loads` of the
same text, which is a lower bound for anything that reads it. 1,000 steps show whether the cost grows with the length.
"""

from __future__ import annotations

import json
import random
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from bench.harness import Bench, Goal, Report, Table, at_most, interleaved
from toolplan.check import CheckedPlan, check
from toolplan.parse import parse
from toolplan.plan import Plan
from toolplan.tools import ToolSet, tool

STEPS = 100
REACH = 30.0
FLOOR = "json.loads"

Line = Annotated[str, Field(min_length=1, max_length=200)]
Scalar = int | str | bool


class Spot(BaseModel, extra="forbid"):
    town: Line
    country: Annotated[str, Field(min_length=2, max_length=2)]
    latitude: Annotated[float, Field(ge=-90, le=90)]
    longitude: Annotated[float, Field(ge=-180, le=180)]


class Offer(BaseModel):
    code: str
    price: float
    currency: str


class Document(BaseModel):
    path: str
    text: str
    size: int


class Receipt(BaseModel):
    id: str
    delivered: bool


class Rows(BaseModel):
    count: int
    rows: list[dict[str, Scalar]]


class Page(BaseModel):
    url: str
    title: str
    body: str


@tool(reads="trains")
def find_trains(
    start: Spot,
    goal: Spot,
    day: Line,
    seats: Annotated[int, Field(ge=1, le=9)],
    comfort: Literal["second", "first", "sleeper"],
    direct: bool = False,
) -> Offer:
    """Find the best train between two places on a day."""
    raise NotImplementedError


@tool(reads="files:{path}")
def read_document(
    path: Line, skip: Annotated[int, Field(ge=0)] = 0, most: Annotated[int, Field(ge=1, le=100_000)] = 2_000
) -> Document:
    """Read a part of a document."""
    raise NotImplementedError


@tool(writes="outbox")
def send_message(
    recipients: Annotated[list[Line], Field(min_length=1, max_length=20)],
    title: Line,
    text: str,
    urgency: Literal["low", "normal", "high"] | None = None,
) -> Receipt:
    """Send a message to some people."""
    raise NotImplementedError


@tool(reads="database")
def select_rows(
    table: Line,
    columns: Annotated[list[Line], Field(min_length=1)],
    where: dict[str, Scalar],
    most: Annotated[int, Field(ge=1, le=1_000)],
) -> Rows:
    """Select rows of a table."""
    raise NotImplementedError


@tool(pure=True)
def calculate(operation: Literal["add", "subtract", "multiply", "divide"], left: float, right: float) -> float:
    """Calculate with two numbers."""
    raise NotImplementedError


@tool(reads="web")
def load_page(
    url: Annotated[str, Field(min_length=8, max_length=500)],
    headers: dict[str, str] | None = None,
    patience_seconds: Annotated[float, Field(gt=0, le=120)] = 30.0,
) -> Page:
    """Load a web page."""
    raise NotImplementedError


TOOLS = ToolSet.of([find_trains, read_document, send_message, select_rows, calculate, load_page])
TOWNS = ["Wien", "Köln", "Lyon", "Oslo", "北京", "上海", "Kraków", "Porto"]
WORDS = [*TOWNS, "notes", "of", "the", "meeting", "budget", "draft", 'called "final"', "due", "on\nMonday", "预算"]


class _Writer:
    """Writes a plan as a model would: steps in order, results named, some of them used later."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.results: dict[str, list[str]] = {}  # tool: the names of its results so far

    def words(self, least: int, most: int) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(least, most)))

    def use(self, tool_name: str, field: str = "") -> str | None:
        """Return a reference to an earlier result of the tool, in one case out of two."""
        names = self.results.get(tool_name)
        if not names or self.random.random() < 0.5:
            return None
        return self.random.choice(names[-10:]) + field

    def spot(self) -> dict[str, Any]:
        return {
            "town": self.random.choice(TOWNS),
            "country": self.random.choice(["AT", "CN", "FR", "NO"]),
            "latitude": round(self.random.uniform(-90, 90), 4),
            "longitude": round(self.random.uniform(-180, 180), 4),
        }

    def arguments(self, tool_name: str) -> dict[str, Any]:
        number = self.random.randint
        match tool_name:
            case "find_trains":
                return {
                    "start": self.spot(),
                    "goal": self.spot(),
                    "day": f"2026-03-{number(1, 28):02}",
                    "seats": number(1, 9),
                    "comfort": self.random.choice(["second", "sleeper"]),
                }
            case "read_document":
                return {"path": f"notes/{number(2020, 2026)}/{number(1, 999)}.md", "skip": number(0, 500)}
            case "send_message":
                title = self.use("read_document", ".path")
                price = self.use("find_trains", ".price")
                return {
                    "recipients": [f"person{number(1, 99)}@example.org" for _ in range(number(1, 3))],
                    "title": f"About {{{title}}}" if title else self.words(3, 5),
                    "text": self.words(20, 30) + (f" It costs {{round({price} * 1.2, 2)}}." if price else ""),
                    "urgency": self.random.choice([None, "high"]),
                }
            case "select_rows":
                return {
                    "table": self.random.choice(["orders", "people"]),
                    "columns": ["id", "name", "total"],
                    "where": {"year": number(2000, 2026), "state": "open"},
                    "most": number(1, 100),
                }
            case "calculate":
                left, right = self.use("find_trains", ".price"), self.use("calculate")
                return {
                    "operation": self.random.choice(["add", "multiply"]),
                    "left": f"{{{left}}}" if left else round(self.random.uniform(0, 99), 3),
                    "right": f"{{{right} + 1}}" if right else round(self.random.uniform(0, 99), 3),
                }
            case _:
                size = self.use("select_rows", ".count")
                return {
                    "url": f"https://example.org/{number(1, 999)}?n=" + (f"{{{size}}}" if size else str(number(1, 99))),
                    "headers": {"accept": "text/html", "accept-language": "en"},
                    "patience_seconds": 10.0,
                }

    def steps(self, count: int) -> list[dict[str, Any]]:
        names = TOOLS.names
        written: list[dict[str, Any]] = []
        for number in range(count):
            tool_name = self.random.choice(list(names))
            result = f"r{number}"
            written.append({"tool_name": tool_name, "arguments": self.arguments(tool_name), "result_variable": result})
            self.results.setdefault(tool_name, []).append(result)
        return written


def plan_text(steps: int, seed: int = 7) -> str:
    """Return a plan of that many steps as a model would send it."""
    return json.dumps(_Writer(seed).steps(steps), ensure_ascii=False)


def read(text: str) -> Plan:
    plan = parse(text, tools=TOOLS)
    if not isinstance(plan, Plan):
        raise AssertionError(f"not read as a plan but as {plan!r}")
    return plan


async def run(full: bool) -> Report:
    tables = [await _table(STEPS, rounds=20, repeats=41 if full else 25), await _table(1_000, rounds=2, repeats=15)]
    if full:
        tables.append(await _table(5_000, rounds=1, repeats=7))
    rows = tables[0].rows
    ratio = rows["parse + check"].ratio_to(rows[FLOOR])
    growth = tables[1].rows["parse + check"].median / rows["parse + check"].median
    goals = [
        at_most(ratio, REACH, of=f"{FLOOR} ({rows['parse + check'].median * 1e3:.1f} ms)"),
        Goal(f"ten times the steps cost {growth:.1f}x", growth, 12.0, "about 10x"),
    ]
    return Report("compile", tables, goals)


async def _table(steps: int, *, rounds: int, repeats: int) -> Table:
    text = plan_text(steps)
    plan = read(text)
    warnings = check(plan, TOOLS).warnings
    assert len(plan.steps) == steps

    def load() -> object:
        for _ in range(rounds):
            value = json.loads(text)
        return value

    def read_only() -> Plan:
        for _ in range(rounds):
            found = read(text)
        return found

    # A plan may keep what was worked out about it, so each is checked once.
    def both() -> CheckedPlan:
        for _ in range(rounds):
            found = check(read(text), TOOLS)
        return found

    rows = await interleaved({FLOOR: load, "parse": read_only, "parse + check": both}, repeats=repeats, units=rounds)
    size = len(text.encode())
    note = f"{size / 1000:.1f} kB, {len(warnings)} warnings"
    return Table(f"{steps:,} steps", "ms/plan", rows, floors=(FLOOR,), notes=(note,))


BENCH = Bench("compile", f"text to checked plan, {STEPS} steps over six tools", run)
