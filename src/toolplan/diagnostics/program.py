"""1xx, continued: what keeps a program in the Python notation from being read as a plan (TP150 to TP199)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, explained
from toolplan.diagnostics.source import Place

__all__ = [
    "asyncio_call",
    "call_in_lambda",
    "empty_program",
    "gathered_failures",
    "imported",
    "left_before_finally",
    "loop_else",
    "lost_value",
    "several_handlers",
    "statement",
    "target",
    "try_without_handler",
    "unbounded_while",
    "unreadable_program",
    "walrus",
]

_SYNTAX_HELP = tuple(
    (re.compile(pattern), help)
    for pattern, help in (
        (r"was never closed", "close it; if the reply was cut off, write a shorter program"),
        (r"unterminated f-string|f-string is never closed", "a text over several lines has three quotes on each side"),
        (
            r"unterminated triple-quoted",
            "close it with three quotes; if the reply was cut off, write a shorter program",
        ),
        (r"unterminated string", "a text over several lines has three quotes on each side, or `\\n` for the line ends"),
        (r"keyword argument repeated", "give each argument once"),
        (r"positional argument follows keyword", "name every argument: `tool(a=1, b=2)`"),
        (r"leading zeros", "a number has no leading zeros; a code such as 007 is text and stands in quotes"),
        (r"expected an indented block", "indent the lines that belong to it; `pass` stands for nothing to do"),
        (r"unindent|unexpected indent", "indent lines of one block alike, with four spaces a level"),
        (r"inconsistent use of tabs", "indent with spaces only"),
        (r"Maybe you meant '==' ", "write `==` to compare"),
        (r"expected ':'", "the line ends in a colon"),
        (r"Missing parentheses in call to", "write `print(...)`"),
        (r"empty braces", "write a value between the braces; a literal brace is doubled: `{{` and `}}`"),
        (r"single `}`", "double it: `}}`"),
        (r"null character|surrogate", "leave it out"),
    )
)
_INVALID_CHARACTER = re.compile(r"invalid (?:non-printable )?character '?(.?)'? ?\(?U\+([0-9A-F]+)")
_QUOTES = {
    "“": '"',
    "”": '"',
    "„": '"',
    "‘": "'",
    "’": "'",
    "「": '"',
    "」": '"',
    "。": ".",
    "、": ",",
    "–": "-",
    "—": "-",
}


@explained(
    "TP150",
    "the text is not a Python program",
    story="""\
A program in the Python notation is read by the rules of Python's grammar, and then never executed by Python. Only the
first error of this kind is told, because what follows it cannot be read. An f-string may hold its own quotes and
backslashes, as in Python 3.12.""",
    wrong='w = get_weather(city="Oslo"\nreturn w.condition',
    right='w = get_weather(city="Oslo")\nreturn w.condition',
)
def unreadable_program(place: Place, problem: str) -> Diagnostic:
    """A text that Python's grammar does not cover; `problem` is the parser's word for it."""
    help = next((help for pattern, help in _SYNTAX_HELP if pattern.search(problem)), None)
    if found := _INVALID_CHARACTER.search(problem):
        character = chr(int(found.group(2), 16))
        plain = _QUOTES.get(character) or unicodedata.normalize("NFKC", character)
        problem = f"`{character}` (U+{found.group(2)}) stands outside any text"
        help = f"write `{plain}`" if plain.isascii() and plain.strip() else "leave it out, or put it into quotes"
    problem = problem.replace("'", "`") if problem.count("'") == 2 else problem
    return Diagnostic("", f"the program cannot be read: {problem}", place, "here", help=help)


_STATEMENTS: dict[str, tuple[str, str]] = {
    "FunctionDef": (
        "functions cannot be defined",
        "write the steps where they are needed, in a `for` loop when they repeat",
    ),
    "ClassDef": ("classes cannot be defined", "use dictionaries and lists for values"),
    "With": ("`with` is not part of the notation", "write the calls one after the other; nothing needs to be closed"),
    "Raise": (
        "`raise` is not part of the notation",
        "end the plan with `cannot(reason)` or `return text`; a failed call that nothing catches ends it by itself",
    ),
    "Assert": (
        "`assert` is not part of the notation",
        'test it: `if not ok: return "..."` (or `cannot(reason)`)',
    ),
    "Global": ("`global` is not part of the notation", "leave it out: all names of a program are in one scope"),
    "Nonlocal": ("`nonlocal` is not part of the notation", "leave it out: all names of a program are in one scope"),
    "Match": ("`match` is not part of the notation", "write `if`, `elif` and `else`"),
    "TryStar": ("`except*` is not part of the notation", "write `except ToolError as error:`"),
    "MatMult": ("`@=` is not part of the notation", "compute with numbers, text, lists and objects"),
    "LShift": ("`<<=` is not part of the notation", "write `x = x * 2 ** n`"),
    "RShift": ("`>>=` is not part of the notation", "write `x = x // 2 ** n`"),
}
_STATEMENTS["AsyncFunctionDef"] = _STATEMENTS["FunctionDef"]
_STATEMENTS["AsyncWith"] = _STATEMENTS["With"]


@explained(
    "TP151",
    "a statement that the notation does not have",
    story="""\
A program consists of assignments, calls, `if`, `for`, `while` with a bound, `try`, `break`, `continue` and `return`.
It is a plan, not a script: what it needs from outside are its tools. One function without parameters that holds the
whole plan, such as `async def main()`, is accepted and read as its body.""",
    wrong='def greet(name):\n    send(to=name, text="hi")\n\ngreet("Ann")\ngreet("Bo")',
    right='for name in ["Ann", "Bo"]:\n    send(to=name, text="hi")',
)
def statement(place: Place, kind: str) -> Diagnostic:
    """A statement of Python that has no meaning in a plan; `kind` is the name of its node in `ast`."""
    message, help = _STATEMENTS.get(kind, ("this statement is not part of the notation", None))
    return Diagnostic("", message, place, "not part of the notation", help=help)


_MODULES = {
    "datetime": "dates are ISO text: `now`, `date(text)`, `add(d, days=1)`, `days_between(a, b)`, `format_date(d, p)`",
    "time": "the time of the run is `now`; there is nothing to wait for",
    "calendar": "`weekday(d)` gives the day of the week, `add(d, months=1)` moves a date",
    "json": "values are values already; `json(value)` is the JSON text of one",
    "re": "use `find_urls`, `find_emails`, `find_numbers`, `lines`, the methods of text, or `ask_model`",
    "math": "use `round`, `abs`, `min`, `max`, `//` and `**`",
    "statistics": "write `sum(xs) / len(xs)`, or `sorted(xs)[len(xs) // 2]`",
    "collections": "count in a dictionary: `counts[k] = counts.get(k, 0) + 1`",
    "itertools": "write a loop or a comprehension",
    "functools": "write a loop",
    "operator": "write a comprehension, or `key=` with a field's name",
    "random": "a plan has no chance in it; choose by a rule",
    "os": "files and programs are reached through tools only",
    "pathlib": "files and programs are reached through tools only",
    "subprocess": "files and programs are reached through tools only",
    "requests": "the network is reached through tools only",
    "urllib": "the network is reached through tools only",
    "httpx": "the network is reached through tools only",
}


@explained(
    "TP152",
    "an import",
    story="""\
Nothing can be imported: a program has its tools and the functions of the expression language. An import of something
that the program never uses is ignored, and so are `asyncio`, `typing` and `__future__`.""",
    wrong="import datetime\nday = datetime.date.today()\nreturn str(day)",
    right="day = date(now)\nreturn str(day)",
)
def imported(place: Place, module: str, used: Sequence[Place]) -> Diagnostic:
    """An import of `module`, something of which is used at these places."""
    help = _MODULES.get(module, "use the tools and the functions of the notation")
    marks = tuple(Mark(use, "used here") for use in used)
    return Diagnostic("", f"`{module}` cannot be imported", place, "not available", marks, help=help)


@explained(
    "TP153",
    "a `while` without a bound",
    story="""\
A loop must say how many rounds it may take at most, because nothing else promises that it ends. A bound is a counter
that each round moves and the condition compares (`while page < 10:` ... `page += 1`), or a comment on the line of the
`while` (`# max_iterations: 20`), or `max_iterations(20)` as the first statement of its body. A loop that reaches its
bound and wants to go on fails.""",
    wrong='job = start_job(name="scan")\nwhile not job.done:\n    job = get_job(id=job.id)\nreturn job.result',
    right='job = start_job(name="scan")\nwhile not job.done:  # max_iterations: 20\n    job = get_job(id=job.id)\n'
    "return job.result",
)
def unbounded_while(place: Place) -> Diagnostic:
    """A `while` whose greatest number of rounds cannot be told."""
    return Diagnostic(
        "",
        "this `while` does not say how many rounds it may take",
        place,
        "no bound",
        help="add `# max_iterations: 20` (or the number that fits) at the end of its line",
    )


@explained(
    "TP154",
    "`else` after a loop",
    story="""\
The `else` of a `for` or `while`, which runs when no `break` ended the loop, is easily misread and is not part of the
notation. A variable says the same.""",
    wrong='for m in list_mails():\n    if m.unread:\n        break\nelse:\n    return "All read."\nreturn m.subject',
    right="found = None\nfor m in list_mails():\n    if m.unread:\n        found = m\n        break\n"
    'if found is None:\n    return "All read."\nreturn found.subject',
)
def loop_else(place: Place, word: str) -> Diagnostic:
    """An `else` that belongs to a loop."""
    return Diagnostic(
        "",
        f"a `{word}` loop has no `else` here",
        place,
        "part of the loop's `else`",
        help="set a variable before the loop, change it before the `break`, and test it after the loop",
    )


@explained(
    "TP155",
    "several `except` blocks that differ",
    story="""\
A call that fails has failed, whatever the tool calls its error: the text of the error is the only thing a plan can see.
So a `try` has one handler. Blocks that all do the same are accepted.""",
    wrong='try:\n    w = get_weather(city="Oslo")\nexcept TimeoutError:\n    w = None\n'
    "except ToolError as e:\n    return str(e)\nreturn str(w)",
    right='try:\n    w = get_weather(city="Oslo")\nexcept ToolError as e:\n    return f"No weather: {e}"\n'
    "return w.condition",
)
def several_handlers(place: Place) -> Diagnostic:
    """A second `except` that does something else than the first."""
    return Diagnostic(
        "",
        "a `try` has one `except` block here, and these differ",
        place,
        "another block",
        help="write one `except ToolError as error:`; the text of `error` says what went wrong",
    )


@explained(
    "TP156",
    "`try` without `except`",
    story="""\
A plan cannot run steps after a failure and then fail all the same. What should happen in any case stands after the
`try`, which needs an `except` that says how to go on.""",
    wrong='try:\n    book(room="A")\nfinally:\n    log(text="tried")',
    right='try:\n    book(room="A")\n    outcome = "booked"\nexcept ToolError as error:\n    outcome = str(error)\n'
    "log(text=outcome)\nreturn outcome",
)
def try_without_handler(place: Place) -> Diagnostic:
    """A `try` with a `finally` only."""
    return Diagnostic(
        "",
        "this `try` has no `except`",
        place,
        "nothing catches a failure",
        help="add `except ToolError as error:` with what to do then, and put the rest after the `try`",
    )


@explained(
    "TP157",
    "a way out before `finally`",
    story="""\
The steps of `finally` are read as the steps that follow the `try`. A `return`, `break` or `continue` inside the `try`
would pass them by, so then there is no such reading.""",
    wrong='try:\n    book(room="A")\nexcept ToolError as error:\n    return str(error)\n'
    'finally:\n    log(text="tried")',
    right='try:\n    book(room="A")\n    outcome = "booked"\nexcept ToolError as error:\n    outcome = str(error)\n'
    'log(text="tried")\nreturn outcome',
)
def left_before_finally(place: Place, leaving: Place) -> Diagnostic:
    """A `finally` that something inside its `try` leaves behind."""
    return Diagnostic(
        "",
        "`finally` cannot follow a way out of its `try`",
        place,
        "would be passed by",
        (Mark(leaving, "leaves the `try`"),),
        help="set a variable instead, put the steps of `finally` after the `try`, and leave after them",
    )


@explained(
    "TP158",
    "something that cannot be given a value",
    story="""\
What stands left of `=` is a name, an element or field of a name's value (`rows[0]`, `counts["a"]`, `order.total`), or
several of these. A value that has no name cannot be changed, because nothing could see the change.""",
    wrong='get_settings().theme = "dark"',
    right='settings = get_settings()\nsettings.theme = "dark"\nsave_settings(settings=settings)',
)
def target(place: Place) -> Diagnostic:
    """A target of an assignment that is no name and no part of one's value."""
    return Diagnostic(
        "",
        "this cannot be given a value",
        place,
        "neither a name nor a part of one's value",
        help="give it a name first: `x = ...`, then change `x`",
    )


@explained(
    "TP169",
    "a call inside a lambda",
    story="""\
A lambda is the `key` of `sorted`, `min` or `max`: one expression over values at hand. Tools are called in steps.""",
    wrong="best = min(cities, key=lambda c: get_weather(city=c).temperature)\nreturn best",
    right='seen = [{"city": c, "t": get_weather(city=c).temperature} for c in cities]\nreturn min(seen, key="t").city',
)
def call_in_lambda(place: Place) -> Diagnostic:
    """A lambda that calls a tool."""
    return Diagnostic(
        "",
        "a lambda cannot call tools",
        place,
        "holds a call",
        help="call the tool in a comprehension first, and sort its results",
    )


@explained(
    "TP170",
    "an assignment inside an expression",
    story="""\
`:=` gives a name a value in the middle of an expression. In a plan an assignment is a statement.""",
    wrong='if (w := get_weather(city="Oslo")).rain:\n    return w.condition',
    right='w = get_weather(city="Oslo")\nif w.rain:\n    return w.condition',
)
def walrus(place: Place, name: str) -> Diagnostic:
    """A `:=`."""
    return Diagnostic(
        "", "`:=` is not part of the notation", place, "assigns a name", help=f"write `{name} = ...` on a line before"
    )


@explained(
    "TP171",
    "`gather` that keeps failures",
    story="""\
Failures are not values. A call whose failure should not end the plan stands in a `try`, in a loop where there are
several; the loop's calls still overlap.""",
    wrong='rows = await asyncio.gather(*[get_weather(city=c) for c in ["Oslo", "Rome"]], return_exceptions=True)\n'
    "return str(rows)",
    right='rows = []\nfor c in ["Oslo", "Rome"]:\n    try:\n        w = get_weather(city=c)\n'
    "        rows.append(w.condition)\n"
    '    except ToolError as error:\n        rows.append(f"unknown ({error})")\nreturn ", ".join(rows)',
)
def gathered_failures(place: Place) -> Diagnostic:
    """A `gather` with `return_exceptions` or another argument."""
    return Diagnostic(
        "",
        "`gather` cannot return failures as values",
        place,
        "not possible",
        help="call the tool in a loop, inside `try` and `except ToolError as error:`",
    )


@explained(
    "TP172",
    "something of `asyncio`",
    story="""\
Calls that do not depend on each other overlap by themselves, so there is nothing to schedule. `await`, `gather`, `run`,
`create_task` and `wait_for` are accepted because models write them; the rest of `asyncio` has no meaning here.""",
    wrong='import asyncio\nawait asyncio.sleep(5)\nw = get_weather(city="Oslo")',
    right='w = get_weather(city="Oslo")',
)
def asyncio_call(place: Place, name: str) -> Diagnostic:
    """A call of something in `asyncio` that has no reading."""
    help = "leave it out" if name == "sleep" else "call the tools directly; independent calls overlap by themselves"
    return Diagnostic("", f"`asyncio.{name}` is not part of the notation", place, "no meaning here", help=help)


@explained(
    "TP173",
    "a value that is computed and lost",
    story="""\
The statement computes something and throws it away. Values are not changed by their methods: `text.strip()` gives a new
text, and so does `sorted(xs)` a new list.""",
    wrong='names = ["Bo", "Ann"]\nsorted(names)\nreturn ", ".join(names)',
    right='names = ["Bo", "Ann"]\nnames = sorted(names)\nreturn ", ".join(names)',
)
def lost_value(place: Place, called: str) -> Diagnostic:
    """A statement that only calls a function or method of expressions."""
    return Diagnostic(
        "", f"the value of `{called}(...)` is not used", place, "computed and lost", help="give it a name: `x = ...`"
    )


@explained(
    "TP178",
    "an empty program",
    story="""\
The program has no step: no call, no answer. When no tool is needed, return the answer; when the request cannot be done
with these tools, say so.""",
    wrong="# nothing to do",
    right='return "Paris is the capital of France."',
)
def empty_program(place: Place) -> Diagnostic:
    """A program without any step."""
    return Diagnostic(
        "",
        "the program does nothing",
        place,
        "no step",
        help='answer with `return "..."`, or say why it cannot be done: `cannot("...", missing=["..."])`',
    )
