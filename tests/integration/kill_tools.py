"""Tools of the kill tests: their effects are noticed by a server in another process."""

from __future__ import annotations

import time

from toolplan import Agent, Tool, ToolContext
from toolplan.journal import Journal
from toolplan.testing.kill import ask_witness, tell_witness
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

    def has_shipped(ctx: ToolContext) -> Happened | bool:
        return Happened("shipped") if ask_witness(url, ctx.idempotency_key) else False

    tools = [
        Tool.of(read, reads="orders"),
        Tool.of(charge, writes="card:{order}"),
        Tool.of(mark, writes="orders:{order}", idempotent=True),
        Tool.of(ship, writes="parcels", probe=has_shipped),
    ]
    return Agent(tools=tools, journal=journal, policy="declared", answer="template")
