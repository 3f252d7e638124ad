"""2xx: the names in a plan (tools, variables, steps) and the order in which steps wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, Severity, explained, nearest
from toolplan.diagnostics.source import Place

__all__ = [
    "bare_field",
    "circle",
    "foreign_expression",
    "forward_dependency",
    "hides_a_tool",
    "left_as_text",
    "sometimes_defined",
    "undefined_name",
    "unknown_dependency",
    "unknown_tool",
    "unreachable",
    "unused_result",
]

MAX_LISTED = 8
MAX_COMPARED = 500
"""A similar name is looked for among so many."""
_ERROR_NAMES = frozenset(("error", "e", "err", "ex", "exc", "exception", "error_message", "last_error", "错误", "异常"))
_TIMES = {
    word: expression
    for expression, words in {
        "now": "current_time current_datetime datetime timestamp 现在 当前时间",
        "date(now)": "today current_date today_date date_today 今天 今日 当天 当前日期",
        "add(date(now), days=1)": "tomorrow 明天 明日",
        "add(date(now), days=-1)": "yesterday 昨天 昨日",
        "add(date(now), days=2)": "day_after_tomorrow 后天",
    }.items()
    for word in words.split()
}
"""What models write for a time, each with the expression for it."""


def listed(names: Sequence[str]) -> str:
    """Return the names in backticks, the first few of many."""
    shown = ", ".join(f"`{name}`" for name in names[:MAX_LISTED])
    return shown + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")


@explained(
    "TP201",
    "a step calls a tool that does not exist",
    story="""\
Every step names one of the tools that were offered with the request, letter for letter. A name that is not among them
is never guessed: the nearest name is only suggested, because calling a different tool would change the work.""",
    wrong='[{"tool_name": "get_wether", "arguments": {"city": "Oslo"}}]',
    right='[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}]',
)
def unknown_tool(place: Place, name: str, known: Sequence[str]) -> Diagnostic:
    """A call of a tool that nobody offered."""
    near = nearest(name, known)
    notes = () if near else (f"the tools are {listed(known)}" if known else "there are no tools",)
    return Diagnostic(
        "", f"no tool is named `{name}`", place, "unknown tool", notes=notes, help=near and f"did you mean `{near}`?"
    )


@explained(
    "TP202",
    "a name is defined on some paths only",
    story="""\
A name may be used after a branch when every path that gets there defines it. Here at least one path leaves it without
a value. Paths that end the plan (`answer`, `cannot`) or the round of a loop do not count.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"if": "w.temperature < 5", "then": [{"let": {"advice": "'take a coat'"}}]},
 {"answer": "{advice}"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"if": "w.temperature < 5", "then": [{"let": {"advice": "'take a coat'"}}],
  "else": [{"let": {"advice": "'no coat needed'"}}]},
 {"answer": "{advice}"}]""",
)
def sometimes_defined(place: Place, name: str, definitions: Sequence[Place], further: Sequence[Place]) -> Diagnostic:
    """A name without a value on at least one path. `definitions` are where others give it one."""
    marks = [Mark(where, "defined here, on some paths only") for where in definitions[:3]]
    return Diagnostic(
        "",
        f"`{name}` is used here, but not every path that leads here defines it",
        place,
        "not always defined",
        others=(*marks, *_also_used(further)),
        help=f"define `{name}` on the other path too, or use it only where it is defined",
    )


@explained(
    "TP203",
    "a name is used that no earlier step defines",
    story="""\
An expression may use the results of earlier steps, `let` values, loop variables and `now`. A step's result is known by
its `result_variable`, by its tool's name plus `_result`, and by the step's number `s1`, `s2`, ... Names that a loop's
body defines end with the round; `collect` hands a value of each round on. In a position for an expression, a text needs
quotation marks of its own: `"'hello'"`.""",
    wrong="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "customer"},
 {"tool_name": "list_orders", "arguments": {"customer_id": "{order.id}"}}]""",
    right="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "customer"},
 {"tool_name": "list_orders", "arguments": {"customer_id": "{customer.id}"}}]""",
)
def undefined_name(
    place: Place,
    name: str,
    defined: Sequence[tuple[str, str | None]],
    further: Sequence[Place] = (),
    *,
    later: str | None = None,
    ended: str | None = None,
    owner: tuple[str, str] | None = None,
    in_template: bool = False,
    is_tool: bool = False,
    is_alone: bool = False,
    is_test: bool = False,
    is_loop: bool = False,
    failed: str | None = None,
) -> Diagnostic:
    """A name that has no value at this step.

    `defined` pairs each name that has one with the tool it comes from. `later` is the step that defines it too late,
    `ended` the loop that took it along; `owner` is the one result with the field that is read, and the path to it.
    `is_alone`: the whole expression is this name, so that text without quotes may have been meant; as a condition
    (`is_test`), text would always hold. `is_loop`: it is what a loop that collects nothing is called. `failed` is set
    where steps follow an error: "try" or "on_error".
    """
    near = nearest(name, [known for known, _ in defined[:MAX_COMPARED]])
    notes: list[str] = []
    help = None
    if ended:
        notes.append(f"`{name}` is defined inside the loop `{ended}` and ends with its round")
        help = "hand it on with the loop's `collect`, or define it before the loop"
    elif later:
        notes.append(f"`{name}` is defined later, by step `{later}`")
        help = f"put step `{later}` before this one"
    elif is_loop:
        notes.append(f"`{name}` is a loop, and a loop's value needs `collect`")
        help = 'add `"collect": ...` to the loop: its value is then the list of what each round gives'
    elif failed and name.casefold() in _ERROR_NAMES:
        say_so = "give the error a name" if failed == "try" else "only a `try` gives the error a name"
        help = f'{say_so}: {{"try": [...], "except": [...], "as": "{name}"}}'
    elif near and not is_tool:
        help = f"did you mean `{near}`?"
    elif owner:
        written = f'"{{{owner[1]}}}"' if in_template else f"`{owner[1]}`"
        help = f"`{owner[0]}` has a field `{owner[1].rpartition('.')[2]}`; write {written}"
    elif is_tool:
        help = f"`{name}` is a tool; call it in a step of its own and use that step's result"
    elif time := _TIMES.get(name.casefold()):
        help = f"`now` is the time of the run; write `{time}`"
    elif is_alone and is_test:
        help = "write a comparison of a value, for example `w.temperature < 5`"
    elif is_alone and not in_template:
        help = f"if text is meant, it needs quotes of its own: \"'{name}'\""
    elif is_alone:
        help = f"ask for it with `ask_user`, or write `{{{{{name}}}}}` for braces that are text"
    if defined:
        shown = [f"`{known}`" + (f" ({tool})" if tool else "") for known, tool in defined[:MAX_LISTED]]
        more = f" and {len(defined) - MAX_LISTED} more" if len(defined) > MAX_LISTED else ""
        notes.append("defined here: " + ", ".join(shown) + more)
    return Diagnostic(
        "",
        f"`{name}` is used here, but no earlier step defines it",
        place,
        "not defined at this step",
        others=_also_used(further),
        notes=tuple(notes),
        help=help,
    )


def _also_used(further: Sequence[Place]) -> tuple[Mark, ...]:
    return tuple(Mark(where, "also used here") for where in further[:4])


@explained(
    "TP204",
    "`depends_on` names no step",
    story="""\
`depends_on` lists steps that must have finished first, by result variable or by step number. A step that uses the value
of another waits for it anyway, so `depends_on` is only for an order that no value shows.""",
    wrong="""\
[{"tool_name": "navigate", "arguments": {"url": "https://shop.example"}, "result_variable": "page"},
 {"tool_name": "click", "arguments": {"selector": "#buy"}, "depends_on": ["pages"]}]""",
    right="""\
[{"tool_name": "navigate", "arguments": {"url": "https://shop.example"}, "result_variable": "page"},
 {"tool_name": "click", "arguments": {"selector": "#buy"}, "depends_on": ["page"]}]""",
)
def unknown_dependency(place: Place, name: str, known: Sequence[str]) -> Diagnostic:
    """A `depends_on` that leads nowhere; `known` are the names of the steps before it."""
    near = nearest(name, known)
    notes = () if near else ((f"steps before this one are known as {listed(known)}",) if known else ())
    help = f"did you mean `{near}`?" if near else None
    if name == "s0":
        help = "steps are counted from 1" + ("" if known else "; leave `depends_on` out where nothing is before")
    return Diagnostic(
        "",
        f"`depends_on` names `{name}`, but no step is known by that name",
        place,
        "no such step",
        notes=notes,
        help=help,
    )


@explained(
    "TP205",
    "a step depends on a later one",
    story="""\
The written order is the meaning of a plan: results and effects are those of running the steps one after the other. A
step can therefore wait only for steps that are written before it.""",
    wrong="""\
[{"tool_name": "pay", "arguments": {"account": "a", "amount": 5}, "depends_on": ["note"]},
 {"tool_name": "write_note", "arguments": {"title": "paid", "text": "5 to a"}, "result_variable": "note"}]""",
    right="""\
[{"tool_name": "write_note", "arguments": {"title": "paid", "text": "5 to a"}, "result_variable": "note"},
 {"tool_name": "pay", "arguments": {"account": "a", "amount": 5}, "depends_on": ["note"]}]""",
)
def forward_dependency(place: Place, step: str, later: str, later_place: Place) -> Diagnostic:
    """A `depends_on` that leads to a later step."""
    return Diagnostic(
        "",
        f"`{step}` is to wait for `{later}`, which comes later",
        place,
        "waits for a later step",
        others=(Mark(later_place, f"`{later}` is defined here"),),
        help=f"put the step `{later}` before this one",
    )


@explained(
    "TP206",
    "steps wait for each other",
    story="""\
Steps that wait for each other in a circle would wait for ever. A circle takes at least one `depends_on` that points to
a later step, or to the step itself; that is the one to remove.""",
    wrong="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "a", "depends_on": ["b"]},
 {"tool_name": "list_orders", "arguments": {"customer_id": "{a.id}"}, "result_variable": "b"}]""",
    right="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "a"},
 {"tool_name": "list_orders", "arguments": {"customer_id": "{a.id}"}, "result_variable": "b"}]""",
)
def circle(names: Sequence[str], places: Sequence[Place]) -> Diagnostic:
    """`names` is the path without the repeated first step; `places` are the uses, one for each."""
    path = " -> ".join(f"`{name}`" for name in (*names, names[0]))
    labels = [f"`{name}` waits for `{names[(at + 1) % len(names)]}`" for at, name in enumerate(names)]
    marks = tuple(Mark(where, label) for where, label in zip(places[1:], labels[1:], strict=True))
    return Diagnostic(
        "",
        f"steps wait for each other in a circle: {path}",
        places[0],
        labels[0],
        others=marks,
        help="remove the `depends_on` that points to a later step",
    )


@explained(
    "TP207",
    "a bare field name was read as a field of a result",
    severity=Severity.WARNING,
    story="""\
A name that nothing defines, and that exactly one earlier result declares as a field, is read as that field. The plan
runs; writing the result's name as well leaves nothing to guess.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "it is {temperature} degrees"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "it is {w.temperature} degrees"}]""",
)
def bare_field(place: Place, name: str, meant: str) -> Diagnostic:
    """A name that was taken for a field of a result: `meant` is the whole path."""
    return Diagnostic(
        "",
        f"`{name}` is no name here; it is read as `{meant}`",
        place,
        f"read as `{meant}`",
        help=f"write `{meant}`",
    )


@explained(
    "TP208",
    "a variable has the name of a tool",
    severity=Severity.WARNING,
    story="""\
From this step on the name means the variable wherever a value is expected. Steps still call the tool by that name, but
whoever reads the plan has to know which is meant.""",
    wrong="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "list_orders"},
 {"answer": "{list_orders.name}"}]""",
    right="""\
[{"tool_name": "find_customer", "arguments": {"name": "Kim"}, "result_variable": "customer"},
 {"answer": "{customer.name}"}]""",
)
def hides_a_tool(place: Place, name: str) -> Diagnostic:
    """A variable with the name of a tool."""
    return Diagnostic(
        "",
        f"the variable `{name}` has the name of a tool",
        place,
        "also the name of a tool",
        help="give the variable a name of its own",
    )


@explained(
    "TP209",
    "the result of a call without effects is never used",
    severity=Severity.WARNING,
    story="""\
The tool changes nothing, and nothing in the plan uses what it returns, so the call serves no purpose. Often a later
step was meant to use the result, or repeats by hand what the result would say.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "the weather in Oslo is fine"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "the weather in Oslo is {w.condition}"}]""",
)
def unused_result(place: Place, what: str, name: str) -> Diagnostic:
    """A call that changes nothing and whose result nobody uses; `what` names it with its backticks."""
    return Diagnostic(
        "",
        f"the result of {what} is never used",
        place,
        "no effect, and its result is not used",
        help=f"use `{name}`, or leave the step out",
    )


@explained(
    "TP210",
    "a step can never run",
    severity=Severity.WARNING,
    story="""\
Every path that would lead to this step ends before it: `answer`, `cannot` and `replan` end the plan, `break` and
`continue` end the round of a loop.""",
    wrong="""\
[{"answer": "done"},
 {"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "hi", "body": "hello"}}]""",
    right="""\
[{"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "hi", "body": "hello"}},
 {"answer": "done"}]""",
)
def unreachable(place: Place, ending: Place) -> Diagnostic:
    """A step behind the end of every path; `ending` is the step that ends them."""
    return Diagnostic(
        "",
        "this step never runs: every path ends before it",
        place,
        "never reached",
        others=(Mark(ending, "nothing after this runs"),),
        help="leave the step out, or put it before the end",
    )


@explained(
    "TP211",
    "a brace group that was left as text",
    severity=Severity.WARNING,
    story="""\
Braces that do not hold an expression are text, so that JSON and code survive. These name a value of the plan or call
something, so an expression was probably meant; it will appear in the text as it is written.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "in Oslo: {w.condition}, {w.temperature degrees}"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "in Oslo: {w.condition}, {w.temperature} degrees"}]""",
)
def left_as_text(place: Place, group: str, problem: str, help: str | None) -> Diagnostic:
    """A brace group that mentions a known name or calls something, and is no expression that could be a hole."""
    return Diagnostic(
        "",
        f"`{group}` cannot be read as an expression and is left as text",
        place,
        problem,
        help=help or "mend the expression, or write `{{` and `}}` for braces that are text",
    )


@explained(
    "TP212",
    "an expression in braces that is Python, but not of the plan language",
    story="""\
What stands in the braces can be read as Python and uses a value of the plan, but calls a function or uses a construct
that the plan language does not have. As text it would reach the reader as it is written, so the plan is refused.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "It is {join([w.city, w.condition], ', ')}"}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"answer": "It is {', '.join([w.city, w.condition])}"}]""",
)
def foreign_expression(place: Place, group: str, problem: str, help: str | None) -> Diagnostic:
    """A brace group that is Python and mentions a known name, but is no expression of the language."""
    return Diagnostic(
        "",
        f"`{group}` is no expression of the plan language: {problem}",
        place,
        problem,
        help=help or "write it with what the language has, or `{{` and `}}` for braces that are text",
    )
