"""1xx, continued: changes of values in a program of the Python notation (TP159, TP160, TP174 to TP179)."""

from __future__ import annotations

from toolplan.diagnostics.diagnostic import Diagnostic, Mark, explained
from toolplan.diagnostics.source import Place

__all__ = [
    "change_arguments",
    "changed_while_looping",
    "changed_within",
    "deleted_name",
    "lost_change",
    "shared_change",
    "slice_target",
]


@explained(
    "TP159",
    "a slice that is given a value",
    story="""\
Elements are replaced one at a time. A list with several elements replaced is a new list, put together from slices.""",
    wrong="xs = [1, 2, 3]\nxs[0:2] = [9]\nreturn str(xs)",
    right="xs = [1, 2, 3]\nxs = [9] + xs[2:]\nreturn str(xs)",
)
def slice_target(place: Place) -> Diagnostic:
    """A slice left of `=` or after `del`."""
    return Diagnostic(
        "",
        "a slice cannot be given a value or deleted",
        place,
        "a slice",
        help="make a new list: `xs = xs[:a] + [...] + xs[b:]`",
    )


@explained(
    "TP160",
    "`del` of a name",
    story="""\
Names need not be deleted; they cost nothing. Deleting an element or field (`del counts["a"]`) is possible.""",
    wrong='w = get_weather(city="Oslo")\ndel w',
    right='w = get_weather(city="Oslo")',
)
def deleted_name(place: Place) -> Diagnostic:
    """A `del` of something that is no element or field of a value."""
    return Diagnostic("", "only elements and fields of a value can be deleted", place, "not one", help="leave it out")


@explained(
    "TP174",
    "a change that nothing can see",
    story="""\
A method such as `append` changes a variable. Here it is called on something that has no name, or whose kind cannot be
told, so the change would be lost.""",
    wrong='get_names().append("Ann")',
    right='names = get_names()\nnames.append("Ann")\nsave_names(names=names)',
)
def lost_change(place: Place, method: str) -> Diagnostic:
    """A changing method whose effect cannot be kept."""
    if method == "clear":
        help = "write `xs = []` or `d = {}`"
    elif method == "popitem":
        help = "choose a key, and `pop` it"
    else:
        help = "give the value a name first: `x = ...`"
    return Diagnostic("", f"`{method}` changes nothing that has a name", place, "the change would be lost", help=help)


_CHANGES = {
    "add": "add(element)",
    "append": "append(element)`, for several `extend([a, b])",
    "clear": "clear()",
    "discard": "discard(element)",
    "extend": "extend(list)",
    "insert": "insert(index, element)",
    "pop": "pop(index)` or `pop(key, default)",
    "remove": "remove(element)",
    "reverse": "reverse()",
    "setdefault": "setdefault(key, value)",
    "sort": "sort(key=..., reverse=...)",
    "update": "update(other)",
}


@explained(
    "TP175",
    "a changing method called in a way it does not have",
    story="""\
The methods that change a list or an object take what Python's take, without names except for `sort`.""",
    wrong="xs = [3, 1]\nxs.append(1, 2)\nreturn str(xs)",
    right="xs = [3, 1]\nxs.extend([1, 2])\nreturn str(xs)",
)
def change_arguments(place: Place, method: str, count: tuple[int, int]) -> Diagnostic:
    """A changing method with too many or too few arguments."""
    low, high = count
    takes = "no arguments" if not high else f"{low if low == high else f'{low} to {high}'} argument{'s' * (high > 1)}"
    if method == "sort":
        takes = "arguments by name"
    help = _CHANGES.get(method, f"{method}(...)")
    return Diagnostic("", f"`{method}` takes {takes}", place, "not taken", help=f"it is `{help}`")


@explained(
    "TP176",
    "a value used and changed in one statement",
    story="""\
The statement takes something out of a value and also uses that value elsewhere. Which of the two comes first matters,
and is easily misread; two statements say it.""",
    wrong="xs = [1, 2, 3]\npair = [xs[0], xs.pop()]\nreturn str(pair)",
    right="xs = [1, 2, 3]\nlast = xs.pop()\npair = [xs[0], last]\nreturn str(pair)",
)
def changed_within(place: Place, name: str, method: str) -> Diagnostic:
    """A `pop` or `setdefault` on a variable that the same statement uses once more."""
    return Diagnostic(
        "",
        f"`{name}` is changed by `{method}` and used in the same statement",
        place,
        "changed here",
        help=f"write `x = {name}.{method}(...)` on a line before",
    )


@explained(
    "TP177",
    "a change that another name was meant to see",
    story="""\
Values of a plan are never shared: after `b = a` a change of `b` leaves `a` alone, where Python would change both. A
program that changes a value under one name and uses it under another would do something else than it says, so it is
refused.""",
    wrong='rows = list_rows()\nfor row in rows:\n    row["total"] = row.price * row.count\nreturn str(rows)',
    right='rows = list_rows()\nrows = [row | {"total": row.price * row.count} for row in rows]\nreturn str(rows)',
)
def shared_change(place: Place, name: str, other: str, shared: Place, used: Place, in_loop: bool) -> Diagnostic:
    """A change of `name`, whose value is part of `other`'s since `shared`, and `other` is used at `used`."""
    if in_loop:
        help = f'make a new list: `{other} = [{name} | {{"field": value}} for {name} in {other}]`'
    else:
        help = f"change `{other}` itself, or give the changed value to it"
    return Diagnostic(
        "",
        f"this changes `{name}`, but not `{other}`, which is used later",
        place,
        f"`{other}` keeps its old value",
        (Mark(shared, f"`{name}` comes from `{other}` here"), Mark(used, f"`{other}` is used here")),
        help=help,
    )


@explained(
    "TP179",
    "a list that changes while a loop goes through it",
    story="""\
A loop goes through the elements that the list has when the loop begins. In Python, what is appended meanwhile is
visited too, and what is removed makes it skip elements; neither is what a plan does, so a program that relies on it is
refused.""",
    wrong='pages = ["/"]\nfor page in pages:\n    pages.extend(get_links(page=page))\nreturn str(pages)',
    right='pages = ["/"]\nfound = []\nfor page in pages:\n    found.extend(get_links(page=page))\n'
    "return str(pages + found)",
)
def changed_while_looping(place: Place, name: str, loop: Place) -> Diagnostic:
    """A change of the list `name` in the body of a loop over it."""
    return Diagnostic(
        "",
        f"`{name}` is changed while a loop goes through it",
        place,
        "the loop does not see this",
        (Mark(loop, "the loop goes through this"),),
        help="collect the changes in another list; for a list that grows, use `while xs:` with `x = xs.pop(0)`",
    )
