"""A resource is named by the value that the tool gets, so equal values name one resource however they are written."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import json
import uuid
from pathlib import PurePosixPath
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, StringConstraints

from toolplan import Agent, Tool, ToolSet, check, parse, tool
from toolplan.testing import run_in_written_order, simulate

Name = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]


class Size(enum.Enum):
    SMALL = 1


class Order(BaseModel):
    id: int
    owner: Name = "ann"


def pair(kind: Any, placeholder: str = "key") -> tuple[list[Tool], dict[str, str]]:
    store: dict[str, str] = {}

    async def put(key: Any) -> str:
        await asyncio.sleep(0.02)
        store["x"] = "new"
        return "ok"

    async def get(key: Any) -> str:
        return store.get("x", "missing")

    put.__annotations__["key"] = get.__annotations__["key"] = kind
    name = f"c:{{{placeholder}}}"
    return [Tool.of(put, writes=name), Tool.of(get, reads=name)], store


SAME = [
    (int, 2, 2.0),
    (float, 7, 7.0),
    (float, 0.0, -0.0),
    (uuid.UUID, "0A000000-0000-0000-0000-00000000000F", "0a000000-0000-0000-0000-00000000000f"),
    (decimal.Decimal, "1.50", "1.5"),
    (decimal.Decimal, "1.2345678901234567890", "1.23456789012345678900"),
    (dt.datetime, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00+00:00"),
    (dt.datetime, "2026-01-01T00:00:00Z", "2026-01-01T02:00:00+02:00"),
    (dt.timedelta, "PT60S", "PT1M"),
    (Name, "Ann", " ann "),
    (PurePosixPath, "a/./b", "a/b"),
    (str, "./a/b", "a/b"),
    (str, "x/../b", "b"),
    (list[uuid.UUID], ["0A000000-0000-0000-0000-00000000000F"], ["0a000000-0000-0000-0000-00000000000f"]),
    (list[dt.datetime], ["2026-01-01T00:00:00Z"], ["2026-01-01T02:00:00+02:00"]),
    (Size, 1, 1.0),
]


@pytest.mark.parametrize(("kind", "one", "other"), SAME)
async def test_equal_values_name_one_resource(kind: Any, one: Any, other: Any) -> None:
    tools, _ = pair(kind)
    plan = [
        {"tool_name": "put", "arguments": {"key": one}},
        {"tool_name": "get", "arguments": {"key": other}, "result_variable": "g"},
        {"answer": "{g}"},
    ]
    result = await Agent(tools=tools, policy="declared").run_plan(plan)
    assert (result.outcome, result.answer) == ("succeeded", "new"), result.answer


def test_fields_and_defaults_of_models_are_converted_too() -> None:
    for placeholder in ("key.id", "key.owner"):
        (put, get), _ = pair(Order, placeholder)
        one, other = {"id": 2, "owner": " Ann"}, {"id": 2.0}
        assert [access.resource for access in put.accesses({"key": one})] == [
            access.resource for access in get.accesses({"key": other})
        ]


def test_the_text_of_a_plan_and_its_run_agree() -> None:
    seen: list[str] = []

    @tool(writes="order:{id}")
    def change(id: int) -> str:
        seen.append("new")
        return "x"

    @tool(reads="order:{id}")
    def look(id: int) -> str:
        return seen[-1] if seen else "missing"

    tools = ToolSet.of([change, look])
    plan = [
        {"tool_name": "change", "arguments": {"id": 2}},
        {"tool_name": "look", "arguments": {"id": 2.0}, "result_variable": "g"},
        {"answer": "{g}"},
    ]
    checked = check(parse(json.dumps(plan), tools=tools), tools)
    assert run_in_written_order(checked).text == "new"
    for seed in range(20):
        seen.clear()
        assert simulate(checked, seed=seed).finish.text == "new"


def test_different_values_stay_different_and_what_cannot_be_converted_is_its_family() -> None:
    (put, _), _ = pair(int)
    assert put.accesses({"key": 2})[0].resource == ("c", "2")
    assert put.accesses({"key": 3})[0].resource == ("c", "3")
    (put, _), _ = pair(uuid.UUID)
    assert put.accesses({"key": "not one"})[0].resource == ("c",)
    assert put.accesses({})[0].resource == ("c",)


def test_tools_without_placeholders_convert_nothing() -> None:
    def look(key: uuid.UUID) -> int:
        return 1

    assert dict(Tool.of(look, reads="c").naming({"key": "whatever"})) == {}


def test_a_changed_declaration_names_anew() -> None:
    (put, _), _ = pair(int)
    assert put.accesses({"key": 1})[0].name == "c:1"
    assert put.changed(writes="d").accesses({"key": 1})[0].name == "d"
