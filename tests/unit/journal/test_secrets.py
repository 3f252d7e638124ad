"""What was seen to be secret is in no row, however it is written there, and rows stay what they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan import Tool
from toolplan.journal.entries import Entry, ModelSaid, StepResolved, decode, encode
from toolplan.journal.secrets import LEFT_OUT, Secrets
from toolplan.schedule import CallFailed, CallSucceeded
from toolplan.tools import ToolSet


def secrets_that_saw(value: Any, kind: str = "string") -> Secrets:
    parameters = {"type": "object", "properties": {"pin": {"type": kind, "format": "password"}}}
    secrets = Secrets(ToolSet.of([Tool.from_schema("enter", "", parameters, lambda **_: None)]))
    secrets.see("enter", 1, {"pin": value})
    return secrets


def written(secrets: Secrets, entry: Entry) -> list[Any]:
    return [json.loads(body) for _, body in secrets.rows(entry)]


@pytest.mark.parametrize("text", ["p4ss/w0rd&1", "p4ss%2Fw0rd%261", "'p4ss/w0rd&1'"])
def test_a_secret_is_left_out_in_every_spelling(text: str) -> None:
    entry = CallFailed(1, f"no access with {text}", retryable=False)
    first, *_ = written(secrets_that_saw("p4ss/w0rd&1"), entry)
    assert "p4ss" not in first["error"]
    assert LEFT_OUT in first["error"]


@pytest.mark.parametrize("result", [12345678, "is 12345678", {"12345678": 1}, [["12345678"]]])
def test_a_number_is_a_secret_too(result: Any) -> None:
    first, second = written(secrets_that_saw(12345678, "integer"), CallSucceeded(2, result, 1.0))
    assert "12345678" not in json.dumps(first)
    assert second == {"what": "result"}


def test_a_number_of_the_scheduler_is_no_secret() -> None:
    (row,) = written(secrets_that_saw(12345678, "integer"), CallSucceeded(12345678, "in", 1.0))
    assert row["key"] == 12345678


@pytest.mark.parametrize("word", ["value", "result", "reason"])
def test_a_secret_that_is_the_name_of_a_field_leaves_rows_readable(word: str) -> None:
    secrets = secrets_that_saw(word)
    for entry in (CallSucceeded(2, "in", 1.0), StepResolved(1, "s1", "happened", "in", "seen")):
        assert decode(*secrets.rows(entry)[0]) == entry


GIVEN = {"user": "ann", "pin": "91z"}
"""Too short to be looked for anywhere."""


def said(*calls: tuple[str, Any], **more: Any) -> ModelSaid:
    return ModelSaid("I use 91z", [{"id": "c", "name": name, "arguments": given} for name, given in calls], **more)


@pytest.mark.parametrize(
    "entry",
    [
        said(("entr", GIVEN)),
        said(("enter", {"user": "ann", "pni": "91z"})),
        said(("enter", '{"pin": "91z')),
        said(("look", {}), ("enter", GIVEN)),
        said(finish_reason="length"),
        ModelSaid("I use 91z", [{"id": "c", "name": "x", "arguments": "91z", "problem": {"message": "91z"}}]),
        ModelSaid("I use 91z", [{"id": "c", "name": "x", "arguments": GIVEN}], [{"tool": "entr", "arguments": GIVEN}]),
        said(("look", {}), thinking="91z", kept=["91z"], notes=["91z"], finish_reason="length"),
    ],
    ids=str,
)
def test_nothing_is_written_of_a_call_that_fits_no_tool_and_of_what_stands_around_it(entry: ModelSaid) -> None:
    parameters = {"type": "object", "properties": {"user": {"type": "string"}, "pin": {"format": "password"}}}
    tools = [
        Tool.from_schema("enter", "", parameters, lambda **_: None),
        Tool.from_schema("look", "", {}, lambda: None),
    ]
    rows = Secrets(ToolSet.of(tools)).rows(entry)
    assert "91z" not in str(rows)
    assert rows[-1] == ("SecretLeftOut", '{"what":"reply"}')
    without = Secrets(ToolSet.of(tools[1:]))
    assert without.rows(entry) == [encode(entry)]


@pytest.mark.parametrize("call", [("ask_user", {"question": "on?"}), ("find_tools", {"wanted": "x"}), ("look", {})])
def test_calls_without_secrets_are_written_as_they_are(call: tuple[str, Any]) -> None:
    entry = ModelSaid("so", [{"id": "c", "name": call[0], "arguments": call[1]}])
    tools = [Tool.from_schema("look", "", {}, lambda: None)]
    tools.append(Tool.from_schema("enter", "", {"properties": {"pin": {"format": "password"}}}, lambda **_: None))
    assert Secrets(ToolSet.of(tools)).rows(entry) == [encode(entry)]
