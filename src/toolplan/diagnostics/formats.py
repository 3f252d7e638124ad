"""13x: calls in a reply that cannot be read as calls, in whatever format a model writes them."""

from __future__ import annotations

from toolplan.diagnostics.diagnostic import Diagnostic, explained
from toolplan.diagnostics.source import Place

__all__ = [
    "broken_call",
    "cut_off_call",
    "doubtful_call",
    "no_tool_named",
    "not_an_object",
    "reference_in_loop",
    "unnamed_arguments",
    "unread_call",
]


def _of(name: str | None) -> str:
    return f"the call of `{name}`" if name else "a call"


@explained(
    "TP131",
    "a call that cannot be read",
    story="""\
Something is marked as a call, and what is inside the marks cannot be read: brackets or quotes do not fit, or there is
more than one reading. Nothing is guessed; other calls of the same reply are not concerned.""",
    wrong="""\
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"]}
</tool_call>""",
    right="""\
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>""",
)
def broken_call(place: Place, name: str | None, problem: str, help: str | None = None) -> Diagnostic:
    """A damaged call. `problem` says what does not fit."""
    again = "make the call again, with its arguments as one JSON object"
    return Diagnostic("", f"{_of(name)} cannot be read: {problem}", place, "not readable", help=help or again)


def unread_call(place: Place, name: str, mark: str) -> Diagnostic:
    """What looks like a call of a known tool, in marks of no format that is read."""
    problem = f"`{mark}` begins it in no form that is read here"
    form = '<tool_call>{"name": "...", "arguments": {...}}</tool_call>'
    help = f"write it in the form that was asked for; a call is always read as {form}"
    return broken_call(place, name, problem, help)


@explained(
    "TP132",
    "a call that is cut off",
    story="""\
The reply ends in the middle of a call, mostly because it ran into its output limit. Closing the text would run half of
a command or write half of a file, so that is never done, even where the brackets could be completed.""",
    wrong="""\
<tool_call>
{"name": "get_weather", "arguments": {"city": "Os""",
    right="""\
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>""",
)
def cut_off_call(place: Place, name: str | None) -> Diagnostic:
    """A call whose end never came."""
    return Diagnostic(
        "",
        f"{_of(name)} is cut off: it ends before it is complete, perhaps at the reply's output limit",
        place,
        "not complete",
        help="make the call again; if it was too long, make it smaller, or split it into several",
    )


@explained(
    "TP133",
    "arguments that are no object",
    story="""\
The arguments of a call are a JSON object, one entry an argument. A list or a bare value does not say which argument it
is for.""",
    wrong="""\
<tool_call>
{"name": "get_weather", "arguments": ["Oslo"]}
</tool_call>""",
    right="""\
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>""",
)
def not_an_object(place: Place, name: str | None, found: str) -> Diagnostic:
    """Arguments that are JSON of another kind; `found` says which."""
    return Diagnostic(
        "",
        f"the arguments of {_of(name)} must be a JSON object, found {found}",
        place,
        "not an object",
        help='write the arguments as an object: {"name": value}',
    )


@explained(
    "TP134",
    "a call without a tool",
    story="""\
Something is marked as a call, and what is inside the marks does not say which tool to call, or has more in it than a
call.""",
    wrong="""\
<tool_call>
{"city": "Oslo"}
</tool_call>""",
    right="""\
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>""",
)
def no_tool_named(place: Place, found: str) -> Diagnostic:
    """A marked call that names no tool; `found` says what is there instead."""
    return Diagnostic(
        "",
        f"this is marked as a call and does not say what to call: found {found}",
        place,
        "expected a tool's name and its arguments",
        help='a call has a name and arguments: {"name": "...", "arguments": {...}}',
    )


@explained(
    "TP135",
    "arguments without names",
    story="""\
A call gives values without the names of their parameters. They are counted off against the parameters that the tool
declares; there are more of them than that, or one of them is given by name too.""",
    wrong='Thought: look it up\nAction: call get_weather("Oslo", "Norway", "today")',
    right='Thought: look it up\nAction: call get_weather(city="Oslo")',
)
def unnamed_arguments(place: Place, name: str | None, values: str) -> Diagnostic:
    """A call with values ("2 values") that cannot be counted off against parameters."""
    return Diagnostic(
        "",
        f"{_of(name)} gives {values} without saying for which arguments",
        place,
        "which arguments are these?",
        help="write each argument with its name: tool(name=value)",
    )


@explained(
    "TP136",
    "a call inside a damaged one",
    story="""\
After a damaged call another one followed, but the marks that close calls do not add up: it may have stood inside a text
of the damaged call, as data. It is not made.""",
    wrong="""\
<tool_call>
{"name": "note", "arguments": {"text": "so:
<tool_call>
{"name": "get_weather", "arguments": {"city": "Oslo"}}
</tool_call>
and so on"}}
</tool_call>""",
    right="""\
<tool_call>
{"name": "note", "arguments": {"text": "so:\\n<tool_call>\\n{...}\\n</tool_call>\\nand so on"}}
</tool_call>""",
)
def doubtful_call(place: Place, name: str | None) -> Diagnostic:
    """A sound call that may be a piece of a damaged one before it."""
    return Diagnostic(
        "",
        f"{_of(name)} may be a part of the damaged call before it",
        place,
        "a call of its own?",
        help='make the calls again, each complete; quotes and line breaks inside text are written \\" and \\n',
    )


@explained(
    "TP137",
    "a call of a loop that refers to a result",
    story="""\
In a loop calls are made turn by turn, with values that the model has seen. This reply is written like a plan in text:
one of its calls refers to the result of another one (`$1`, `#E1`, `{{name}}`), which nobody has seen yet. It is not
made, and the reference is not sent to the tool as if it were text. The calls before it are made, and their results
come back. In plan mode (`mode="plan"`) the same reply is a plan, and its references are filled in.""",
    wrong="""\
Plan: look it up
#E1 = get_weather[Oslo]
Plan: tell Ann
#E2 = send_email[ann@example.com, #E1]""",
    right="""\
Plan: look it up
#E1 = get_weather[Oslo]""",
)
def reference_in_loop(place: Place, name: str, reference: str) -> Diagnostic:
    """A call of a loop, written in a format of plans, that refers to the result of another one."""
    return Diagnostic(
        "",
        f"in {_of(name)} `{reference}` refers to a result, and calls that are made one by one have values only",
        place,
        "not a value",
        help="wait for the result, then make the call again with its value",
    )
