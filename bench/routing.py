"""Routing: how often all the tools that a request needs are among the ten that are sent, and what that saves.

Three public sets: Seal-Tools (4,076 tools, one or several needed), AgentDojo's tools of all suites together, and
Chinese requests over Chinese tools. Needed are the tools that the reference calls; for the Chinese ones, those of the
recorded programs. A query counts when ALL of them are chosen. The constants of the router are the customary ones; what
else was chosen (weights of fields, plurals only) was chosen on the queries of one half, by a hash of the id, so the
other half is shown on its own. Tokens are those of whole prompts, by the product's estimate.

The keywords of Seal-Tools are the categories that come with it, which no person wrote as intents; they are shown for
what they do, not as advice. Those for the Chinese tools are below.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data import find, lines
from bench.harness import Bench, Goal, Listing, Report, not_run
from toolplan import Agent, Plan, Tool, ToolSet, UsageError, parse
from toolplan.plan import Call, walk
from toolplan.prompt import estimate_tokens
from toolplan.route import Router

NAME = "routing"
FLOOR = 0.749
"""What a plain word index with Robertson's weights reaches on Seal-Tools."""
MANY = 500
"""With more tools than these the default run takes only every fourth query where vectors are compared."""
NOW = "2026-03-18T09:00:00"

ZH_INTENTS = {
    "天气": ["get_weather", "get_forecast"],
    "气温": ["get_weather", "get_forecast"],
    "下雨": ["get_forecast"],
    "邮件": ["send_email", "list_emails", "read_email", "find_contact"],
    "短信": ["send_sms", "find_contact"],
    "日程": ["list_events", "create_event"],
    "会议": ["list_events", "create_event", "cancel_event", "reschedule_event"],
    "机票": ["search_flights", "book_flight"],
    "火车": ["search_trains", "book_train"],
    "高铁": ["search_trains", "book_train"],
    "酒店": ["search_hotels", "book_hotel"],
    "餐厅": ["search_restaurants", "book_restaurant"],
    "订单": ["list_orders"],
    "快递": ["list_orders", "track_shipment"],
    "文件": ["list_files", "read_file", "write_file"],
    "报销": ["list_expenses"],
    "待办": ["list_todos", "add_todo"],
    "闹钟": ["set_alarm"],
    "汇率": ["get_exchange_rate"],
    "股价": ["get_stock_price"],
}
"""Written from the names of the tools alone, as an application's author would: everyday words for groups of tools."""


@dataclass(frozen=True)
class Query:
    """A request and the tools that it needs. `is_held_out`: nothing was chosen by it."""

    id: str
    request: str
    needed: frozenset[str]

    @property
    def is_held_out(self) -> bool:
        return int(hashlib.sha256(self.id.encode()).hexdigest(), 16) % 2 == 1


@dataclass(frozen=True)
class Set:
    """Tools and queries over them; `intents` maps keywords to tools."""

    name: str
    tools: ToolSet
    queries: Sequence[Query]
    intents: dict[str, list[str]]


def seal_tools(folder: Path) -> Set:
    """Return the Seal-Tools sample. A tool's field stands in its description; its last part is its keyword."""
    tools, intents = [], {}
    for each in json.loads((folder / "tool_pool.json").read_text(encoding="utf-8")):
        about = f"{each['description']} ({each['field']})"
        returns = {"type": "object", "properties": {name: {} for name in each["responses"]}}
        takes = {"type": "object", "properties": {name: {} for name in each["parameters"]}}
        tools.append(Tool.from_schema(_name(each["name"]), about, takes, _nothing, returns))
        intents.setdefault(each["field"].rpartition("/")[2], []).append(_name(each["name"]))
    queries = [
        Query(row["id"], row["query"], frozenset(_name(call["api"]) for call in row["calling"]))
        for row in lines(folder / "queries.jsonl")
    ]
    return Set("Seal-Tools", ToolSet.of(tools), queries, intents)


def agentdojo(folder: Path) -> Set:
    """Return the tools of all suites, one of each name, and the requests that need any."""
    tools: dict[str, Tool] = {}
    for suite in json.loads((folder / "tools.json").read_text(encoding="utf-8")).values():
        for each in suite:
            tools.setdefault(
                each["name"], Tool.from_schema(each["name"], each["description"], each["parameters"], _nothing)
            )
    queries = [
        Query(row["id"], row["prompt"], frozenset(call["name"] for call in row["calls"]))
        for row in lines(folder / "user_plans.jsonl")
    ]
    return Set("AgentDojo", ToolSet.of(tools.values()), [query for query in queries if query.needed], {})


def chinese(folder: Path, programs: Path) -> Set:
    """Return the Chinese requests; needed is what a strong model's program for them calls, on any path."""
    sys.path.insert(0, str(folder))
    module = importlib.import_module("zh_tools")
    declared = ("pure", "reads", "writes", "requires", "ensures")
    tools = ToolSet.of(
        Tool.of(function, **{key: value for key in declared if (value := module.EFFECTS[function.__name__].get(key))})
        for function in module.make_tools(module.World())
    )
    requests = {task["id"]: task["request"] for task in lines(folder / "tasks.jsonl")}
    queries = []
    for row in lines(programs):
        plan = parse(row["reply"], tools=tools)
        called = {step.tool for step in walk(plan.steps) if isinstance(step, Call)} if isinstance(plan, Plan) else set()
        if called:
            queries.append(Query(row["id"], requests[row["id"]], frozenset(called)))
    intents = {keyword: [name for name in names if name in tools] for keyword, names in ZH_INTENTS.items()}
    return Set("Chinese", tools, queries, intents)


def _name(name: str) -> str:
    """Return a tool's name without the spaces that a few have."""
    return name.replace(" ", "_")


def _nothing(**_: Any) -> None:
    """Stand where a tool's function would; nothing is called here."""


def embeddings() -> Callable[[Sequence[str]], Any] | None:
    """Return the packaged embeddings, or None without the package."""
    from toolplan.models.embeddings import packaged_embeddings

    try:
        return packaged_embeddings()
    except UsageError:
        return None


async def run(full: bool) -> Report:
    """Choose for every query with every way of routing."""
    folders = [find("seal_tools"), find("agentdojo"), find("zh_tasks"), find("model_replies", "zh_python.jsonl")]
    if any(folder is None for folder in folders):
        return not_run(NAME, "seal_tools, agentdojo, zh_tasks or model_replies is not there")
    seal, dojo, zh, programs = folders
    sets = [seal_tools(seal), agentdojo(dojo), chinese(zh, programs)]
    embed = embeddings()
    rows: list[tuple[str, ...]] = []
    goals: list[Goal] = []
    for each in sets:
        ways: dict[str, dict[str, Any]] = {"words": {}}
        if each.intents:
            ways["words + keywords"] = {"intents": each.intents}
        if embed is not None:
            ways["words + embeddings"] = {"embed": embed}
            if each.intents and (full or len(each.tools) < MANY):
                ways["words + keywords + embeddings"] = {"embed": embed, "intents": each.intents}
        for way, options in ways.items():
            is_slow = "embed" in options and len(each.tools) > MANY and not full
            queries = each.queries[::4] if is_slow else each.queries
            for top in (5, 10, 20) if full or len(each.tools) < MANY else (10,):
                router = Router(each.tools, top=top, **options)
                router.select("warm up")
                complete, took = _complete(router, queries)
                if (each.name, way, top) == ("Seal-Tools", "words", 10):
                    goals = _goals(each.queries, complete)
                rows.append(
                    (
                        f"{each.name} ({len(each.tools)} tools)",
                        way,
                        str(top),
                        _share(complete, queries),
                        _share(complete, [query for query in queries if query.is_held_out]),
                        f"{took * 1e3:.1f}",
                    )
                )
    notes = [
        f"floor on Seal-Tools at 10: {FLOOR}",
        "keywords: Seal-Tools' fields, a hand-written table for Chinese",
        "AgentDojo: 74 tools of four suites, 69 names",
    ]
    notes += [] if embed else ["embeddings not run: pip install 'toolplan[route]'"]
    columns = ("set", "by", "top", "all needed tools chosen", "held-out half", "ms a query")
    found = Listing("all needed tools among those chosen", columns, tuple(rows), tuple(notes))
    saved = Listing(
        "tokens of a prompt that asks for a plan (median of 40 queries, top 10)",
        ("set", "all tools", "routed", "saved"),
        tuple(_saved(each) for each in sets),
    )
    return Report(NAME, [found, saved], goals)


def _complete(router: Router, queries: Iterable[Query]) -> tuple[set[str], float]:
    """Return the ids of the queries whose tools are all chosen, and the seconds that a query takes."""
    complete: set[str] = set()
    seconds: list[float] = []
    for query in queries:
        started = time.perf_counter()
        selection = router.select(query.request)
        seconds.append(time.perf_counter() - started)
        # Where no word tells, all tools may be shown; that is no choice of so few.
        if query.needed <= set(selection.tools.names) and len(selection.tools) <= router.top:
            complete.add(query.id)
    return complete, statistics.mean(seconds)


def _share(complete: set[str], queries: Sequence[Query]) -> str:
    done = sum(query.id in complete for query in queries)
    return f"{done / len(queries):.3f} ({done} of {len(queries)})"


def _goals(queries: Sequence[Query], complete: set[str]) -> list[Goal]:
    goals = []
    for what, some in (("", queries), ("held out ", [query for query in queries if query.is_held_out])):
        share = sum(query.id in complete for query in some) / len(some)
        goals.append(Goal(f"{what}{share:.3f} of Seal-Tools complete in 10", -share, -FLOOR, f"> {FLOOR}"))
    return goals


def _saved(each: Set) -> tuple[str, ...]:
    everything, routed = (
        Agent(tools=each.tools, now=NOW),
        Agent(tools=each.tools, now=NOW, route=Router(each.tools, top=10)),
    )
    before, after = [], []
    for query in list(each.queries)[:: max(1, len(each.queries) // 40)]:
        for agent, sizes in ((everything, before), (routed, after)):
            if agent is everything and before and len(each.tools) > MANY:
                continue  # only the request differs, and the tools are hundreds of thousands of tokens
            sizes.append(sum(estimate_tokens(message.content) for message in agent.prompt(query.request)))
    full, small = statistics.median(before), statistics.median(after)
    return (each.name, f"{full:,.0f}", f"{small:,.0f}", f"{1 - small / full:.0%}")


BENCH = Bench(NAME, "needed tools among those sent, on public sets, and the tokens saved", run)
