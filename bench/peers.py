"""Other engines doing the same work, for the benches to show beside ours where they are installed.

    LangGraph         StateGraph: a node a call; `Send` for a fan-out
    pydantic-graph    GraphBuilder: a step a call; `map` and `join` for a fan-out
    smolagents        its interpreter of Python, one call after the other
    Monty             pydantic-monty: Python in a sandbox in another process
    dask              `delayed`, in threads

None of them is needed by the project; `python -m pip install langgraph pydantic-graph smolagents pydantic-monty dask`
brings them. Each function returns the runners that can be made here and the names of the engines that are missing.
"""

import asyncio
import functools
import importlib
import itertools
import operator
import time
import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

Runner = Callable[[], Awaitable[Any] | Any]

warnings.filterwarnings("ignore", module="langgraph|dask|distributed")


@dataclass
class Peers:
    """The runners by name, and the engines that are not installed."""

    runners: dict[str, Runner] = field(default_factory=dict[str, Runner])
    missing: list[str] = field(default_factory=list[str])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a table says of the missing ones."""
        return (f"not installed: {', '.join(self.missing)}",) if self.missing else ()

    def add(self, engine: str, *modules: str) -> Callable[[Callable[..., dict[str, Runner]]], None]:
        """Add what the decorated function makes of the modules, if they can be imported."""

        def adding(make: Callable[..., dict[str, Runner]]) -> None:
            try:
                found = [importlib.import_module(module) for module in modules]
            except ImportError:
                self.missing.append(engine)
            else:
                self.runners |= make(*found)

        return adding


async def add_one(x: int) -> int:
    return x + 1


def add_one_now(x: int) -> int:
    return x + 1


class OneNumber(TypedDict):
    x: int


class Numbers(TypedDict):
    out: Annotated[list[int], operator.add]


class Results(TypedDict):
    out: Annotated[dict[int, int], operator.or_]


class InTurns:
    """The tool with a bound of its own, for engines that have none."""

    def __init__(self, limit: int) -> None:
        self.places = asyncio.Semaphore(limit)

    async def __call__(self, x: int) -> int:
        async with self.places:
            return await add_one(x)


async def chain(steps: int, stack: AsyncExitStack) -> Peers:
    """Return runners of `steps` calls, each on the result of the one before. They return the last result."""
    peers = Peers()

    @peers.add("LangGraph", "langgraph.graph")
    def _langgraph(graph: Any) -> dict[str, Runner]:
        builder = graph.StateGraph(OneNumber)

        async def node(state: OneNumber) -> dict[str, int]:
            return {"x": await add_one(state["x"])}

        names = [f"s{i}" for i in range(steps)]
        for name in names:
            builder.add_node(name, node)
        for before, after in zip([graph.START, *names], [*names, graph.END], strict=True):
            builder.add_edge(before, after)
        compiled = builder.compile()

        async def run() -> int:
            return (await compiled.ainvoke({"x": 0}, {"recursion_limit": steps + 10}))["x"]

        return {"LangGraph, a node a call": run}

    @peers.add("pydantic-graph", "pydantic_graph")
    def _pydantic_graph(library: Any) -> dict[str, Runner]:
        builder = library.GraphBuilder(input_type=int, output_type=int)

        async def step(context: Any) -> int:
            return await add_one(context.inputs)

        nodes = [builder.start_node, *(builder.step(step, node_id=f"s{i}") for i in range(steps)), builder.end_node]
        pairs = itertools.pairwise(nodes)
        builder.add(*(builder.edge_from(before).to(after) for before, after in pairs))
        built = builder.build()
        return {"pydantic-graph, a step a call": lambda: built.run(inputs=0)}

    @peers.add("smolagents", "smolagents.local_python_executor")
    def _smolagents(library: Any) -> dict[str, Runner]:
        executor = library.LocalPythonExecutor(additional_authorized_imports=[])
        executor.send_tools({"add_one": add_one_now})
        code = f"x = 0\nfor i in range({steps}):\n    x = add_one(x)\nx"
        return {"smolagents interpreter, a loop (sync tool)": lambda: executor(code).output}

    try:
        monty = importlib.import_module("pydantic_monty")
    except ImportError:
        peers.missing.append("Monty")
    else:
        pool = await stack.enter_async_context(monty.AsyncMonty())
        session = await stack.enter_async_context(pool.checkout(limits={"max_suspensions": 100_000_000}))
        code = f"x = 0\nfor i in range({steps}):\n    x = await add_one(x)\nx"
        peers.runners["Monty, a loop"] = lambda: session.feed_run(code, external_lookup={"add_one": add_one})
    return peers


def fanout(calls: int, limit: int) -> Peers:
    """Return runners of independent calls, at most `limit` in flight. They return the results, in any order."""
    peers = Peers()

    @peers.add("LangGraph", "langgraph.graph", "langgraph.types")
    def _langgraph(graph: Any, types: Any) -> dict[str, Runner]:
        async def node(state: OneNumber) -> dict[str, list[int]]:
            return {"out": [await add_one(state["x"])]}

        async def fan(_: Numbers) -> list[Any]:
            return [types.Send("call", {"x": i}) for i in range(calls)]

        builder = graph.StateGraph(Numbers)
        builder.add_node("call", node)
        builder.add_conditional_edges(graph.START, fan, ["call"])
        builder.add_edge("call", graph.END)
        compiled = builder.compile()

        async def run() -> list[int]:
            return (await compiled.ainvoke({"out": []}, {"max_concurrency": limit}))["out"]

        return {"LangGraph, Send": run}

    @peers.add("pydantic-graph", "pydantic_graph")
    def _pydantic_graph(library: Any) -> dict[str, Runner]:
        builder = library.GraphBuilder(input_type=int, output_type=list)
        in_turns = InTurns(limit)

        async def items(context: Any) -> list[int]:
            return list(range(context.inputs))

        async def one(context: Any) -> int:
            return await in_turns(context.inputs)

        first, each = builder.step(items, node_id="items"), builder.step(one, node_id="one")
        together = builder.join(library.reduce_list_append, initial_factory=list)
        builder.add(
            builder.edge_from(builder.start_node).to(first),
            builder.edge_from(first).map().to(each),
            builder.edge_from(each).to(together),
            builder.edge_from(together).to(builder.end_node),
        )
        built = builder.build()
        return {"pydantic-graph, map and join": lambda: built.run(inputs=calls)}

    @peers.add("dask", "dask")
    def _dask(dask: Any) -> dict[str, Runner]:
        def run() -> list[int]:
            call = dask.delayed(add_one_now)
            work = [call(i) for i in range(calls)]
            return list(dask.compute(*work, scheduler="threads", num_workers=2, optimize_graph=False))

        return {"dask, delayed in 2 threads (sync tool)": run}

    return peers


def graph(uses: Sequence[Sequence[int]], seconds: Sequence[float], limit: int | None) -> Peers:
    """Return runners of calls that sleep, each after those that it uses. They return the numbers of all calls."""
    peers = Peers()

    @peers.add("LangGraph", "langgraph.graph")
    def _langgraph(graph: Any) -> dict[str, Runner]:
        builder = graph.StateGraph(Results)

        async def node(number: int, _: Results) -> dict[str, dict[int, int]]:
            await asyncio.sleep(seconds[number])
            return {"out": {number: number}}

        for number in range(len(uses)):
            builder.add_node(f"s{number}", functools.partial(node, number))
        used = {earlier for each in uses for earlier in each}
        for number, earlier in enumerate(uses):
            sources = [f"s{each}" for each in earlier] or [graph.START]
            builder.add_edge(sources if len(sources) > 1 else sources[0], f"s{number}")
            if number not in used:
                builder.add_edge(f"s{number}", graph.END)
        compiled = builder.compile()
        settings: dict[str, Any] = {"recursion_limit": len(uses) + 10}
        if limit is not None:
            settings["max_concurrency"] = limit

        async def run() -> list[int]:
            return sorted((await compiled.ainvoke({"out": {}}, settings))["out"])

        return {"LangGraph, a node a call": run}

    @peers.add("dask", "dask")
    def _dask(dask: Any) -> dict[str, Runner]:
        def call(number: int, *_: int) -> int:
            time.sleep(seconds[number])
            return number

        def run() -> list[int]:
            delayed, work = dask.delayed(call), list[Any]()
            for number, earlier in enumerate(uses):
                work.append(delayed(number, *(work[each] for each in earlier)))
            return list(dask.compute(*work, scheduler="threads", num_workers=limit or len(uses), optimize_graph=False))

        return {"dask, delayed in threads (blocking tool)": run}

    return peers
