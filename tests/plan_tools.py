"""The tools that the plans in the catalogue of diagnostics call, and short ways to check a plan with them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from toolplan.check import Limits, check
from toolplan.diagnostics import Diagnostic, Source
from toolplan.errors import PlanRejected
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.parse import parse
from toolplan.parse.python_notation import read_program
from toolplan.plan import Plan
from toolplan.tools import ToolSet, tool


@dataclass
class Weather:
    city: str
    condition: str
    temperature: float
    wind: str | None


@dataclass
class Customer:
    id: str
    name: str
    email: str | None


@dataclass
class Order:
    id: str
    item: str
    total: float
    status: Literal["open", "paid", "shipped"]


@dataclass
class Invoice:
    id: str
    total: str
    due: str | None


@dataclass
class SentMessage:
    id: str


@dataclass
class Person:
    name: str
    age: int | None = None


@tool(reads="weather")
def get_weather(city: str, date: str | None = None) -> Weather: ...


@tool(reads="customers")
def find_customer(name: str) -> Customer: ...


@tool(reads="orders")
def list_orders(customer_id: str, status: Literal["open", "paid", "shipped"] | None = None) -> list[Order]: ...


@tool(writes="mailbox:{to}")
def send_email(to: str, subject: str, body: str) -> SentMessage: ...


@tool(writes="accounts:{account}")
def pay(account: str, amount: float) -> None: ...


@tool(reads="invoices")
def read_invoice(id: str) -> Invoice: ...


@tool(pure=True)
def parse_money(text: str) -> float: ...


@tool(writes="browser", ensures="page:open")
def navigate(url: str) -> None: ...


@tool(writes="browser", requires="page:open")
def click(selector: str) -> None: ...


@tool(writes="notes:{title}")
def write_note(title: str, text: str, tags: list[str] | None = None) -> None: ...


@tool(writes="people")
def add_people(people: list[Person]) -> int: ...


@tool(writes="accounts", approval="deny")
def delete_account(user: str) -> None: ...


@tool(available="env:TOOLPLAN_TESTS_NEVER_SET_THIS", reads="dictionary")
def translate(text: str) -> str: ...


TOOLS = ToolSet.of(
    [
        get_weather,
        find_customer,
        list_orders,
        send_email,
        pay,
        read_invoice,
        parse_money,
        navigate,
        click,
        write_note,
        add_people,
        delete_account,
        translate,
    ]
)


Written = str | list[Any] | dict[str, Any]
"""A plan in either notation, or the value that its JSON is."""


def reading(written: Written, tools: ToolSet = TOOLS) -> Plan:
    """Return the plan; a text that begins like JSON is JSON, any other text is Python."""
    text = written if isinstance(written, str) else json.dumps(written, ensure_ascii=False, indent=1)
    if text.lstrip()[:1] in ("[", "{"):
        plan = parse(text, tools=tools)
    else:
        parameters = {each.name: list(each.parameters["properties"]) for each in tools}
        plan = read_program(Source(text), tools.names, parameters)
    assert isinstance(plan, Plan)
    return plan


def diagnostics(
    written: Written, tools: ToolSet = TOOLS, limits: Limits | None = None, known: Known = NOTHING_KNOWN
) -> tuple[Diagnostic, ...]:
    """Return everything that the checker says about a plan, whether it accepts it or not."""
    try:
        return check(reading(written, tools), tools, limits or Limits(), known).warnings
    except PlanRejected as rejected:
        return rejected.diagnostics


def codes(written: Written, tools: ToolSet = TOOLS, limits: Limits | None = None) -> list[str]:
    return [each.code for each in diagnostics(written, tools, limits)]


def only(written: Written, tools: ToolSet = TOOLS, limits: Limits | None = None) -> Diagnostic:
    """Return the one thing that the checker says."""
    (found,) = diagnostics(written, tools, limits)
    return found
