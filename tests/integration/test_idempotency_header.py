"""A tool that sends its idempotency key with an HTTP request: a real service sees the same key for one effect."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from journals import read, written
from toolplan import Agent, Tool, ToolContext, tool
from toolplan.journal import EffectStarted


class Payments:
    """A service that pays once for each key. Of the first request for each of `silent` it never sends the answer."""

    def __init__(self, *silent: str) -> None:
        self.silent = set(silent)
        self.seen: list[tuple[str, str]] = []
        self.paid: dict[str, str] = {}
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                to = self.rfile.read(int(self.headers["Content-Length"])).decode()
                key = self.headers["Idempotency-Key"]
                service.seen.append((to, key))
                service.paid.setdefault(key, to)
                if to in service.silent:
                    service.silent.discard(to)
                    self.connection.close()
                    return
                self.send_response(200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"paid")

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def tool(self) -> Tool:
        @tool(writes="payments", idempotency="header:Idempotency-Key", retry=3)
        def pay(ctx: ToolContext, to: str) -> str:
            """Pay somebody."""
            request = urllib.request.Request(self.url, to.encode(), {**ctx.headers}, method="POST")
            with urllib.request.urlopen(request, timeout=10) as reply:
                return reply.read().decode()

        return Tool.of(pay)


@pytest.fixture
def payments() -> Iterator[Payments]:
    service = Payments("b")
    serving = threading.Thread(target=service.server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    yield service
    service.server.shutdown()
    service.server.server_close()
    serving.join(10)


def call(to: str) -> dict[str, Any]:
    return {"tool_name": "pay", "arguments": {"to": to}}


PLAN: list[Any] = [call("a"), call("b"), call("a"), {"answer": "done"}]


async def test_an_attempt_again_sends_the_same_key_and_another_call_another(payments: Payments) -> None:
    result = await Agent(tools=[payments.tool()], policy="declared").run_plan(PLAN)
    assert result.outcome == "succeeded", result.error
    keys = [f"{result.run_id}:s{number}" for number in (1, 2, 2, 3)]
    assert payments.seen == list(zip("abba", keys, strict=True))
    assert payments.paid == {keys[0]: "a", keys[1]: "b", keys[3]: "a"}


async def test_a_run_that_goes_on_sends_the_key_that_its_first_process_sent(payments: Payments, tmp_path: Path) -> None:
    agent = Agent(tools=[payments.tool()], policy="declared", journal=tmp_path / "whole.db")
    whole = await agent.run_plan([call("a"), {"answer": "done"}])
    await agent.close()
    entries = read(tmp_path / "whole.db")
    left = next(number for number, entry in enumerate(entries) if isinstance(entry, EffectStarted))
    # As the process leaves it that ends while the request is out.
    run = written(tmp_path / "cut.db", entries[: left + 1])
    agent = Agent(tools=[payments.tool()], policy="declared", journal=tmp_path / "cut.db")
    result = await agent.resume(run)
    await agent.close()
    assert result.outcome == "succeeded", result.error
    assert payments.seen == [("a", f"{whole.run_id}:s1")] * 2
    assert payments.paid == {f"{whole.run_id}:s1": "a"}
