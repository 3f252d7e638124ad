"""Types: values through results and expressions into arguments; branches, loops, what may be null."""

from __future__ import annotations

from typing import Any

import pytest

from plan_tools import codes, diagnostics, only
from toolplan.tools import Tool, ToolSet

CUSTOMER = {"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "c"}
ORDERS = {"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"}
INVOICE = {"tool_name": "read_invoice", "arguments": {"id": "A-17"}, "result_variable": "i"}
W = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}
END = {"answer": "done"}


def mail(**arguments: Any) -> dict[str, Any]:
    return {"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "s", "body": "b", **arguments}}


def pay(amount: Any) -> dict[str, Any]:
    return {"tool_name": "pay", "arguments": {"account": "a", "amount": amount}}


def given(schema: dict[str, Any], returns: dict[str, Any] | None = None) -> ToolSet:
    """A tool `read` whose result is of the schema `returns`, and a tool `use` with one argument `x`."""
    wanted = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    return ToolSet(
        [
            Tool.from_schema("read", "", nothing, lambda: None, returns=returns),
            Tool.from_schema("use", "", wanted, lambda **_: None),
        ]
    )


READ = {"tool_name": "read", "arguments": {}, "result_variable": "r"}


def use(x: Any) -> dict[str, Any]:
    return {"tool_name": "use", "arguments": {"x": x}}


# --- arguments ------------------------------------------------------------------------------------------------------


def test_text_where_a_number_is_wanted() -> None:
    found = only([INVOICE, pay("{i.total}")])
    assert (found.code, found.message) == ("TP304", "`amount` must be a number, but `i.total` is text")
    assert found.label == "expected float, found str"
    assert found.others[0].label == "returns Invoice, whose `total` is str"
    assert found.help == "`parse_money(i.total)` returns float"


def test_a_number_where_text_is_wanted() -> None:
    found = only([W, mail(body="{w.temperature}")])
    assert (found.code, found.help) == ("TP304", "write `str(w.temperature)`")
    assert codes([W, mail(body="{w.temperature} degrees")]) == []


FIRST = "`[o.total for o in orders][0]` is the first element; a loop with `for_each` goes through all of them"


@pytest.mark.parametrize(
    ("value", "help"),
    [
        ("{orders}", None),
        ("{[o.total for o in orders]}", FIRST),
        ("{orders[0]}", "did you mean `orders[0].total`?"),
        ("{[o.item for o in orders]}", None),
        ("{orders[0].item}", "`parse_money(orders[0].item)` returns float"),
    ],
)
def test_how_to_get_what_is_wanted(value: str, help: str | None) -> None:
    found = only([ORDERS, pay(value)])
    assert (found.code, found.help) == ("TP304", help)


def test_text_with_holes_is_text() -> None:
    assert only([W, pay("{w.temperature} ")]).message == "`amount` must be a number, but this is text"


def test_values_inside_lists_and_objects_are_judged() -> None:
    people = [{"name": "Kim", "age": "{c.name}"}, {"name": "{w.temperature}"}, {"nam": "x"}]
    found = diagnostics([CUSTOMER, W, {"tool_name": "add_people", "arguments": {"people": people}}])
    assert [(each.code, each.message) for each in found] == [
        ("TP304", "`people[0].age` must be a whole number or null, but `c.name` is text"),
        ("TP304", "`people[1].name` must be text, but `w.temperature` is a number"),
        ("TP301", "`people[2]` of `add_people` needs a field `name`, which is not there"),
    ]


def test_a_constant_beside_references_in_a_structure_is_judged() -> None:
    people = [{"name": "{c.name}", "age": "old"}]
    found = only([CUSTOMER, {"tool_name": "add_people", "arguments": {"people": people}}])
    assert (found.code, found.message) == (
        "TP301",
        "`people[0].age` of `add_people` must be a whole number or null, but is 'old'",
    )


def test_objects_are_compared_by_their_fields() -> None:
    wanted = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {}}, "required": ["id", "at"]}
    has = {"type": "object", "title": "Row", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    assert only([READ, use("{r}")], given(wanted, has)).message == (
        "`x` must be an object with a field `at`, but `r` is an object without one"
    )


def test_a_number_may_be_whole() -> None:
    assert codes([READ, use("{r}")], given({"type": "integer"}, {"type": "number"})) == []
    assert codes([READ, use("{r / 2}")], given({"type": "integer"}, {"type": "integer"})) == []


def test_true_is_no_number() -> None:
    assert codes([READ, use("{r > 1}")], given({"type": "number"}, {"type": "number"})) == ["TP304"]


def test_known_values_that_cannot_meet() -> None:
    tools = given({"enum": ["draft", "final"]}, {"enum": ["open", "closed"]})
    assert only([READ, use("{r}")], tools).message == "`x` must be 'draft' or 'final', but `r` is 'closed' or 'open'"


@pytest.mark.parametrize("returns", [None, {}, {"type": "object"}, {"not": {"type": "null"}}, {"if": {}}])
@pytest.mark.parametrize("x", ["r.mail", "r['a'][0].b", "r.total + 1", "max(r.rows).x", "r.a.b.lower()[0]"])
def test_what_is_not_known_is_no_mistake(returns: dict[str, Any] | None, x: str) -> None:
    steps = [READ, use(f"{{{x}}}"), {"if": f"{x} < 5 and {x} in r", "then": [{"note": f"{{{x}}}"}]}]
    loop = {"for_each": "r.list", "as": "each", "do": [use("{each.x}")]}
    assert codes([*steps, loop], given({"type": "string"}, returns)) == []


def test_an_open_object_may_have_any_field() -> None:
    returns = {"type": "object", "properties": {"a": {}}, "additionalProperties": True}
    assert codes([READ, use("{r.b}")], given({"type": "string"}, returns)) == []
    assert codes([READ, use("{r.b}")], given({"type": "string"}, {**returns, "additionalProperties": False})) == [
        "TP306"
    ]


def test_a_mistake_is_told_once() -> None:
    steps = [W, {"let": {"x": "w.temprature", "y": "x + 1"}}, mail(body="{y}"), {"answer": "{x.a}"}]
    assert codes(steps) == ["TP306"]


# --- null -----------------------------------------------------------------------------------------------------------


def test_a_nullable_value_for_a_required_argument_is_a_mistake() -> None:
    found = only([CUSTOMER, mail(to="{c.email}")])
    assert (found.code, found.message) == ("TP305", "`to` of `send_email` must be text, but `c.email` may be null")
    assert found.help == "write `default(c.email, '...')`, or test `c.email is not None` first"


def test_a_nullable_value_for_an_optional_argument_means_not_given() -> None:
    step = {"tool_name": "get_weather", "arguments": {"city": "Oslo", "date": "{i.due}"}, "result_variable": "v"}
    assert codes([INVOICE, step]) == []


def test_a_nullable_value_inside_a_structure_is_a_mistake() -> None:
    people = [{"name": "{c.email}"}]
    assert codes([CUSTOMER, {"tool_name": "add_people", "arguments": {"people": people}}]) == ["TP305"]


def test_a_nullable_value_in_longer_text_is_fine() -> None:
    assert codes([CUSTOMER, mail(body="write to {c.email}")]) == []


@pytest.mark.parametrize(
    "test",
    ["c.email is None", "not c.email", "c.email == None", "c['email'] is None", "c.email is None or c.name == 'x'"],
)
def test_an_early_end_leaves_the_rest_without_null(test: str) -> None:
    assert codes([CUSTOMER, {"if": test, "then": [END]}, mail(to="{c.email}")]) == []


@pytest.mark.parametrize(
    "test",
    [
        *("c.email", "c.email is not None", "c.email != None", "c.name == 'x' and c.email", "len(c.email) > 0"),
        *("'@' in c.email", "isinstance(c.email, str)", "c.email in ['a', 'b']", "c.email == 'a'"),
        *("c.get('email')", "bool(c.email)", "c.email not in [None, '']", "all([c.email, c.name])"),
    ],
)
def test_a_test_narrows_the_branch(test: str) -> None:
    found = codes([CUSTOMER, {"if": test, "then": [mail(to="{c.email}")]}])
    assert "TP305" not in found


@pytest.mark.parametrize(
    "rest",
    [
        [{"let": {"d": "c"}}, mail(to="{d.email}")],
        [{"let": {"d": "[c]"}}, {"for_each": "d", "as": "x", "do": [mail(to="{x.email}")]}],
        [{"let": {"d": "{'who': c}"}}, mail(to="{d.who.email}")],
    ],
)
def test_what_a_test_has_shown_goes_with_the_value(rest: list[dict[str, Any]]) -> None:
    assert codes([CUSTOMER, {"if": "not c.email", "then": [END]}, *rest]) == []
    assert codes([CUSTOMER, {"if": "not c.name", "then": [END]}, *rest]) == ["TP305"]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("[x for x in xs if x.a]", []),
        ("list(filter(lambda x: x.a is not None, xs))", []),
        ("[x for x in xs if x.b]", ["TP305"]),
        ("[x for x in xs]", ["TP305"]),
    ],
)
def test_what_a_comprehension_keeps_has_passed_its_test(kept: str, expected: list[str]) -> None:
    row = {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "string"}}}
    tools = given({"type": "string"}, {"type": "array", "items": {**row, "required": ["a", "b"]}})
    read = {**READ, "result_variable": "xs"}
    assert codes([read, {"let": {"ys": kept}}, use("{ys[0].a}")], tools) == expected


def test_a_test_of_something_else_does_not() -> None:
    assert codes([CUSTOMER, {"if": "c.name", "then": [mail(to="{c.email}")]}]) == ["TP305"]


def test_the_other_branch_keeps_null() -> None:
    assert codes([CUSTOMER, {"if": "c.email is not None", "then": [END], "else": [mail(to="{c.email}")]}]) == ["TP304"]


def test_a_new_value_forgets_what_was_known() -> None:
    again = {**CUSTOMER, "arguments": {"name": "Lee"}}
    assert codes([CUSTOMER, {"if": "not c.email", "then": [END]}, again, mail(to="{c.email}")]) == ["TP305"]


@pytest.mark.parametrize("to", ["{c.email or 'x'}", "{default(c.email, 'x')}", "{c.email if c.email else 'x'}"])
def test_a_stand_in_for_null(to: str) -> None:
    assert codes([CUSTOMER, mail(to=to)]) == []


def test_reading_a_field_of_what_may_be_null_is_warned_of_once() -> None:
    returns = {"type": ["object", "null"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    found = diagnostics([READ, use("{r.a}"), use("{r.b}")], given({"type": "string"}, returns))
    assert [(each.code, each.severity) for each in found] == [("TP314", "warning")]


PRICES = given(
    {"type": "string"},
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "p": {"type": ["number", "null"]},
                "s": {"type": ["string", "null"]},
                "n": {"type": "integer"},
            },
            "required": ["p", "s", "n"],
        },
    },
)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sum(x.p for x in r)", "`x.p`"),
        ("sum([x.p for x in r])", "`x.p`"),
        ("max(x.p for x in r)", "`x.p`"),
        ("max([x.p for x in r], default=0)", "`x.p`"),
        ("sorted([x.p for x in r])", "`x.p`"),
        ("', '.join(x.s for x in r)", "`x.s`"),
        ("min(r[0].p, 5)", "`r[0].p`"),
        ("min(r, key=lambda x: x.p)", "`x.p`"),
        ("sorted(r, key=lambda x: (x.n, x.p))", "`x.p`"),
        ("sorted(r, key='p')", "`p` of an element of `r`"),
        ("sum(map(lambda x: x.p, r))", "`x.p`"),
        ("[sum(ps) for ps in [[x.p for x in r]]]", "an element of `ps`"),
    ],
)
def test_null_among_what_is_added_or_ordered_is_warned_of(expression: str, value: str) -> None:
    found = only([READ, {"let": {"v": expression}}], PRICES)
    assert (found.code, found.severity) == ("TP314", "warning")
    assert found.message == f"{value} may be null, and this would fail then"


@pytest.mark.parametrize(
    "expression",
    [
        "sum(x.p for x in r if x.p is not None)",
        "sum(x.p or 0 for x in r)",
        "sum(default(x.p, 0) for x in r)",
        "sum([x.n for x in r])",
        "sum(filter(None, [x.p for x in r]))",
        "max([x for x in r if x.p], key=lambda x: x.p).n",
        "sorted([x for x in r if x.p], key='p')",
        "sorted(r, key=lambda x: (x.p is None, x.n))",
        "sorted(r, key=lambda x: x.p or 0)",
        "', '.join(x.s for x in r if x.s)",
        "max(r[0].p or 0, 1)",
        "len([x.p for x in r])",
    ],
)
def test_no_null_among_what_is_added_or_ordered(expression: str) -> None:
    assert codes([READ, {"let": {"v": expression}}], PRICES) == []


def test_kinds_are_told_apart_by_a_constant_field() -> None:
    kinds = [
        {
            "type": "object",
            "properties": {"kind": {"const": "mail"}, "to": {"type": "string"}},
            "required": ["kind", "to"],
        },
        {
            "type": "object",
            "properties": {"kind": {"const": "call"}, "to": {"type": "null"}},
            "required": ["kind", "to"],
        },
    ]
    tools = given({"type": "string"}, {"anyOf": kinds})
    assert codes([READ, {"if": "r.kind == 'mail'", "then": [use("{r.to}")]}], tools) == []
    assert codes([READ, {"if": "r.kind == 'call'", "then": [use("{r.to}")]}], tools) == ["TP304"]
    assert codes([READ, use("{r.to}")], tools) == ["TP305"]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer", "maximum": 100}, "500", "`x` of `use` must be at most 100, but is 500 (number)"),
        ({"type": "string", "format": "date"}, "'tomorrow'", None),
        ({"type": "string", "minLength": 3}, "'ab'", None),
        ({"type": ["string", "null"], "minLength": 3}, "'ab'", None),
    ],
)
def test_a_value_that_is_known_is_judged_by_the_whole_schema(
    schema: dict[str, Any], value: str, message: str | None
) -> None:
    found = only([{"let": {"v": value}}, use("{v}")], given(schema))
    assert found.code == "TP301"
    assert message is None or found.message == message


def test_a_demand_on_the_arguments_together_is_not_one_on_a_known_value() -> None:
    text = {"type": "string"}
    together = {"type": "object", "properties": {"x": text, "y": text}, "anyOf": [{"required": ["y"]}]}
    tools = ToolSet([Tool.from_schema("use", "", together, lambda **_: None)])
    assert codes([{"let": {"v": "'a'"}}, use("{v}")], tools) == []
    among = {"type": "object", "properties": {"x": {"type": "string", "not": {"enum": ["a"]}}}}
    tools = ToolSet([Tool.from_schema("use", "", among, lambda **_: None)])
    assert codes([{"let": {"v": "'a'"}}, use("{v}")], tools) == ["TP301"]


def test_a_value_that_is_known_to_fit_or_not_known_is_let_pass() -> None:
    tools = given({"type": "integer", "maximum": 100})
    assert codes([{"let": {"v": "50"}}, use("{v}")], tools) == []
    assert codes([{"let": {"v": "500"}}, use("{min(v, 100)}")], tools) == []
    grown = {"for_each": "[1, 2]", "as": "i", "do": [{"let": {"v": "v - 300"}}]}
    assert codes([{"let": {"v": "500"}}, grown, use("{v}")], tools) == []
    either = {"if": "now", "then": [{"let": {"v": "5"}}], "else": [{"let": {"v": "500"}}]}
    assert codes([either, use("{v}")], tools) == []


# --- paths ----------------------------------------------------------------------------------------------------------


def test_types_are_joined_where_paths_meet() -> None:
    steps = [W, {"if": "w.wind", "then": [{"let": {"x": "1"}}], "else": [{"let": {"x": "'a'"}}]}]
    assert codes([*steps, pay("{x}")]) == []
    assert codes([*steps, {"let": {"y": "x.field"}}]) == ["TP307"]


def test_a_loop_changes_what_it_assigns() -> None:
    body = [{"let": {"total": "total + o.total"}}]
    steps = [ORDERS, {"let": {"total": "0"}}, {"for_each": "orders", "as": "o", "do": body}]
    assert codes([*steps, pay("{total}")]) == []
    assert codes([*steps, mail(body="{total}")]) == ["TP304"]


def test_the_first_of_a_loop_is_still_null_after_it() -> None:
    body = [{"if": "best is None or o.total > best.total", "then": [{"let": {"best": "o"}}]}]
    steps = [ORDERS, {"let": {"best": "None"}}, {"for_each": "orders", "as": "o", "do": body}]
    assert codes([*steps, pay("{best.total}")]) == ["TP314"]
    assert codes([*steps, {"if": "best is None", "then": [END]}, pay("{best.total}")]) == []


def test_a_loop_that_is_left_early_keeps_what_was_found() -> None:
    found = [{"if": "o.total > 5", "then": [{"let": {"x": "o.item"}}, {"break": True}]}]
    steps = [ORDERS, {"let": {"x": "1"}}, {"for_each": "orders", "as": "o", "do": found}]
    assert codes([*steps, {"let": {"y": "x.field"}}]) == ["TP307"]
    assert codes([*steps, pay("{x}")]) == []


def test_a_loop_hides_a_name_only_while_it_runs() -> None:
    loop = {"for_each": ["a"], "as": "c", "do": [mail(body="{c}")]}
    assert codes([CUSTOMER, loop, mail(body="{c.name}")]) == []


def test_collected_values_are_a_list_of_them() -> None:
    loop = {"for_each": "orders", "as": "o", "do": [{"note": "-"}], "collect": "o.item", "result_variable": "all"}
    assert codes([ORDERS, loop, mail(body="{', '.join(all)}")]) == []
    assert codes([ORDERS, loop, mail(body="{all[0].name}")]) == ["TP307"]


def test_collected_values_that_are_kept_are_narrowed() -> None:
    loop = {"for_each": [1], "as": "n", "do": [CUSTOMER], "collect": "c.email", "result_variable": "all"}
    assert codes([loop, {"for_each": "all", "as": "to", "do": [mail(to="{to}")]}]) == ["TP305"]
    kept = {**loop, "collect_if": "c.email"}
    assert codes([kept, {"for_each": "all", "as": "to", "do": [mail(to="{to}")]}]) == []


@pytest.mark.parametrize(
    ("items", "help"),
    [
        ("w", None),
        ("w.city", "write `lines(w.city)` for its lines"),
        ("len(w.city)", "write `range(len(w.city))`"),
    ],
)
def test_a_loop_needs_a_list(items: str, help: str | None) -> None:
    found = only([W, {"for_each": items, "as": "x", "do": [{"note": "{x}"}]}])
    assert (found.code, found.help) == ("TP315", help)


def test_a_loop_over_an_element_that_is_no_list() -> None:
    loop = {"for_each": "orders[n]", "as": "x", "do": [{"note": "{x}"}]}
    found = only([ORDERS, {"let": {"n": "0"}}, loop])
    assert (found.code, found.others[0].label) == ("TP315", "returns list[Order]")


def test_a_loop_over_an_object_with_a_list_in_it() -> None:
    page = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}}
    found = only([READ, {"for_each": "r", "as": "x", "do": [use("{x}")]}], given({"type": "string"}, page))
    assert found.help == "`r.items` is a list"


def test_a_while_loop_ends_where_its_test_does_not_hold() -> None:
    steps = [CUSTOMER, {"while": "c.email is None", "do": [CUSTOMER], "max_iterations": 3}, mail(to="{c.email}")]
    assert codes(steps) == []


def test_loops_in_loops_are_checked_quickly_and_without_false_alarm() -> None:
    body: list[Any] = [{"let": {"x": "[x]"}}]
    for depth in range(12):
        body = [{"for_each": [1, 2], "as": f"n{depth}", "do": body}]
    assert codes([{"let": {"x": "0"}}, *body, {"answer": "{x}"}]) == []


def test_what_a_handler_sees_may_be_what_the_body_left() -> None:
    steps = [{"let": {"x": "1"}}, {"try": [{"let": {"x": "'a'"}}, W], "except": [{"let": {"y": "x.field"}}]}, END]
    assert "TP307" in codes(steps)
    assert codes([{"let": {"x": "1"}}, {"try": [{"let": {"x": "'a'"}}, W], "except": [pay("{x}")]}]) == []


def test_the_value_that_stands_in_for_a_failed_call() -> None:
    assert codes([{**W, "on_error": {"value": None}}, {"answer": "{w.city}"}]) == ["TP314"]
    assert codes([{**W, "on_error": {"value": None}}, {"if": "w", "then": [{"answer": "{w.city}"}]}]) == []


def test_a_quarantined_reading_is_typed_by_its_schema() -> None:
    schema = {"type": "object", "properties": {"iban": {"type": ["string", "null"]}}, "required": ["iban"]}
    ask = {"ask_model": "the IBAN?", "data": "i", "returns": schema, "result_variable": "found"}
    assert codes([INVOICE, ask, mail(to="{found.iban}")]) == ["TP305"]
    assert codes([INVOICE, ask, {"answer": "{found.name}"}]) == ["TP306"]


def test_a_person_answers_text() -> None:
    ask = {"ask_user": "which one?", "result_variable": "reply"}
    assert codes([ask, mail(body="{reply}")]) == []
    assert codes([ask, {"let": {"n": "reply + 1"}}]) == ["TP311"]


def test_python_programs_are_typed_the_same() -> None:
    program = """
c = find_customer(name="Kim")
if c.email is None:
    return "no address"
for o in list_orders(customer_id=c.id):
    if o.total > 100:
        send_email(to=c.email, subject=o.item, body=f"{o.total:.2f}")
pay(account="a", amount=c.name)
"""
    found = only(program)
    assert (found.code, found.message) == ("TP304", "`amount` must be a number, but `c.name` is text")


def test_a_text_that_stands_there_is_called_text() -> None:
    loop = only([{"for_each": "'ab'", "as": "e", "do": [{"note": "{e}"}]}])
    assert (loop.code, loop.message) == ("TP315", "a loop needs a list, but `'ab'` is text")
    orders = {"tool_name": "list_orders", "arguments": {"customer_id": "c"}, "result_variable": "o"}
    unequal = only([orders, {"answer": "{o[0].status == 'opened'}"}])
    assert unequal.code == "TP310"
    assert unequal.message.startswith("`o[0].status` is 'open', 'paid' or 'shipped' and `'opened'` is text;")
    assert unequal.help == "did you mean 'open'?"
