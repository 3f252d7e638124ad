"""What a model is told about the mistakes that models make, in both notations.

Each mistake is written as a model would write it. The table of codes and help lines is docs/reference/mistakes.md;
`--update-golden` writes it anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from plan_tools import TOOLS
from toolplan.check import Limits, check
from toolplan.diagnostics import NOWHERE, Diagnostic, load_catalogue
from toolplan.errors import PlanRejected
from toolplan.parse import parse
from toolplan.plan import Plan

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "mistakes.md"
LIMITS = Limits(max_calls=100)


@dataclass(frozen=True)
class Mistake:
    """A mistake as it is written in each notation; None where the notation cannot express it, and why."""

    name: str
    json: str | None
    python: str | None
    codes: tuple[str, str]
    """The codes that are expected in JSON and in Python."""
    why_not: str = ""

    @property
    def texts(self) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
        return ("json", self.json), ("python", self.python)


def step(tool: str, arguments: str, result: str = "", rest: str = "") -> str:
    named = f', "result_variable": "{result}"' if result else ""
    return f'{{"tool_name": "{tool}", "arguments": {{{arguments}}}{named}{rest}}}'


def plan(*steps: str) -> str:
    return "[" + ",\n ".join(steps) + "]"


WEATHER = step("get_weather", '"city": "Oslo"', "w")
PAY_ONE = step("pay", '"account": "A", "amount": 1')
PAY_TWO = step("pay", '"account": "A", "amount": 2')
ORDERS = step("list_orders", '"customer_id": "C-1"', "orders")
MAIL = '"to": "a@example.org", "subject": "Hi", "body": '


def mail(body: str) -> str:
    return step("send_email", MAIL + f'"{body}"')


PY_WEATHER = 'w = get_weather(city="Oslo")\n'
PY_ORDERS = 'orders = list_orders(customer_id="C-1")\n'


def py_mail(body: str) -> str:
    return f'send_email(to="a@example.org", subject="Hi", body={body})\n'


MISTAKES = [
    Mistake(
        "a tool that does not exist",
        plan(step("sent_email", MAIL + '"x"')),
        'sent_email(to="a@example.org", subject="Hi", body="x")\n',
        ("TP201", "TP201"),
    ),
    Mistake(
        "a required argument is missing",
        plan(step("send_email", '"to": "a@example.org", "body": "x"')),
        'send_email(to="a@example.org", body="x")\n',
        ("TP303", "TP303"),
    ),
    Mistake(
        "an argument that the tool does not have",
        plan(step("send_email", '"recipient": "a@example.org", "subject": "Hi", "body": "x"')),
        'send_email(recipient="a@example.org", subject="Hi", body="x")\n',
        ("TP302", "TP302"),
    ),
    Mistake(
        "a constant of the wrong type",
        plan(step("pay", '"account": "A-1", "amount": "twelve"')),
        'pay(account="A-1", amount="twelve")\n',
        ("TP301", "TP301"),
    ),
    Mistake(
        "a result of the wrong type",
        plan(step("read_invoice", '"id": "R-7"', "i"), step("pay", '"account": "A-1", "amount": "{i.total}"')),
        'i = read_invoice(id="R-7")\npay(account="A-1", amount=i.total)\n',
        ("TP304", "TP304"),
    ),
    Mistake(
        "a misspelt field",
        plan(WEATHER, mail("{w.temprature}")),
        PY_WEATHER + py_mail('f"{w.temprature}"'),
        ("TP306", "TP306"),
    ),
    Mistake(
        "a name that a later step defines",
        plan(mail("{w.condition}"), WEATHER),
        py_mail("w.condition") + PY_WEATHER,
        ("TP203", "TP203"),
    ),
    Mistake(
        "a name that nothing defines",
        plan(WEATHER, mail("{weather.condition}")),
        PY_WEATHER + py_mail("weather.condition"),
        ("TP203", "TP203"),
    ),
    Mistake(
        "a name that one branch defines",
        plan(
            WEATHER,
            '{"if": "w.temperature < 5", "then": [{"let": {"advice": "\'Wear a coat.\'"}}]}',
            mail("{advice}"),
        ),
        PY_WEATHER + 'if w.temperature < 5:\n    advice = "Wear a coat."\n' + py_mail("advice"),
        ("TP202", "TP202"),
    ),
    Mistake(
        '`"3°C" < 5`',
        plan(f'{{"if": "\'3°C\' < 5", "then": [{mail("cold")}]}}'),
        'if "3°C" < 5:\n    ' + py_mail('"cold"'),
        ("TP309", "TP309"),
    ),
    Mistake(
        "text of a result compared with a number",
        plan(WEATHER, f'{{"if": "w.condition > 5", "then": [{mail("x")}]}}'),
        PY_WEATHER + "if w.condition > 5:\n    " + py_mail('"x"'),
        ("TP309", "TP309"),
    ),
    Mistake(
        "a list compared with a number",
        plan(ORDERS, f'{{"if": "orders > 3", "then": [{mail("many")}]}}'),
        PY_ORDERS + "if orders > 3:\n    " + py_mail('"many"'),
        ("TP309", "TP309"),
    ),
    Mistake(
        "a state that nothing brings about",
        plan(step("click", '"selector": "#buy"')),
        'click(selector="#buy")\n',
        ("TP402", "TP402"),
    ),
    Mistake(
        "steps that wait for each other",
        plan(
            step("pay", '"account": "A", "amount": 1', "a", ', "depends_on": ["b"]'),
            step("pay", '"account": "B", "amount": 2', "b", ', "depends_on": ["a"]'),
        ),
        None,
        ("TP206", ""),
        "a program has no `depends_on`; its order is the order of its lines",
    ),
    Mistake(
        "a step that waits for itself",
        plan(step("pay", '"account": "A", "amount": 1', "a", ', "depends_on": ["a"]')),
        None,
        ("TP206", ""),
        "a program has no `depends_on`; its order is the order of its lines",
    ),
    Mistake(
        "`depends_on` of a step that does not exist",
        plan(WEATHER, step("pay", '"account": "A", "amount": 1', "", ', "depends_on": ["weather"]')),
        None,
        ("TP204", ""),
        "a program has no `depends_on`; its order is the order of its lines",
    ),
    Mistake(
        "a value that may be null as an argument",
        plan(
            step("find_customer", '"name": "Kim"', "c"),
            step("send_email", '"to": "{c.email}", "subject": "Hi", "body": "x"'),
        ),
        'c = find_customer(name="Kim")\nsend_email(to=c.email, subject="Hi", body="x")\n',
        ("TP305", "TP305"),
    ),
    Mistake(
        "a value that is not one of those allowed",
        plan(step("list_orders", '"customer_id": "C-1", "status": "payed"', "o"), mail("{len(o)} orders")),
        'o = list_orders(customer_id="C-1", status="payed")\n' + py_mail('f"{len(o)} orders"'),
        ("TP301", "TP301"),
    ),
    Mistake(
        "a comparison with a value that never occurs",
        plan(ORDERS, '{"let": {"late": "[o for o in orders if o.status == \'late\']"}}', mail("{len(late)} orders")),
        PY_ORDERS + 'late = [o for o in orders if o.status == "late"]\n' + py_mail('f"{len(late)} orders"'),
        ("TP310", "TP310"),
    ),
    Mistake(
        "a wrong type inside a list of objects",
        plan(step("add_people", '"people": [{"name": "Ann", "age": "41"}]')),
        'add_people(people=[{"name": "Ann", "age": "41"}])\n',
        ("TP301", "TP301"),
    ),
    Mistake(
        "a list used as an object",
        plan(ORDERS, mail("{orders.total}")),
        PY_ORDERS + py_mail('f"{orders.total}"'),
        ("TP307", "TP307"),
    ),
    Mistake(
        "an object used as a list",
        plan(WEATHER, mail("{w[0]}")),
        PY_WEATHER + py_mail('f"{w[0]}"'),
        ("TP308", "TP308"),
    ),
    Mistake(
        "a loop over a number",
        plan(WEATHER, f'{{"for_each": "w.temperature", "as": "t", "do": [{mail("{t}")}]}}'),
        PY_WEATHER + "for t in w.temperature:\n    " + py_mail('f"{t}"'),
        ("TP315", "TP315"),
    ),
    Mistake(
        "`break` outside a loop",
        plan(WEATHER, '{"if": "w.temperature < 5", "then": [{"break": true}]}'),
        PY_WEATHER + "if w.temperature < 5:\n    break\n",
        ("TP121", "TP121"),
    ),
    Mistake(
        "`while` without a bound",
        plan(
            '{"let": {"cold": "true"}}',
            f'{{"while": "cold", "do": [{WEATHER}, {{"let": {{"cold": "w.temperature < 5"}}}}]}}',
        ),
        "cold = True\nwhile cold:\n    " + PY_WEATHER + "    cold = w.temperature < 5\n",
        ("TP119", "TP153"),
    ),
    Mistake(
        "a function that does not exist",
        plan(ORDERS, mail("{total(orders)} EUR")),
        PY_ORDERS + py_mail('f"{total(orders)} EUR"'),
        ("TP212", "TP201"),
    ),
    Mistake(
        "a method that text does not have",
        plan(WEATHER, mail("{w.condition.capitalise()}")),
        PY_WEATHER + py_mail("w.condition.capitalise()"),
        ("TP212", "TP116"),
    ),
    Mistake(
        "a method of text on a list",
        plan(ORDERS, mail("{orders.upper()}")),
        PY_ORDERS + py_mail("orders.upper()"),
        ("TP312", "TP312"),
    ),
    Mistake(
        "a built-in function with too many arguments",
        plan(ORDERS, mail("{len(orders, 2)} orders")),
        PY_ORDERS + py_mail('f"{len(orders, 2)} orders"'),
        ("TP212", "TP116"),
    ),
    Mistake(
        "`sum` of objects",
        plan(ORDERS, mail("{sum(orders)}")),
        PY_ORDERS + py_mail('f"{sum(orders)}"'),
        ("TP313", "TP313"),
    ),
    Mistake(
        "text and a number added",
        plan(WEATHER, '{"let": {"line": "w.city + w.temperature"}}', mail("{line}")),
        PY_WEATHER + "line = w.city + w.temperature\n" + py_mail("line"),
        ("TP311", "TP311"),
    ),
    Mistake(
        "a key written twice",
        plan(step("pay", '"account": "A", "account": "B", "amount": 1')),
        'pay(account="A", account="B", amount=1)\n',
        ("TP109", "TP163"),
    ),
    Mistake(
        "a step that can never run",
        plan(WEATHER, '{"answer": "{w.condition}"}', mail("{w.condition}")),
        PY_WEATHER + "answer(w.condition)\n" + py_mail("w.condition"),
        ("TP210", "TP210"),
    ),
    Mistake(
        "a result that nothing uses",
        plan(WEATHER, '{"answer": "It is fine."}'),
        PY_WEATHER + 'answer("It is fine.")\n',
        ("TP209", "TP209"),
    ),
    Mistake(
        "a tool that is not available",
        plan(step("translate", '"text": "hei"', "t"), mail("{t}")),
        't = translate(text="hei")\n' + py_mail("t"),
        ("TP316", "TP316"),
    ),
    Mistake(
        "a field of null",
        plan(step("find_customer", '"name": "Kim"', "c"), mail("{c.email.upper()}")),
        'c = find_customer(name="Kim")\n' + py_mail("c.email.upper()"),
        ("TP314", "TP314"),
    ),
    Mistake(
        "a loop's name used after the loop",
        plan(
            '{"for_each": "[\'Oslo\', \'Rome\']", "as": "city", "do": ['
            + step("get_weather", '"city": "{city}"', "w")
            + "]}",
            mail("{w.condition}"),
        ),
        'for city in ["Oslo", "Rome"]:\n    w = get_weather(city=city)\n' + py_mail("w.condition"),
        ("TP203", "TP203"),
    ),
    Mistake(
        "more calls than the budget allows",
        plan(f'{{"for_each": "range(1000)", "as": "n", "do": [{mail("number {n}")}]}}'),
        "for n in range(1000):\n    " + py_mail('f"number {n}"'),
        ("TP503", "TP503"),
    ),
    Mistake(
        "members of `parallel` that get in each other's way",
        plan('{"parallel": [' + PAY_ONE + ", " + PAY_TWO + "]}"),
        None,
        ("TP401", ""),
        "`asyncio.gather` claims nothing in a program; the calls run in written order",
    ),
    Mistake(
        "something out of an imported module",
        None,
        "import datetime\nday = datetime.date.today()\n" + py_mail("str(day)"),
        ("", "TP152"),
        "JSON has no imports",
    ),
]


def told(text: str | None, notation: str) -> tuple[Diagnostic, ...]:
    """Return everything that a model is told about a plan."""
    assert text is not None
    try:
        reading = parse(text, notation, TOOLS)  # type: ignore[arg-type]
        assert isinstance(reading, Plan)
        return check(reading, TOOLS, LIMITS).warnings
    except PlanRejected as rejected:
        return rejected.diagnostics


WRITTEN = [
    pytest.param(mistake, notation, id=f"{mistake.name}-{notation}")
    for mistake in MISTAKES
    for notation in ("json", "python")
    if getattr(mistake, notation) is not None
]


@pytest.mark.parametrize(("mistake", "notation"), WRITTEN)
def test_a_mistake_is_told_once_with_what_would_be_right(mistake: Mistake, notation: str) -> None:
    (found,) = told(getattr(mistake, notation), notation)
    assert found.code == mistake.codes[notation == "python"]
    assert found.severity is load_catalogue()[found.code].severity
    assert found.place != NOWHERE
    assert found.help or found.notes or " must be " in found.message or found.code in SAID_BY_THE_MESSAGE


SAID_BY_THE_MESSAGE = {"TP309", "TP310", "TP313", "TP315"}
"""Codes whose message may say it all: both halves of what does not go together."""


def test_there_are_mistakes_enough_in_both_notations() -> None:
    assert sum(bool(mistake.json and mistake.python) for mistake in MISTAKES) >= 30
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
    assert all(mistake.why_not for mistake in MISTAKES if not (mistake.json and mistake.python))


# --- the page ---------------------------------------------------------------------------------------------------------

HEAD = """# Mistakes and what a model is told
<!-- Made by tests/integration/test_seeded_mistakes.py with --update-golden; do not edit. -->

The mistakes that models make most, each seeded into a small plan in both notations, and what the checker says about it
before anything runs. The last column says what to write instead; where there is nothing, the message says it all.
`toolplan explain CODE` has the longer story.

| mistake | JSON | Python | message | help |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """Return the page of all mistakes."""
    rows: list[str] = []
    notes: list[str] = []
    for mistake in MISTAKES:
        found = [told(text, notation)[0] if text else None for notation, text in mistake.texts]
        codes = [f"[{each.code}](errors.md#{each.code.lower()})" if each else "-" for each in found]
        told_apart = list(dict.fromkeys((each.message, each.help or "") for each in found if each))
        messages = [cell(message) for message in dict.fromkeys(message for message, _ in told_apart)]
        helps = [cell(help) for help in dict.fromkeys(help for _, help in told_apart) if help]
        rows.append(f"| {cell(mistake.name)} | {' | '.join(codes)} | {'<br>'.join(messages)} | {'<br>'.join(helps)} |")
        if mistake.why_not:
            notes.append(f"- {mistake.name}: {mistake.why_not}.")
    return HEAD + "\n".join(rows) + "\n\nWritten in one notation only:\n\n" + "\n".join(notes) + "\n"


def cell(text: str) -> str:
    """Return text that stands in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def test_the_page_says_what_a_model_is_told(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(page(), encoding="utf-8", newline="\n")
    assert PAGE.exists(), f"{PAGE} is absent; --update-golden writes it"
    assert PAGE.read_text(encoding="utf-8") == page()
