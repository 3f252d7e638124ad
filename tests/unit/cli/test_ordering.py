"""`explain-order` and `show --order`."""

from __future__ import annotations

TOOLS_FILE = ("--tools", "office.py")


def test_the_order_of_a_plan_in_words(office) -> None:
    office.plan(
        [
            {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
            {"tool_name": "send_email", "arguments": {"to": "ann", "subject": "{w.city}"}},
            {"tool_name": "pay", "arguments": {"amount": 1}},
        ]
    )
    done = office("explain-order", "plan.json", *TOOLS_FILE)
    assert done.code == 0
    assert "waits for s1: `w`" in done.out
    assert "waits until s2 can no longer fail" in done.out
    everything = office("explain-order", "plan.json", *TOOLS_FILE, "--all")
    assert "waits until s1 and s2 can no longer fail" in everything.out
    independent = office("explain-order", "plan.json", *TOOLS_FILE, "--failure", "independent")
    assert "can no longer fail" not in independent.out


def test_show_order_is_the_same(office) -> None:
    office.plan(office.GOOD_PLAN)
    by_itself = office("explain-order", "plan.json", *TOOLS_FILE, "--json")
    assert office("show", "plan.json", "--order", *TOOLS_FILE, "--json") == by_itself
    assert by_itself.document["steps"][0]["id"] == "s1"


def test_order_needs_tools_and_is_no_diagram(office) -> None:
    office.plan(office.GOOD_PLAN)
    assert office("show", "plan.json", "--order").code == 2
    assert office("show", "plan.json", "--order", "--mermaid", *TOOLS_FILE).code == 2


def test_a_plan_that_may_not_run_has_no_order(office) -> None:
    office.plan(office.BAD_PLAN)
    done = office("explain-order", "plan.json", *TOOLS_FILE, "--json")
    assert (done.code, done.document["outcome"]) == (1, "rejected")
    office.write("plan.json", "It is cold.")
    assert office("explain-order", "plan.json", *TOOLS_FILE).code == 1
