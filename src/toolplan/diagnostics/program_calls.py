"""1xx, continued: calls and their arguments in a program of the Python notation (TP161 to TP168)."""

from __future__ import annotations

from collections.abc import Sequence

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, explained
from toolplan.diagnostics.source import Place

__all__ = [
    "argument_twice",
    "misplaced_bound",
    "schema",
    "starred_arguments",
    "too_many_arguments",
    "unnamed_argument",
    "word_argument",
    "word_needs",
]


@explained(
    "TP161",
    "an argument without a name",
    story="""\
Arguments of tools are given by name, so that the plan says what each one is. Where the tools are known, arguments in
the order of the signature are accepted too; here the order of this tool's parameters is not known.""",
    wrong='get_weather("Oslo")',
    right='get_weather(city="Oslo")',
)
def unnamed_argument(place: Place, tool: str) -> Diagnostic:
    """A positional argument of a tool whose parameters are not known."""
    return Diagnostic(
        "", f"this argument of `{tool}` has no name", place, "which parameter?", help=f"name it: `{tool}(name=value)`"
    )


@explained(
    "TP162",
    "too many arguments",
    story="""\
The call gives more arguments without a name than the tool has parameters.""",
    wrong='len_of("a", "b", "c", "d")',
    right='len_of(text="a")',
)
def too_many_arguments(place: Place, tool: str, parameters: Sequence[str]) -> Diagnostic:
    """A positional argument beyond the tool's last parameter."""
    takes = ", ".join(f"`{name}`" for name in parameters) or "no arguments"
    return Diagnostic(
        "",
        f"`{tool}` takes at most {len(parameters)} argument{'' if len(parameters) == 1 else 's'}",
        place,
        "one too many",
        notes=(f"it takes {takes}",),
        help="name the arguments",
    )


@explained(
    "TP163",
    "an argument given twice",
    story="""\
A call gives the same argument twice, once by its place and once by its name, or under two spellings.""",
    wrong='ask_user("Which one?", question="Which two?")',
    right='ask_user("Which one?")',
)
def argument_twice(place: Place, called: str, name: str) -> Diagnostic:
    """The second of two values for one argument."""
    return Diagnostic(
        "", f"`{called}` is given `{name}` twice", place, "given here again", help="keep one of the two values"
    )


@explained(
    "TP164",
    "arguments that are spread out",
    story="""\
`*` and `**` in a call hide which arguments a tool is given, so neither a person nor the checker could tell. `**` before
a dictionary that is written out in the call is accepted.""",
    wrong='given = {"city": "Oslo"}\nget_weather(**given)',
    right='get_weather(city="Oslo")',
)
def starred_arguments(place: Place, tool: str, stars: str) -> Diagnostic:
    """A `*` or `**` argument of a tool."""
    return Diagnostic(
        "",
        f"the arguments of `{tool}` cannot be spread out with `{stars}`",
        place,
        "which arguments?",
        help=f"write each argument by name: `{tool}(a=x.a, b=x.b)`",
    )


_WORDS = {
    "answer": "answer(text)",
    "ask_model": "ask_model(question, data, returns=schema)",
    "ask_user": "ask_user(question)",
    "cannot": "cannot(reason, missing=[...])",
    "print": "print(value, ...)",
    "replan": "replan(reason)",
}


@explained(
    "TP165",
    "an argument that a word of the notation does not take",
    story="""\
The words of the notation take these arguments, by place or by name: `ask_model(question, data, returns=schema)`,
`ask_user(question)`, `answer(text)`, `cannot(reason, missing=[...])`, `replan(reason)`.""",
    wrong='reply = ask_user("Which one?", ["A", "B"])\nreturn reply',
    right='reply = ask_user("Which one, A or B?")\nreturn reply',
)
def word_argument(place: Place, word: str, name: str | None) -> Diagnostic:
    """An argument that `word` does not take; `name` is None for one without a name."""
    which = f"no argument `{name}`" if name else "no such argument"
    return Diagnostic("", f"`{word}` takes {which}", place, "not taken", help=f"it is `{_WORDS[word]}`")


@explained(
    "TP166",
    "a word of the notation without its argument",
    story="""\
A question needs its text, a `cannot` its reason, an `answer` what is answered.""",
    wrong="cannot()",
    right='cannot("there is no tool that books trains")',
)
def word_needs(place: Place, word: str, name: str) -> Diagnostic:
    """A call of `word` that lacks its first argument."""
    return Diagnostic("", f"`{word}` needs `{name}`", place, f"no `{name}`", help=f"it is `{_WORDS[word]}`")


@explained(
    "TP167",
    "`returns` is not a literal schema",
    story="""\
The `returns` of `ask_model` is a JSON Schema that stands in the program, so that what comes back can be checked before
anything runs: a dictionary of constants, or a variable that was given one. The names of Python's types are accepted as
shorthand: `str`, `list[str]`, `bool`, `str | None`, `{"name": str, "age": int}`.""",
    wrong='kind = get_kind()\nx = ask_model("How many?", "three", returns=kind)\nreturn str(x)',
    right='x = ask_model("How many?", "three", returns={"type": "integer"})\nreturn str(x)',
)
def schema(place: Place, value: Place | None = None) -> Diagnostic:
    """A part of a `returns` that is neither a constant nor a type's name. `value` is what a name in it stands for."""
    return Diagnostic(
        "",
        "`returns` must be a JSON Schema that is written out",
        place,
        "not a constant",
        (Mark(value, "its value"),) if value else (),
        help='write for example `returns={"type": "array", "items": {"type": "string"}}`, or `returns=list[str]`',
    )


@explained(
    "TP168",
    "`max_iterations` in the wrong place",
    story="""\
`max_iterations(n)` is the bound of a `while` loop and stands as the first statement of its body; n is a number.""",
    wrong='max_iterations(20)\njob = get_job(id="1")',
    right='job = get_job(id="1")\nwhile not job.done:\n    max_iterations(20)\n    job = get_job(id="1")',
)
def misplaced_bound(place: Place) -> Diagnostic:
    """A `max_iterations(...)` that bounds nothing."""
    return Diagnostic(
        "",
        "`max_iterations` bounds no loop here",
        place,
        "no `while` around it",
        help="write it as the first statement in the body of a `while`, with a number: `max_iterations(20)`",
    )
