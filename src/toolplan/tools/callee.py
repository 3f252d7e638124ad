"""A Python callable, looked at: its name, its parameters with resolved annotations, and how it wants to be called.

Traps this file exists for. A `functools.partial` is named after the function inside, and what it binds is gone from
its parameters (a bound secret must not show). A wrapper made with `functools.wraps` has the parameters of what it
wraps. Annotations may be text (`from __future__ import annotations`), naming classes of the function's module, of the
function it was defined in, or of nothing that exists at run time. A coroutine or generator may hide behind any of it.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolplan.errors import UsageError
from toolplan.tools.context import ToolContext

__all__ = [
    "MISSING",
    "Callee",
    "Kind",
    "Parameter",
    "ResultKind",
    "defining_names",
    "inspect_callable",
    "place_of",
    "result_kind",
    "typed_dict_fields",
]

MISSING: Any = inspect.Parameter.empty
"""No annotation, or no default."""

Kind: typing.TypeAlias = typing.Literal["positional", "plain", "keyword", "rest", "extra"]
"""How a parameter is passed: by position only, either way, by keyword only; `rest` is `*args`, `extra` `**kwargs`."""

ResultKind: typing.TypeAlias = typing.Literal["value", "iterator", "async iterator"]

_KINDS: dict[Any, Kind] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "plain",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "rest",
    inspect.Parameter.VAR_KEYWORD: "extra",
}

_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)
_ASYNC_ITERATORS = (collections.abc.AsyncIterator, collections.abc.AsyncIterable, collections.abc.AsyncGenerator)
_ITERATORS = (collections.abc.Iterator, collections.abc.Generator)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `annotation` is resolved (never text); both it and `default` may be `MISSING`."""

    name: str
    kind: Kind
    annotation: Any = MISSING
    default: Any = MISSING
    hidden: bool = False
    """Filled by the host with a `ToolContext`, not by a plan."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A callable and what is to be known for calling it with JSON arguments."""

    function: Callable[..., Any]
    name: str
    place: str
    doc: str
    parameters: tuple[Parameter, ...]
    returns: Any
    """The resolved return annotation; `MISSING` when there is none or it names nothing that exists at run time."""
    names: Mapping[str, Any]
    """What text annotations inside the types of this callable may refer to."""
    is_async: bool
    result: ResultKind
    """Whether a call gives the value itself, or something that has to be listed first."""
    bound: frozenset[str]
    """Names bound by a partial: a plan may not give them, not even through `**kwargs`."""


def inspect_callable(
    function: Callable[..., Any], names: Mapping[str, Any] | None = None, *, named: bool = False
) -> Callee:
    """Return the `Callee` that `function` is. `names` are more names its text annotations may use.

    Raises `UsageError` for what cannot be called with named arguments in a known way: a class, a function without a
    readable signature, a method without its object, a parameter whose annotation names nothing, a wrapper that hides
    what it wraps, and, unless it is `named` otherwise, a lambda.
    """
    if isinstance(function, staticmethod):
        function = typing.cast("Callable[..., Any]", function.__func__)
    if not callable(function):
        raise UsageError(f"a tool must be a function or another callable, but found {function!r}")
    if isinstance(function, type):
        raise UsageError(f"`{function.__qualname__}` is a class; a tool is a function, or an object with `__call__`")
    inner, bound = _underlying(function)
    name = getattr(inner, "__name__", "") if inner is not _call_of(function) else type(function).__name__
    place = place_of(function)
    if name == "<lambda>" and not named:
        raise UsageError(
            f"a lambda has no name for a plan to use ({place}); write `tool(function, name=...)`, or `def`"
        )
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"the parameters of `{name or function!r}` cannot be read; describe it with `Tool.from_schema(...)`"
        ) from error
    _refuse_misfits(inner, function, list(signature.parameters.values()), name, place)
    scope = _Scope(inner, function, names or {})
    parameters = tuple(
        _parameter(parameter, scope, name, place)
        for parameter in signature.parameters.values()
        if parameter.name not in bound
    )
    returns = scope.resolved_or(signature.return_annotation, MISSING)
    result, is_async = result_kind(function, returns)
    doc = _doc_of(inner, function)
    return Callee(function, name, place, doc, parameters, returns, scope, is_async, result, bound)


def _is_context(annotation: Any) -> bool:
    """Return whether the annotation is `ToolContext`, possibly optional or annotated."""
    if isinstance(annotation, type):
        return issubclass(annotation, ToolContext)
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _is_context(typing.get_args(annotation)[0])
    if origin is typing.Union or origin is types.UnionType:
        return any(_is_context(member) for member in typing.get_args(annotation))
    return False


def typed_dict_fields(typed: Any) -> dict[str, tuple[Any, bool]]:
    """Return the hint of each field of a `TypedDict`, and whether the field is required."""
    fields: dict[str, tuple[Any, bool]] = {}
    for name, hint in typing.get_type_hints(typed, include_extras=True).items():
        wrapper = typing.get_origin(hint)
        if wrapper is typing.Required or wrapper is typing.NotRequired:
            # Text annotations hide these from the class itself, so its own list of required keys is wrong.
            fields[name] = (typing.get_args(hint)[0], wrapper is typing.Required)
        else:
            fields[name] = (hint, name in typed.__required_keys__)
    return fields


def place_of(function: Any) -> str:
    """Return where a callable was written, as `file.py:12` if that is known, for messages."""
    inner, _ = _underlying(function)
    unwrapped = inspect.unwrap(inner)
    code = getattr(unwrapped, "__code__", None)
    if isinstance(code, types.CodeType):
        return f"{code.co_filename}:{code.co_firstlineno}"
    return f"{getattr(unwrapped, '__module__', '?')}.{getattr(unwrapped, '__qualname__', type(function).__qualname__)}"


def defining_names(function: Any) -> dict[str, Any]:
    """Return the local names that text annotations of `function` mention, of the function it is being defined in.

    Found on the stack while that function runs; once it has returned, nobody can resolve such annotations.
    """
    inner = inspect.unwrap(_underlying(function)[0])
    outer, _, _ = getattr(inner, "__qualname__", "").rpartition(".<locals>.")
    texts = [text for text in getattr(inner, "__annotations__", {}).values() if isinstance(text, str)]
    if not outer or not texts:
        return {}
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_qualname == outer and frame.f_globals is getattr(inner, "__globals__", None):
            wanted = {name for text in texts for name in _names_in(text)}
            return {name: value for name, value in frame.f_locals.items() if name in wanted}
        frame = frame.f_back
    return {}


def _names_in(annotation: str) -> tuple[str, ...]:
    try:
        return compile(annotation, "<annotation>", "eval").co_names
    except (SyntaxError, ValueError):
        return ()


def _underlying(function: Any) -> tuple[Any, frozenset[str]]:
    """Return the function inside partials, methods and callable objects, and the keywords that partials bind."""
    bound: set[str] = set()
    while True:
        if isinstance(function, functools.partial):
            bound.update(function.keywords)
            function = typing.cast("Any", function.func)
        elif isinstance(function, types.MethodType | staticmethod | classmethod):
            function = typing.cast("Any", function.__func__)
        elif hasattr(function, "__name__") or _call_of(function) is None:
            return function, frozenset(bound)
        else:
            return _call_of(function), frozenset(bound)


def _call_of(function: Any) -> Any:
    """Return the `__call__` of a callable object; None for anything that has a name of its own."""
    if hasattr(function, "__name__") or isinstance(function, functools.partial):
        return None
    return getattr(_class_of(function), "__call__", None)  # noqa: B004 - the function is wanted, not the claim


def _class_of(value: Any) -> Any:
    return typing.cast("Any", value if isinstance(value, type) else type(value))


def _parameter(parameter: inspect.Parameter, scope: _Scope, name: str, place: str) -> Parameter:
    try:
        annotation = scope.resolved(parameter.annotation)
    except Exception as error:
        text = str(parameter.annotation)
        where = f"parameter `{parameter.name}` of `{name}` ({place})"
        if isinstance(error, SyntaxError):
            raise UsageError(
                f"{where} has the text {text} for an annotation; to describe it, write `Annotated[str, {text}]`"
            ) from error
        raise UsageError(
            f"{where} has the annotation `{text}`, which cannot be resolved: {error}; define or import it at module "
            "level (not only under TYPE_CHECKING), or annotate with a known type"
        ) from error
    kind, hidden = _KINDS[parameter.kind], _is_context(annotation)
    if hidden and kind in ("rest", "extra"):
        raise UsageError(f"`{parameter.name}` of `{name}` ({place}) cannot be a ToolContext; use a plain parameter")
    return Parameter(parameter.name, kind, annotation, parameter.default, hidden)


def _refuse_misfits(inner: Any, function: Any, parameters: list[inspect.Parameter], name: str, place: str) -> None:
    outer, _, _ = getattr(inspect.unwrap(inner), "__qualname__", "").rpartition(".")
    first = parameters[0] if parameters else None
    is_method = outer and not outer.endswith("<locals>") and inner is function
    if first and is_method and first.name in ("self", "cls") and first.annotation is MISSING:
        raise UsageError(
            f"`{outer}.{name}` ({place}) is a method without its object; pass `instance.{name}` of an instance instead"
        )
    swallowing = [p for p in parameters if _KINDS[p.kind] in ("rest", "extra") and p.annotation is MISSING]
    if len(parameters) == len(swallowing) == 2:
        raise UsageError(
            f"`{name}` ({place}) takes only `*args, **kwargs`, so its parameters are unknown; if it is the inside of a "
            "decorator, put `@functools.wraps(function)` on it"
        )


def _doc_of(inner: Any, function: Any) -> str:
    """Return the docstring: a method may inherit it, a callable object may have it on its class."""
    if isinstance(function, types.MethodType):
        return inspect.getdoc(function) or ""
    if inner is not _call_of(function):
        return inspect.getdoc(inner) or ""
    written = inner.__doc__ or type(function).__doc__ or ""
    return "" if written.startswith(f"{type(function).__name__}(") else inspect.cleandoc(written)  # a dataclass's own


def result_kind(function: Any, returns: Any) -> tuple[ResultKind, bool]:
    """Return what a call of `function` gives, and whether it gives it asynchronously."""
    call, _ = _underlying(function)
    origin = typing.get_origin(returns) or returns
    if inspect.isasyncgenfunction(call) or origin in _ASYNC_ITERATORS:
        return "async iterator", True
    is_async = inspect.iscoroutinefunction(call) or origin in _AWAITABLES
    if not is_async and (inspect.isgeneratorfunction(call) or origin in _ITERATORS):
        return "iterator", False
    return "value", is_async


class _Scope(Mapping[str, Any]):
    """Where the names in the text annotations of a function are looked up, nearest last resort last.

    First as Python would: the function's globals and what it closes over. Then the names given by the caller, those of
    the object a method is bound to, the locals of the function it was defined in if that is still running, and
    `ToolContext` itself, which is often imported for type checkers only.
    """

    def __init__(self, inner: Any, function: Any, names: Mapping[str, Any]) -> None:
        unwrapped = inspect.unwrap(inner)
        self._globals: dict[str, Any] = getattr(unwrapped, "__globals__", {})
        closed = _closure(unwrapped)
        generics = {t.__name__: t for t in getattr(unwrapped, "__type_params__", ())}
        owner = function.__self__ if isinstance(function, types.MethodType) else None
        owners = typing.cast("Mapping[str, Any]", vars(_class_of(owner)) if owner is not None else {})
        self._near: dict[str, Any] = {**names, **generics, **closed}
        self._far: dict[str, Any] = {"ToolContext": ToolContext, **owners, **defining_names(function), **self._near}

    def resolved(self, annotation: Any) -> Any:
        """Return the annotation with every text in it replaced by what it names; raises what Python raises."""
        if annotation is None or annotation is MISSING or isinstance(annotation, type):
            return annotation if annotation is not None else type(None)
        try:
            return _evaluated(annotation, self._globals, self._near)
        except NameError:
            return _evaluated(annotation, self._globals, self._far)

    def resolved_or(self, annotation: Any, otherwise: Any) -> Any:
        try:
            return self.resolved(annotation)
        except Exception:
            return otherwise

    def __getitem__(self, name: str) -> Any:
        return self._far[name] if name in self._far else self._globals[name]

    def __iter__(self) -> collections.abc.Iterator[str]:
        return iter({**self._globals, **self._far})

    def __len__(self) -> int:
        return len({**self._globals, **self._far})


def _closure(function: Any) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    found: dict[str, Any] = {}
    for name, cell in zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned later
            continue
    return found


def _evaluated(annotation: Any, module: dict[str, Any], names: dict[str, Any]) -> Any:
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    return typing.get_type_hints(holder, globalns=module, localns=names, include_extras=True)["it"]
