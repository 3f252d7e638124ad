"""The catalogue: every code's examples do what they are there for, and every text stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from plan_tools import TOOLS, diagnostics, reading
from toolplan.check import Limits, check
from toolplan.diagnostics import Explanation, catalogue, render_all
from toolplan.errors import PlanRejected
from toolplan.known import NOTHING_KNOWN, Known, MadeCall

SMALL = {
    "TP501": Limits(max_steps=4),
    "TP502": Limits(max_depth=3),
    "TP503": Limits(max_calls=100),
}
BEFORE = {"TP409": Known(made=(MadeCall("s2", "pay", {"account": "ann", "amount": 20}),), steps=2)}
"""What earlier plans have left, for the codes about that."""
POLICY = {"TP403", "TP404", "TP405"}
"""Codes of a policy: the checker accepts their examples."""
CHECKER = sorted(code for code in catalogue if code[2] in "2345" and code not in POLICY)

Golden = Callable[[str, str], None]


@pytest.mark.parametrize("code", CHECKER)
def test_the_wrong_example_gives_its_code_and_nothing_else(code: str) -> None:
    found = diagnostics(catalogue[code].wrong, limits=SMALL.get(code), known=BEFORE.get(code, NOTHING_KNOWN))
    assert {each.code for each in found} == {code}
    assert all(each.severity is catalogue[code].severity for each in found)


@pytest.mark.parametrize("code", CHECKER)
def test_the_right_example_is_clean(code: str) -> None:
    assert diagnostics(catalogue[code].right, limits=SMALL.get(code), known=BEFORE.get(code, NOTHING_KNOWN)) == ()


@pytest.mark.parametrize("code", CHECKER)
def test_the_wording_stays(code: str, golden: Golden) -> None:
    plan = reading(catalogue[code].wrong)
    found = diagnostics(catalogue[code].wrong, limits=SMALL.get(code), known=BEFORE.get(code, NOTHING_KNOWN))
    golden(f"diagnostics/{code}.txt", render_all(found, plan.source) + "\n")
    facts = [each.to_dict(plan.source) for each in found]
    golden(f"diagnostics/{code}.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("code", [code for code in catalogue if code[2] != "1"])
def test_the_story_is_written_in_house_style(code: str) -> None:
    explanation: Explanation = catalogue[code]
    assert re.fullmatch(r"TP[1-6]\d\d", code)
    assert explanation.title[0].islower() or explanation.title[0] == "`"
    assert explanation.title[-1] != "."
    assert explanation.story.rstrip().endswith((".", '"`.'))
    assert explanation.wrong != explanation.right


@pytest.mark.parametrize("code", CHECKER)
def test_a_message_stands_alone_and_blames_nobody(code: str) -> None:
    for found in diagnostics(catalogue[code].wrong, limits=SMALL.get(code), known=BEFORE.get(code, NOTHING_KNOWN)):
        assert found.message[-1] not in ".!"
        assert not re.search(r"invalid|illegal|bad |please|sorry|you ", found.message)
        assert found.label
        assert found.help or found.notes or found.others or code in ("TP308", "TP310", "TP313", "TP315", "TP317")


# --- the five samples that set the style ------------------------------------------------------------------------------


def drawn(written: str) -> str:
    with pytest.raises(PlanRejected) as rejected:
        check(reading(written), TOOLS)
    return render_all(rejected.value.diagnostics, rejected.value.source)


def test_sample_unknown_tool() -> None:
    text = 'query = "invoice"\nmails = sent_email(to="a@example.org", subject=query, body="-")\n'
    assert drawn(text) == (
        "error[TP201]: no tool is named `sent_email`\n"
        " --> plan:2:9\n"
        "  |\n"
        '2 | mails = sent_email(to="a@example.org", subject=query, body="-")\n'
        "  |         ^^^^^^^^^^ unknown tool\n"
        "  = help: did you mean `send_email`?"
    )


def test_sample_undefined_name() -> None:
    text = """\
{"steps": [
    {"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "customer"},
    {
     "tool_name": "list_orders",
     "arguments": {
       "customer_id": "{order.id}"
     }
    }
]}"""
    assert drawn(text) == (
        "error[TP203]: `order` is used here, but no earlier step defines it\n"
        " --> plan:6:25  ($.steps[1].arguments.customer_id)\n"
        "  |\n"
        '6 |        "customer_id": "{order.id}"\n'
        "  |                         ^^^^^ not defined at this step\n"
        "  = note: defined here: `customer` (find_customer), `s1`\n"
        '  = help: `customer` has a field `id`; write "{customer.id}"'
    )


def test_sample_unknown_argument() -> None:
    text = 'c = find_customer(name="Kim")\nsend_email(recipient=c.name, subject="Offer", body="text")\n'
    assert drawn(text) == (
        "error[TP302]: `send_email` takes no argument `recipient`\n"
        " --> plan:2:12\n"
        "  |\n"
        '2 | send_email(recipient=c.name, subject="Offer", body="text")\n'
        "  |            ^^^^^^^^^ not a parameter of this tool\n"
        "  = note: signature: send_email(to: str, subject: str, body: str) -> SentMessage\n"
        "  = help: did you mean `to`? it is required and missing from this call"
    )


def test_sample_wrong_type() -> None:
    text = 's1 = read_invoice(id="A-17")\nacct = "acct"\npay(account=acct, amount=s1.total)\n'
    assert drawn(text) == (
        "error[TP304]: `amount` must be a number, but `s1.total` is text\n"
        " --> plan:3:26\n"
        "  |\n"
        '1 | s1 = read_invoice(id="A-17")\n'
        "  |      ----------------------- returns Invoice, whose `total` is str\n"
        "3 | pay(account=acct, amount=s1.total)\n"
        "  |                          ^^^^^^^^ expected float, found str\n"
        "  = help: `parse_money(s1.total)` returns float"
    )


def test_sample_missing_state() -> None:
    text = '[\n   {"tool_name": "click", "arguments": {"selector": "#buy"}}\n]'
    assert drawn(text) == (
        "error[TP402]: `click` needs `page:open`, which no earlier step ensures\n"
        " --> plan:2:18  ($[0].tool_name)\n"
        "  |\n"
        '2 |    {"tool_name": "click", "arguments": {"selector": "#buy"}}\n'
        "  |                  ^^^^^^^ requires `page:open`\n"
        "  = note: `navigate(url)` ensures `page:open`\n"
        "  = help: put a `navigate` step before this one"
    )
