"""`@tool`: declare that a function is a tool, and what a call of it may do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, Unpack, cast, overload

from toolplan.errors import UsageError
from toolplan.tools.callee import defining_names, inspect_callable, place_of
from toolplan.tools.declaration import Declaration, Declared
from toolplan.tools.marks import MARK, Mark
from toolplan.tools.schema import describe_arguments
from toolplan.tools.tool import Tool

__all__ = ["tool"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, /, **declared: Unpack[Declared]) -> F: ...
@overload
def tool(**declared: Unpack[Declared]) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **declared: Unpack[Declared]) -> Any:
    """Return the function, declared to be a tool: `@tool`, or `@tool(reads="weather", ...)`.

    It stays the function it was, to be called as before; what was declared is kept on it and read by `Tool.of` and
    `ToolSet.of`. Works on functions, methods of any kind, partials and callable objects. What cannot keep a mark (a
    method of an instance, a builtin) or has one already comes back as a callable `Tool`. Raises `UsageError` for a
    wrong declaration.

        name, description     instead of the function's own
        pure                  a call changes and reads nothing outside of its arguments
        reads, writes         resources, such as "weather" or "mailbox:{to}" with an argument's value in it
        idempotent            calling again with the same arguments changes nothing more
        idempotency           "argument:NAME": the argument that toolplan fills with a key, the same for every attempt
                              at one call; nobody else sees it, and the tool counts as idempotent. "header:NAME":
                              the same, in `ToolContext.headers`, for a tool that makes an HTTP request
        timeout_seconds, retry, max_concurrency, rate_limit ("10/min")
        nothing_happened      exceptions that prove that a call had no effect, so that it may be tried again
        requires, ensures     states, such as "page:open"
        keywords              words of requests that want this tool, where not all tools are sent
        available             "env:API_KEY", "cmd:git", or a function that says whether, or why not
        approval              "allow", "ask" or "deny"
        untrusted             the result may hold other people's text; or the names of the fields that may
        guarded               the arguments for which it matters who chose their value (default: all)
        assigns               the fields of the result (True: all of it) that the tool chooses itself for what it has
                              made, such as an id
        probe, compensate     functions that say whether the effect happened, and that undo it
        runs_in               "thread" (a plain function's default), "loop" (an async one's) or "process"
    """
    if function is None:
        return functools.partial(tool, **declared)
    if isinstance(function, Tool):
        return function.changed(**declared)
    holder = _inner_function(function)
    if not callable(holder) or isinstance(holder, type):
        raise UsageError(f"`tool` decorates a function, but found {function!r}; write `@tool` or `@tool(reads=...)`")
    declaration = Declaration.of(declared)
    _check_placeholders(holder, declaration)
    if MARK in getattr(holder, "__dict__", ()):
        return Tool.of(function, **declared)
    try:
        setattr(holder, MARK, Mark(declaration, defining_names(holder)))
    except (AttributeError, TypeError):
        return Tool.of(function, **declared)
    return function


def _inner_function(function: Any) -> Any:
    """Return the function inside of a static or class method that is still being defined."""
    return cast("Any", function).__func__ if isinstance(function, staticmethod | classmethod) else function


def _check_placeholders(function: Any, declaration: Declaration) -> None:
    """Refuse a placeholder that names no parameter while the wrong line is still on the stack."""
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    problem = declaration.unknown_placeholder(parameters)
    if problem is None:
        return
    try:  # an argument may have another name than its parameter
        names = describe_arguments(inspect_callable(function, named=True)).names
    except UsageError:
        names = tuple(parameters)
    problem = declaration.unknown_placeholder(names)
    if problem:
        raise UsageError(f"`{getattr(function, '__name__', function)}` ({place_of(function)}): {problem}")
