"""Tools of the kill tests: their effects are noticed by a server in another process."""

from __future__ import annotations

import time
from typing import Any

from toolplan import Agent, Tool, ToolContext
from toolplan.journal import Journal
from toolplan.models import ModelRequest, Reply, ToolCallPart
from toolplan.testing import FunctionModel
from toolplan.testing.kill import Request, ask_witness, tell_witness
from toolplan.tools import Happened

PLAN = [
    {"tool_name": "read", "arguments": {"name": "orders"}, "result_variable": "orders"},
    {
        "for_each": "orders",
        "as": "order",
        "do": [{"tool_name": "charge", "arguments": {"order": "{order}"}, "result_variable": "paid"}],
        "collect": "paid",
        "result_variable": "bills",
    },
    {"if": "len(bills) == 3", "then": [{"tool_name": "mark", "arguments": {"order": "b"}}]},
    {"tool_name": "ship", "arguments": {"order": "a"}},
    {"tool_name": "read", "arguments": {"name": "again"}, "result_variable": "again"},
    {"tool_name": "charge", "arguments": {"order": "{again[0]}"}},
    {"answer": "{bills}"},
]


TURNS: list[list[tuple[str, dict[str, Any]]]] = [
    [("read", {"name": "orders"}), ("charge", {"order": "a"}), ("charge", {"order": "b"})],
    [("mark", {"order": "a"}), ("nothing", {}), ("ship", {"order": "a"})],  # the last one is held back
    [("ship", {"order": "a"}), ("refund", {"order": "b"})],
    [("ask_user", {"question": "c as well?"}), ("mark", {"order": "b"})],
    [("charge", {"order": "c"})],
]
LOOP = Request("Charge, ship and mark what there is.")


def say_next(request: ModelRequest) -> Reply:
    """Say what comes at this place of the conversation, whichever process asks."""
    place = sum(message.role == "assistant" for message in request.messages)
    if place == len(TURNS):
        return Reply("All is done.")
    calls = [ToolCallPart(f"c{place}.{n}", name, given) for n, (name, given) in enumerate(TURNS[place])]
    return Reply("", tuple(calls), "tool_call")


def make_agent(journal: Journal, url: str) -> Agent:
    """Return an agent whose effects the witness at `url` notices."""

    def read(name: str) -> list[str]:
        time.sleep(0.001)
        return ["a", "b", "c"]

    def charge(ctx: ToolContext, order: str) -> str:
        tell_witness(url, ctx)
        return f"charged {order}"

    def mark(ctx: ToolContext, order: str) -> str:
        tell_witness(url, ctx)
        return f"marked {order}"

    def ship(ctx: ToolContext, order: str) -> str:
        tell_witness(url, ctx)
        return f"shipped {order}"

    def refund(ctx: ToolContext, order: str) -> str:
        tell_witness(url, ctx)
        return f"refunded {order}"

    def has_shipped(ctx: ToolContext) -> Happened | bool:
        return Happened("shipped") if ask_witness(url, ctx.idempotency_key) else False

    tools = [
        Tool.of(read, reads="orders"),
        Tool.of(charge, writes="card:{order}"),
        Tool.of(mark, writes="orders:{order}", idempotent=True),
        Tool.of(ship, writes="parcels", probe=has_shipped),
        Tool.of(refund, writes="card:{order}", approval="ask"),
    ]
    return Agent(FunctionModel(say_next), tools, journal=journal, policy="declared", mode="loop", answer="template")
