"""Journals that earlier versions have written still replay, to the same end (`tests/golden/journals`).

A file holds the rows of one run: kind and body. A new format gets a folder of its own; these stay as they are. To make
one: `rows_of(path)` of a journal that a run with `TOOLS` has written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolplan import Agent, ToolContext, ToolFailed, tool
from toolplan.journal import Journal
from toolplan.journal.entries import decode
from toolplan.models import ModelRequest, Reply, ToolCallPart
from toolplan.testing import FunctionModel

FOLDER = Path(__file__).parents[2] / "golden" / "journals"
FILES = sorted(path.relative_to(FOLDER) for path in FOLDER.glob("*/*.jsonl"))


@tool(reads="orders")
def find_orders(name: str) -> list[dict[str, Any]]:
    return [{"id": "a", "sum": 2.5}, {"id": "b", "sum": 4}]


@tool(writes="card:{to}")
def pay(ctx: ToolContext, to: str, amount: float) -> str:
    return f"paid {amount} to {to}"


@tool(writes="parcels", retry=2, probe=lambda: False)
def ship(to: str) -> str:
    if to == "nowhere":
        raise ToolFailed("no such place", effect_happened=False)
    return f"shipped to {to}"


TOOLS = [find_orders, pay, ship]

TURNS = (
    Reply("I look.", (ToolCallPart("a", "find_orders", {"name": "x"}),), thinking="hm", kept={"signature": "s"}),
    Reply("", (ToolCallPart("b", "nothing", {}), ToolCallPart("c", "pay", {"to": "a", "amount": 2.5}))),
    Reply("", (ToolCallPart("d", "pay", {"to": "a", "amount": 2.5}), ToolCallPart("e", "ship", {"to": "b"}))),
    Reply("", (ToolCallPart("f", "ask_user", {"question": "And b?"}),)),
    Reply("All is done."),
)


def say_next(request: ModelRequest) -> Reply:
    """Say what comes at this place of a loop."""
    return TURNS[sum(message.role == "assistant" for message in request.messages)]


def rows_of(path: Path) -> list[tuple[str, str]]:
    with Journal(path, readonly=True) as journal, journal._reading() as connection:
        return connection.execute("SELECT kind, body FROM entries ORDER BY run_id, number").fetchall()


def restored(path: Path, rows: list[list[str]]) -> str:
    with Journal(path) as journal:
        first = decode(*rows[0])
        writer = journal.begin(first)  # type: ignore[arg-type]
        for row in rows[1:]:
            writer.add(decode(*row))
        writer.close()
        return writer.run_id


@pytest.mark.parametrize("name", FILES, ids=str)
async def test_an_old_journal_replays(name: Path, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    rows = [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]
    run = restored(tmp_path / "j.db", rows)
    model = FunctionModel(say_next)
    agent = Agent(model, TOOLS, journal=tmp_path / "j.db", policy="declared", ask_user=lambda question: "yes")
    result = await agent.resume(run, accept_changes=True)
    end = {
        "outcome": result.outcome,
        "answer": result.answer,
        "replans": result.replans,
        "steps": [[step.id, step.tool, step.outcome, step.arguments, step.result] for step in result.steps],
    }
    golden(f"journals/{name.with_suffix('.end.json')}", json.dumps(end, indent=2, ensure_ascii=False) + "\n")


def test_there_are_journals_of_every_format() -> None:
    assert {path.parts[0] for path in FILES} == {"v1"}
