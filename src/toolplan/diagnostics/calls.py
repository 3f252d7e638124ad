"""3xx: calls that do not fit their tool, and expressions whose types cannot be right."""

from __future__ import annotations

from collections.abc import Sequence

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, Severity, explained, nearest
from toolplan.diagnostics.names import listed
from toolplan.diagnostics.source import Place

__all__ = [
    "bad_format",
    "cannot_combine",
    "cannot_index",
    "cannot_order",
    "maybe_null",
    "missing_arguments",
    "never_equal",
    "no_fields",
    "not_a_list",
    "nullable_argument",
    "unavailable_tool",
    "unfit_argument",
    "unfit_operand",
    "unknown_argument",
    "unknown_field",
    "unknown_method",
    "wrong_type",
]


@explained(
    "TP301",
    "a constant argument that the tool does not accept",
    story="""\
A value that is written in the plan is checked against the tool's JSON Schema before anything runs: its type, its
range, its pattern, the values that are allowed. It is never replaced by a value that would fit.""",
    wrong="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1", "status": "cancelled"}}]""",
    right="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1", "status": "paid"}}]""",
)
def unfit_argument(
    place: Place, step: str, tool: str, argument: str, problem: str, label: str, signature: str, near: str | None
) -> Diagnostic:
    """A constant that the schema refuses. `problem` completes "`method` of `fit` ...": "must be text, but is 5"."""
    return Diagnostic(
        "",
        f"`{argument}` of `{tool}` {problem}",
        place,
        label,
        notes=(f"step `{step}` calls {signature}",),
        help=f"did you mean `{near}`?" if near else None,
    )


@explained(
    "TP302",
    "an argument that the tool does not have",
    story="""\
Arguments are given by the parameters' names, letter for letter. If a required parameter is missing from the same call,
it is probably the one that was meant.""",
    wrong="""\
[{"tool_name": "send_email", "arguments": {"recipient": "a@example.org", "subject": "hi", "body": "hello"}}]""",
    right="""\
[{"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "hi", "body": "hello"}}]""",
)
def unknown_argument(
    place: Place, tool: str, argument: str, signature: str, free: Sequence[str], meant: str | None
) -> Diagnostic:
    """`free` are the parameters that the call does not give; `meant` is the required one among them that fits best."""
    near = nearest(argument, free)
    if meant:
        help = f"did you mean `{meant}`? it is required and missing from this call"
    else:
        help = f"did you mean `{near}`?" if near else "leave it out"
    return Diagnostic(
        "",
        f"`{tool}` takes no argument `{argument}`",
        place,
        "not a parameter of this tool",
        notes=(f"signature: {signature}",),
        help=help,
    )


@explained(
    "TP303",
    "a required argument is missing",
    story="""\
A parameter without a default must be given. If its value is not known yet, an earlier step or `ask_user` has to find
it out.""",
    wrong='[{"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "hi"}}]',
    right='[{"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "hi", "body": "hello"}}]',
)
def missing_arguments(place: Place, tool: str, missing: Sequence[str], signature: str) -> Diagnostic:
    """A call that does not give everything the tool requires."""
    names = " and ".join(f"`{name}`" for name in missing)
    return Diagnostic(
        "",
        f"`{tool}` needs {names}, which this call does not give",
        place,
        f"{names} missing",
        notes=(f"signature: {signature}",),
        help=f"give {names}",
    )


@explained(
    "TP304",
    "an argument of the wrong type",
    story="""\
The type of the value is known from the schema of the result that it comes from, and no value of that type fits the
parameter. `number(text)` reads the number in a text, `str(value)` writes a value as text, `[value]` makes a list.""",
    wrong="""\
[{"tool_name": "read_invoice", "arguments": {"id": "A-17"}, "result_variable": "invoice"},
 {"tool_name": "pay", "arguments": {"account": "a", "amount": "{invoice.total}"}}]""",
    right="""\
[{"tool_name": "read_invoice", "arguments": {"id": "A-17"}, "result_variable": "invoice"},
 {"tool_name": "pay", "arguments": {"account": "a", "amount": "{number(invoice.total)}"}}]""",
)
def wrong_type(
    place: Place,
    argument: str,
    expected: str,
    value: str,
    found: str,
    types: tuple[str, str],
    origin: Mark | None,
    help: str | None,
) -> Diagnostic:
    """`expected` and `found` are everyday words, `types` the same in the words of signatures."""
    return Diagnostic(
        "",
        f"`{argument}` must be {expected}, but {value} is {found}",
        place,
        f"expected {types[0]}, found {types[1]}",
        others=(origin,) if origin else (),
        help=help,
    )


@explained(
    "TP305",
    "a value that may be null where null is refused",
    severity=Severity.WARNING,
    story="""\
The schema of the result allows null here, and the parameter does not accept it, so the call fails, and the run with
it, on a day when the value is missing. Say what should happen then: `default(value, fallback)`, or a branch on
`value is not None`. For an optional parameter null means "not given" and is fine.""",
    wrong="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "c"},
 {"tool_name": "send_email", "arguments": {"to": "{c.email}", "subject": "hi", "body": "hello"}}]""",
    right="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "c"},
 {"if": "c.email is None", "then": [{"cannot": "Kim has no e-mail address"}]},
 {"tool_name": "send_email", "arguments": {"to": "{c.email}", "subject": "hi", "body": "hello"}}]""",
)
def nullable_argument(
    place: Place, tool: str, argument: str, expected: str, value: str, found: str, origin: Mark | None, fallback: str
) -> Diagnostic:
    """A value that may be null, for a parameter that does not accept null. `fallback` stands in for it."""
    return Diagnostic(
        "",
        f"`{argument}` of `{tool}` must be {expected}, but `{value}` may be null",
        place,
        f"found {found}",
        others=(origin,) if origin else (),
        help=f"write `default({value}, {fallback})`, or test `{value} is not None` first",
    )


@explained(
    "TP306",
    "a field that the value does not have",
    story="""\
The schema of the result declares its fields, and this one is not among them. Results without a schema are not checked
here; a field that is missing there fails the step when it runs.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "it is {w.temprature} degrees"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "it is {w.temperature} degrees"}]""",
)
def unknown_field(place: Place, value: str, name: str, type_name: str, fields: Sequence[str]) -> Diagnostic:
    """A field that the schema does not declare."""
    near = nearest(name, fields)
    return Diagnostic(
        "",
        f"`{value}` has no field `{name}`",
        place,
        f"not a field of {type_name}",
        notes=(f"its fields are {listed(fields)}",) if fields else ("it has no fields",),
        help=f"did you mean `{near}`?" if near else None,
    )


@explained(
    "TP307",
    "a field of something that has no fields",
    story="""\
Only objects have fields. The elements of a list are reached by position (`events[0].title`), one after the other with
`for_each`, or all at once with a comprehension (`[e.title for e in events]`).""",
    wrong="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"answer": "{orders.total}"}]""",
    right="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"answer": "{sum([o.total for o in orders])}"}]""",
)
def no_fields(place: Place, value: str, kind: str, name: str, type_name: str, help: str | None) -> Diagnostic:
    """A field of a list, a text, a number."""
    return Diagnostic("", f"`{value}` is {kind}, so it has no field `{name}`", place, f"found {type_name}", help=help)


@explained(
    "TP308",
    "an index that cannot be right",
    story="""\
Lists and texts are indexed by whole numbers and slices, objects by the names of their fields. Numbers, true/false and
null have no elements.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "{w.temperature[0]}"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "{w.temperature}"}]""",
)
def cannot_index(place: Place, value: str, kind: str, index: str | None, help: str | None) -> Diagnostic:
    """An index into something without elements, or (`index`: what was given) of the wrong kind."""
    problem = f"so {index} is no index into it" if index else "which has no elements"
    return Diagnostic("", f"`{value}` is {kind}, {problem}", place, kind, help=help)


@explained(
    "TP309",
    "a comparison that cannot hold",
    story="""\
Text and numbers have no order between them, nor have lists, objects and null. Choosing a branch by such a comparison
would be a guess, so it is an error: before the run where the types are known, during it where they are not.
`number("3°C")` is 3.""",
    wrong="""\
[{"tool_name": "read_invoice", "arguments": {"id": "A-17"}, "result_variable": "invoice"},
 {"if": "invoice.total > 100", "then": [{"answer": "expensive"}], "else": [{"answer": "cheap"}]}]""",
    right="""\
[{"tool_name": "read_invoice", "arguments": {"id": "A-17"}, "result_variable": "invoice"},
 {"if": "number(invoice.total) > 100", "then": [{"answer": "expensive"}], "else": [{"answer": "cheap"}]}]""",
)
def cannot_order(
    place: Place, left: str, left_kind: str, operator: str, right: str, right_kind: str, help: str | None
) -> Diagnostic:
    """An order between values of kinds that have none."""
    return Diagnostic(
        "",
        f"`{left}` is {left_kind} and `{right}` is {right_kind}; `{operator}` cannot order them",
        place,
        f"{left_kind} {operator} {right_kind}",
        help=help,
    )


@explained(
    "TP310",
    "an equality that is never true",
    severity=Severity.WARNING,
    story="""\
The two sides are of different kinds, or the text is none of the values that the schema allows, so they are never equal
and always unequal. The plan runs, but one of its branches never does.""",
    wrong="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"answer": "{len([o for o in orders if o.status == 'payed'])} orders are paid"}]""",
    right="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"answer": "{len([o for o in orders if o.status == 'paid'])} orders are paid"}]""",
)
def never_equal(place: Place, left: str, left_kind: str, right: str, right_kind: str, help: str | None) -> Diagnostic:
    """An equality between values that cannot be equal."""
    return Diagnostic(
        "",
        f"`{left}` is {left_kind} and `{right}` is {right_kind}; they are never equal",
        place,
        "never equal",
        help=help,
    )


@explained(
    "TP311",
    "an operator between values that do not go together",
    story="""\
Arithmetic is for numbers; `+` also joins two texts or two lists, and `*` repeats a text or a list. `str(value)` makes
text, `number(text)` makes a number, and a template (`"{a} and {b}"`) puts any values into text.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"let": {"line": "'it is ' + w.temperature"}},
 {"answer": "{line}"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"let": {"line": "'it is ' + str(w.temperature)"}},
 {"answer": "{line}"}]""",
)
def cannot_combine(
    place: Place, left: str, left_kind: str, operator: str, right: str, right_kind: str, help: str | None
) -> Diagnostic:
    """An operator between kinds that do not go together."""
    return Diagnostic(
        "",
        f"`{operator}` does not go with {left_kind} and {right_kind}",
        place,
        f"`{left}` is {left_kind}, `{right}` is {right_kind}",
        help=help,
    )


@explained(
    "TP312",
    "a method that the value does not have",
    story="""\
Texts, lists and objects have a fixed list of methods, those of Python that change nothing. The message names the kind
of value that the method was called on.""",
    wrong="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"answer": "{orders.upper()}"}]""",
    right="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"answer": "{[o.item.upper() for o in orders]}"}]""",
)
def unknown_method(
    place: Place, value: str, kind: str, name: str, known: Sequence[str], help: str | None
) -> Diagnostic:
    """A method that values of this kind do not have."""
    near = nearest(name, known)
    return Diagnostic(
        "",
        f"`{value}` is {kind}, which has no method `{name}`",
        place,
        "unknown method",
        notes=(f"its methods are {listed(known)}",) if known and not near else (),
        help=f"did you mean `{near}`?" if near else help,
    )


@explained(
    "TP313",
    "a function or method that cannot work on this value",
    story="""\
Each function and method works on certain kinds of values: `sum` adds up a list of numbers, `len` counts what is in a
list, an object or a text, `join` joins texts.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "{sum(w.temperature)}"}]""",
    right="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"answer": "{sum([o.total for o in orders])}"}]""",
)
def unfit_operand(place: Place, what: str, wanted: str, value: str, kind: str, help: str | None) -> Diagnostic:
    """`what` is the function, method or construct with its backticks; `wanted` completes "needs ..."."""
    return Diagnostic("", f"{what} needs {wanted}, but `{value}` is {kind}", place, f"{kind}", help=help)


@explained(
    "TP314",
    "a value that may be null is used as if it were there",
    severity=Severity.WARNING,
    story="""\
The schema allows null here. The plan runs, but the step fails on a day when the value is null. Say what should happen
then: `default(value, fallback)`, or a branch on `value is not None`.""",
    wrong="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "c"},
 {"answer": "{c.email.lower()}"}]""",
    right="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "c"},
 {"answer": "{c.email.lower() if c.email else 'no address known'}"}]""",
)
def maybe_null(
    place: Place, value: str, type_name: str, *, of_elements: bool = False, field: str | None = None
) -> Diagnostic:
    """A use that fails when the value is null, which the schema allows.

    With `of_elements`, the value is a list whose elements may be null; or the `field` of these.
    """
    called, help = f"`{value}`", f"test `{value} is not None` first, or write `default({value}, ...)`"
    if of_elements:
        kept = f"x.{field}" if field else "x"
        called = f"`{field}` of an element of `{value}`" if field else f"an element of `{value}`"
        help = f"leave such elements out: `[x for x in {value} if {kept} is not None]`"
    return Diagnostic("", f"{called} may be null, and this would fail then", place, f"found {type_name}", help=help)


@explained(
    "TP315",
    "a loop over something that is not a list",
    story="""\
`for_each` takes a list and runs its body once for each element. A list is often one field further inside: `page.items`
instead of `page`. For an object, `obj.items()` is the list of its [name, value] pairs.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"for_each": "w", "as": "x", "do": [{"tool_name": "write_note", "arguments": {"title": "x", "text": "{x}"}}]}]""",
    right="""\
[{"tool_name": "list_orders", "arguments": {"customer_id": "c1"}, "result_variable": "orders"},
 {"for_each": "orders", "as": "o", "do": [
   {"tool_name": "write_note", "arguments": {"title": "order", "text": "{o.item}"}}]}]""",
)
def not_a_list(
    place: Place, value: str, kind: str, type_name: str, origin: Mark | None, help: str | None
) -> Diagnostic:
    """A `for_each` over something else."""
    return Diagnostic(
        "",
        f"a loop needs a list, but `{value}` is {kind}",
        place,
        f"found {type_name}",
        others=(origin,) if origin else (),
        help=help,
    )


@explained(
    "TP316",
    "a tool that is not available",
    story="""\
The tool exists, but the host cannot run it now: a key, a program or a service that it needs is missing. The note says
what.""",
    wrong='[{"tool_name": "translate", "arguments": {"text": "bonjour"}, "result_variable": "t"}, {"answer": "{t}"}]',
    right='[{"answer": "hello"}]',
)
def unavailable_tool(place: Place, tool: str, reason: str) -> Diagnostic:
    """A tool that the host cannot run now."""
    return Diagnostic(
        "",
        f"`{tool}` is not available",
        place,
        "not available",
        notes=(reason,),
        help="use another tool, or say with `cannot` what is missing",
    )


@explained(
    "TP317",
    "a format that does not fit the value",
    story="""\
A format such as `.2f` is for numbers. Text takes a width and an alignment only. `number(text)` makes a number of the
text first.""",
    wrong="""\
[{"tool_name": "read_invoice", "arguments": {"id": "A-17"}, "result_variable": "invoice"},
 {"answer": "the total is {invoice.total:.2f}"}]""",
    right="""\
[{"tool_name": "read_invoice", "arguments": {"id": "A-17"}, "result_variable": "invoice"},
 {"answer": "the total is {number(invoice.total):.2f}"}]""",
)
def bad_format(place: Place, spec: str, value: str, kind: str, help: str | None) -> Diagnostic:
    """A format for numbers on something else."""
    return Diagnostic("", f"the format `{spec}` is for numbers, but `{value}` is {kind}", place, f"{kind}", help=help)
