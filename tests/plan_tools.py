"""The tools that the plans in the catalogue of diagnostics, and the tests of the checker, call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
        translate,
    ]
)
