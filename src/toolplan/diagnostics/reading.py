"""1xx: what keeps a text from being read as a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, explained, nearest
from toolplan.diagnostics.source import NOWHERE, Place

__all__ = [
    "broken_json",
    "cut_off",
    "duplicate_key",
    "empty_plan",
    "empty_reply",
    "given_twice",
    "missing_key",
    "mixed_step",
    "no_condition",
    "no_plan",
    "not_a_name",
    "not_a_plan",
    "not_a_step",
    "not_a_value",
    "outside_loop",
    "several_plans",
    "too_large",
    "unbounded_loop",
    "unknown_key",
    "unreadable_arguments",
    "unreadable_expression",
    "wrong_kind",
]


def _listed(names: Iterable[str], limit: int = 8) -> str:
    shown = [f"`{name}`" for name in names]
    return ", ".join(shown[:limit]) + (", …" if len(shown) > limit else "")


def _quoted(text: str, limit: int = 60) -> str:
    one_line = " ".join(text.split())
    return f"`{one_line[:limit]}…`" if len(one_line) > limit else f"`{one_line}`"


@explained(
    "TP101",
    "the text is not JSON",
    story="""The reply contains something that begins like a plan but cannot be read as JSON, and more than one
reading is possible, so nothing was mended. What has only one reading (comments, trailing commas,
single quotes, Python's True and None, typographic quotes, line breaks and pairs of quotes inside
text, keys without quotes) is read and reported as a repair. A missing or extra bracket never is,
because it would move a key from one object to another: in the example, `result_variable` would
become an argument.""",
    wrong='[{"tool_name": "get_weather", "arguments": {"city": "Oslo", "result_variable": "w"}]',
    right='[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}]',
)
def broken_json(place: Place, problem: str, help: str | None = None) -> Diagnostic:
    """A text that begins like a plan and is not JSON, at the character where it goes wrong."""
    return Diagnostic("", f"the plan is not readable as JSON: {problem}", place, "here", help=help)


@explained(
    "TP102",
    "the plan is cut off",
    story="""The text ends while a string or a bracket of the plan is still open: the reply ran into the output
limit, or the end was forgotten. Closing it for the author could run half a plan, or write half a
file, so it is never done.""",
    wrong='[{"tool_name": "write_file", "arguments": {"path": "run.sh", "content": "rm -rf build',
    right='[{"tool_name": "write_file", "arguments": {"path": "run.sh", "content": "rm -rf build/tmp"}}]',
)
def cut_off(place: Place, still_open: Sequence[str], opened: Place | None = None) -> Diagnostic:
    """A plan that ends inside a string or with brackets open. `still_open` lists them, outermost first."""
    brackets = [mark for mark in still_open if mark in "[{"]
    facts: list[str] = []
    if "text" in still_open:
        facts.append("the last text has no closing quote")
    if brackets:
        facts.append("still open: " + " ".join(f"`{mark}`" for mark in brackets))
    return Diagnostic(
        "",
        "the plan ends before it is complete",
        place,
        "the text ends here",
        others=(Mark(opened, "opened here"),) if opened else (),
        notes=tuple(facts),
        help="send the whole plan again; if it was too long, make it shorter (a loop instead of many steps)",
    )


@explained(
    "TP103",
    "more than one plan",
    story="""The reply holds two or more different plans, and nothing says which one is meant. Plans rehearsed
inside closed thinking do not count, and neither does JSON that is not a plan.""",
    wrong='[{"tool_name": "get_time"}]\nor rather\n[{"tool_name": "get_date"}]',
    right='[{"tool_name": "get_date"}]',
)
def several_plans(places: Sequence[Place]) -> Diagnostic:
    """A reply with several different plans."""
    return Diagnostic(
        "",
        f"the reply holds {len(places)} different plans, and only one can run",
        places[-1],
        "one plan",
        others=tuple(Mark(place, "another plan") for place in places[:-1]),
        help='send exactly one plan; steps that belong together go into one array: {"steps": [...]}',
    )


@explained(
    "TP104",
    "JSON, but not a plan",
    story="""The text is JSON, but nothing in it says what to do: a plan is an array of steps, or an object with
`steps`. An answer that needs no tool is `{"answer": "..."}`, or plain text.""",
    wrong='{"city": "Oslo", "temperature": 3}',
    right='{"steps": [{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}]}',
)
def not_a_plan(place: Place, found: str) -> Diagnostic:
    """JSON without any step in it; `found` says what it is."""
    return Diagnostic(
        "",
        f"this JSON is not a plan: expected an array of steps or an object with `steps`, found {found}",
        place,
        "no step in it",
        help='a plan looks like {"steps": [{"tool_name": "...", "arguments": {...}}], "answer": "..."}',
    )


@explained(
    "TP105",
    "an empty plan",
    story="""A plan without steps and without an answer does nothing and says nothing. When no tool is needed,
answer; when the request cannot be done with these tools, say so.""",
    wrong="[]",
    right='{"cannot": "there is no tool that books trains", "missing": ["a tool that books trains"]}',
)
def empty_plan(place: Place) -> Diagnostic:
    """A plan with no steps and no answer."""
    return Diagnostic(
        "",
        "the plan has no steps and no answer",
        place,
        "nothing to do",
        help='answer with {"answer": "..."}, or say why it cannot be done: {"cannot": "...", "missing": ["..."]}',
    )


@explained(
    "TP106",
    "an empty reply",
    story="""The reply holds nothing outside its thinking, or its thinking never ends. Plans rehearsed while
thinking are not plans.""",
    wrong="<think>I could call get_weather</think>",
    right='<think>I could call get_weather</think>\n[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}]',
)
def empty_reply(place: Place = NOWHERE, *, thinking: str = "") -> Diagnostic:
    """A reply with no content; `thinking` is `closed` or `open` when there was thinking in it."""
    message = {
        "": "the reply is empty",
        "closed": "the reply ends after its thinking, without a plan or an answer",
        "open": "the thinking never ends, so the reply has no plan and no answer",
    }[thinking]
    return Diagnostic("", message, place, "", help="reply with one plan, or with the answer as plain text")


@explained(
    "TP107",
    "too large",
    story="""The plan is longer, deeper or has more steps than can be read. Long plans are nearly always a loop
written out: use `for_each`, and pass data between steps by name instead of copying it into the
plan.""",
    wrong='[{"tool_name": "get", "arguments": {"id": 1}}, "... and 20,000 more like it"]',
    right='[{"for_each": "range(1, 20001)", "as": "id", "do": [{"tool_name": "get", "arguments": {"id": "{id}"}}]}]',
)
def too_large(place: Place, what: str, limit: int, found: int | None = None) -> Diagnostic:
    """A text over a limit: `what` is `characters`, `characters of JSON`, `steps` or `levels`."""
    has = {
        "characters": "the reply is too long",
        "characters of JSON": "the plan is too large",
        "steps": "the plan has too many steps",
        "levels": "the plan is nested too deeply",
    }[what]
    amount = f", found {found:,}" if found is not None else ""
    return Diagnostic(
        "",
        f"{has}: at most {limit:,} {what} are read{amount}",
        place,
        help="write repeated steps as a `for_each`, and refer to results instead of copying them into the plan",
    )


@explained(
    "TP108",
    "a value that JSON does not have",
    story="""JSON has no NaN and no Infinity, numbers must fit a 64-bit float or be whole numbers of reasonable
length, and text must be valid Unicode (half of a surrogate pair is not a character).""",
    wrong='[{"tool_name": "set_limit", "arguments": {"amount": NaN}}]',
    right='[{"tool_name": "set_limit", "arguments": {"amount": null}}]',
)
def not_a_value(place: Place, found: str, reason: str, help: str) -> Diagnostic:
    """Something that stands for a value and is none."""
    return Diagnostic("", f"{_quoted(found, 30)} is not a value: {reason}", place, "not a value", help=help)


@explained(
    "TP109",
    "a key written twice",
    story="""An object holds the same key twice with different values. Most readers silently keep the last one,
which loses whatever the first one said; here nothing is lost in silence.""",
    wrong='{"steps": [{"tool_name": "a"}], "steps": [{"tool_name": "b"}]}',
    right='{"steps": [{"tool_name": "a"}, {"tool_name": "b"}]}',
)
def duplicate_key(place: Place, key: str) -> Diagnostic:
    """A key that an object has twice with different values."""
    return Diagnostic(
        "",
        f"the key `{key}` is written twice in one object, with different values",
        place,
        "written twice",
        help=f"keep one `{key}`; several steps go into one array",
    )


@explained(
    "TP110",
    "not a step",
    story="""An entry of a list of steps is not a step: it is no object, or none of its keys says what kind of
step it is.""",
    wrong='[{"tool_name": "get_time"}, {"city": "Oslo"}]',
    right='[{"tool_name": "get_time"}, {"tool_name": "get_weather", "arguments": {"city": "Oslo"}}]',
)
def not_a_step(place: Place, found: str, known: Iterable[str] = (), help: str | None = None) -> Diagnostic:
    """An entry of a list of steps that is none; `known` are the keys that would tell its kind."""
    return Diagnostic(
        "",
        f"this is not a step: found {found}",
        place,
        "expected a step",
        notes=(f"a step is told by one of {_listed(known, 20)}",) if known else (),
        help=help or 'a call looks like {"tool_name": "...", "arguments": {...}, "result_variable": "..."}',
    )


@explained(
    "TP111",
    "two steps in one",
    story="""One object has the keys of two kinds of step, so it is not clear what it does. Make it two steps, or
put the one inside the other: the call goes into the `then` of a branch or the `do` of a loop.""",
    wrong='[{"for_each": "mails", "as": "m", "tool_name": "archive", "arguments": {"id": "{m.id}"}}]',
    right='[{"for_each": "mails", "as": "m", "do": [{"tool_name": "archive", "arguments": {"id": "{m.id}"}}]}]',
)
def mixed_step(place: Place, kinds: Sequence[str]) -> Diagnostic:
    """A step with the keys of several kinds."""
    loops = [kind for kind in kinds if kind in ("for_each", "while")]
    help = "make it two steps"
    if "tool_name" in kinds and loops:
        help = f'put the call into the loop\'s body: {{"{loops[0]}": "...", "do": [{{"tool_name": "..."}}]}}'
    elif "tool_name" in kinds and "parallel" in kinds:
        help = 'list the calls that are independent: {"parallel": [{"tool_name": "..."}, {"tool_name": "..."}]}'
    return Diagnostic("", f"one step cannot be {_and(kinds)} at once", place, "two kinds of step", help=help)


@explained(
    "TP112",
    "a key that this step does not have",
    story="""A step has a key that its kind does not know. It is not ignored, because it may carry something that
matters: a condition, a limit, an argument in the wrong place. Keys such as `description`, `comment`
and `step` are ignored.""",
    wrong='[{"tool_name": "get_weather", "argumnets": {"city": "Oslo"}}]',
    right='[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}]',
)
def unknown_key(place: Place, key: str, kind: str, known: Sequence[str], help: str | None = None) -> Diagnostic:
    """A key that a step, or the plan, does not know."""
    meant = nearest(key, known)
    where = "a plan" if kind == "plan" else f"a `{kind}` step"
    return Diagnostic(
        "",
        f"{where} has no key `{key}`",
        place,
        "unknown key",
        notes=(f"its keys are {_listed(known, 12)}",),
        help=f"did you mean `{meant}`?" if meant else help,
    )


@explained(
    "TP113",
    "a key is missing",
    story="""A step lacks a key without which it means nothing: a branch its `then`, a loop its `do`, a call the
tool's name.""",
    wrong='[{"for_each": "mails", "as": "m"}]',
    right='[{"for_each": "mails", "as": "m", "do": [{"tool_name": "archive", "arguments": {"id": "{m.id}"}}]}]',
)
def missing_key(place: Place, kind: str, key: str, shape: str) -> Diagnostic:
    """A step without a key that it needs; `shape` shows what it looks like."""
    return Diagnostic(
        "", f"a `{kind}` step needs `{key}`", place, f"no `{key}`", help=f"it looks like {shape}" if shape else None
    )


@explained(
    "TP114",
    "a value of the wrong kind",
    story="""A key of a step holds a value of the wrong kind, such as text where a list of steps is needed.""",
    wrong='[{"if": "w.rain", "then": "take an umbrella"}]',
    right='[{"if": "w.rain", "then": [{"answer": "Take an umbrella."}]}]',
)
def wrong_kind(place: Place, key: str, expected: str, found: str, help: str | None = None) -> Diagnostic:
    """A key that holds something else than it must."""
    return Diagnostic("", f"`{key}` must be {expected}, found {found}", place, f"expected {expected}", help=help)


def no_condition(place: Place, written: str) -> Diagnostic:
    """Text, a list or an object written out as a condition: whatever it holds, it decides nothing."""
    return replace(
        wrong_kind(place, "", "", "", "write a comparison, for example `w.temperature < 5`"),
        message=f"a condition must depend on something, found the constant {_quoted(written)}",
        label="always the same",
    )


@explained(
    "TP115",
    "the same thing said twice",
    story="""Two spellings of one key stand in the same step with different values. Either may have been meant.""",
    wrong='[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "args": {"city": "Rome"}}]',
    right='[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}}]',
)
def given_twice(place: Place, key: str, other: str, other_place: Place, meaning: str) -> Diagnostic:
    """Two keys of one step that mean the same and differ."""
    return Diagnostic(
        "",
        f"`{key}` and `{other}` both give the step's `{meaning}`, and they differ",
        place,
        "given here again",
        others=(Mark(other_place, "given here"),),
        help=f"keep one of them, as `{meaning}`",
    )


@explained(
    "TP116",
    "an expression that cannot be read",
    story="""Conditions, loop lists, `let` values, `collect` and `data` are expressions: a part of Python's, over
the names of earlier results. Text in an expression needs quotes; in `arguments` and `answer`,
expressions stand in braces.""",
    wrong='[{"let": {"greeting": "good morning"}}]',
    right="""[{"let": {"greeting": "'good morning'"}}]""",
)
def unreadable_expression(place: Place, message: str, help: str | None = None, text: str | None = None) -> Diagnostic:
    """Text that should be an expression of the language; the message comes from the reader of expressions."""
    notes = (f"the expression is {_quoted(text, 80)}",) if text else ()
    return Diagnostic("", message, place, "cannot be read", notes=notes, help=help)


@explained(
    "TP117",
    "not a usable name",
    story="""Names of results and loop elements are used in expressions, so they must look like names: letters
(of any script), digits and underscores, not beginning with a digit, and not a word of the
expression language.""",
    wrong='[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "weather-oslo"}]',
    right='[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "weather_oslo"}]',
)
def not_a_name(place: Place, name: str, suggestion: str | None, *, reserved: bool = False) -> Diagnostic:
    """A name that expressions could not use."""
    why = "it is a word of the expression language" if reserved else "expressions could not refer to it"
    return Diagnostic(
        "",
        f"{_quoted(name, 30)} cannot be a name: {why}",
        place,
        "not a name",
        notes=() if reserved else ("a name has letters, digits and underscores, and begins with no digit",),
        help=f"write `{suggestion}`" if suggestion else None,
    )


@explained(
    "TP118",
    "arguments that cannot be read",
    story="""The arguments of a call are an object. Some models send them as JSON text, which is decoded when it
can be; text that cannot be decoded is never turned into an empty object, because that would run the
tool with its defaults.""",
    wrong='[{"tool_name": "remove_rows", "arguments": "{year: >}"}]',
    right='[{"tool_name": "remove_rows", "arguments": {"year": {"above": 2020}}}]',
)
def unreadable_arguments(place: Place, number: int, tool: str, text: str, problem: str) -> Diagnostic:
    """A call whose arguments are text that is not a JSON object."""
    return Diagnostic(
        "",
        f"the arguments of step {number} (`{tool}`) cannot be read: {_quoted(text)} {problem}",
        place,
        "not an object",
        help='write the arguments as an object: "arguments": {"name": value}',
    )


@explained(
    "TP119",
    "a loop without a bound",
    story="""A `while` loop must say how many rounds it may take at most, because nothing else promises that it
ends.""",
    wrong='[{"while": "not job.done", "do": [{"tool_name": "poll", "result_variable": "job"}]}]',
    right='[{"while": "not job.done", "do": [{"tool_name": "poll", "result_variable": "job"}], "max_iterations": 20}]',
)
def unbounded_loop(place: Place) -> Diagnostic:
    """A `while` without `max_iterations`."""
    return Diagnostic(
        "",
        "a `while` step needs `max_iterations`, the most rounds it may take",
        place,
        "no bound",
        help='add "max_iterations": 20, or the bound that fits',
    )


@explained(
    "TP120",
    "no plan in the text",
    story="""A plan was asked for in a certain notation, and the text holds none: it is plain text, or another
notation.""",
    wrong="It is 3 degrees in Oslo.",
    right='{"answer": "It is 3 degrees in Oslo."}',
)
def no_plan(place: Place, notation: str) -> Diagnostic:
    """Plain text where a plan in `notation` was demanded."""
    shape = (
        'w = get_weather(city="Oslo")' if notation == "python" else '{"steps": [{"tool_name": "...", "arguments": {}}]}'
    )
    name = {"json": "JSON", "python": "Python"}.get(notation, notation)
    return Diagnostic("", f"the text holds no plan in {name}", place, help=f"a plan looks like {shape}")


@explained(
    "TP121",
    "outside a loop",
    story="""`break` and `continue` speak of the loop around them, so they need one.""",
    wrong='[{"break": true}]',
    right='[{"for_each": "mails", "as": "m", "do": [{"if": "m.unread", "then": [{"break": true}]}]}]',
)
def outside_loop(place: Place, word: str) -> Diagnostic:
    """A `break` or `continue` with no loop around it."""
    help = 'put it into the `do` of a loop, or end the plan with {"answer": "..."}'
    return Diagnostic("", f"`{word}` stands outside any loop", place, "no loop around it", help=help)


def _and(names: Sequence[str]) -> str:
    shown = [f"`{name}`" for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
