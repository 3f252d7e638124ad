"""A tool: a callable with a name, a schema of what it takes and returns, and what is declared about its calls."""

from __future__ import annotations

import copy
import functools
import os
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from toolplan.effects import Access, Effects, covering
from toolplan.errors import ArgumentsRefused, UsageError
from toolplan.plan import Retry
from toolplan.tools.callee import (
    MISSING,
    Callee,
    Parameter,
    ResultKind,
    inspect_callable,
    place_of,
    result_kind,
)
from toolplan.tools.context import ToolContext
from toolplan.tools.declaration import Approval, Availability, Declaration, Declared, Facts, RateLimit, RunsIn
from toolplan.tools.docstrings import Documentation, read_docstring
from toolplan.tools.faults import ArgumentFault, Checker, fault_text, without_value
from toolplan.tools.json_schema import admits_null, definitions_of, is_strict, remote_reference
from toolplan.tools.listing import listing, listing_async
from toolplan.tools.marks import mark_of
from toolplan.tools.naming import name_value
from toolplan.tools.results import Results, results_of
from toolplan.tools.schema import Argument, Arguments, copied, describe_arguments
from toolplan.tools.secrets import SecretNames, secret_names, secret_part
from toolplan.values import Json

if typing.TYPE_CHECKING:
    from toolplan.expressions.types import Type

__all__ = ["Tool"]

_OPENING = (
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "$ref",
)
"""Keywords by which a schema says itself what other properties an object may have."""


class Tool:
    """A callable as the rest of toolplan sees it. Make one with `Tool.of` or `Tool.from_schema`.

    Calling it calls the function, with Python arguments and no checks. A plan goes another way: `bind` checks JSON
    arguments and converts them, the engine makes the call, `to_value` turns what came back into a JSON value. An async
    function gives an awaitable; so may a plain one that wraps it, so whoever calls looks at what came back.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        declaration: Declaration,
        *,
        name: str,
        place: str,
        arguments: Arguments,
        results: Callable[[], Results],
        is_async: bool,
        call: Callable[..., Any],
        document: Callable[[], Documentation],
    ) -> None:
        self.function = function
        self.name = name
        self.place = place
        """Where the function was written, for messages."""
        self.is_async = is_async
        self._all_arguments = self._arguments = arguments
        self._make_results = results
        self._call = call
        self._document = document
        self._declare(declaration)
        definitions = definitions_of(arguments.schema)
        self._never_null = frozenset(
            a.name for a in arguments.items if not a.required and not admits_null(a.schema, definitions)
        )

    def _declare(self, declaration: Declaration) -> None:
        key = declaration.idempotency
        if key is not None and key not in self._all_arguments.names:
            known = ", ".join(f"`{name}`" for name in self._all_arguments.names) or "none"
            raise UsageError(
                f"`{self.name}` ({self.place}): `idempotency` names `{key}`, but the parameters are: {known}"
            )
        self._arguments = self._all_arguments if key is None else self._all_arguments.without(key)
        header = declaration.idempotency_header
        if header is not None and not self._arguments.contexts:
            raise UsageError(
                f"`{self.name}` ({self.place}): `idempotency` gives the key as the header `{header}`, but no parameter "
                "takes it; add `ctx: ToolContext` and send `ctx.headers`"
            )
        problem = declaration.unknown_placeholder(self._arguments.names) if not self._is_open else None
        if problem:
            raise UsageError(f"`{self.name}` ({self.place}): {problem}")
        self.declaration = declaration
        self.effects: Effects = declaration.effects.with_states(declaration.requires, declaration.ensures)
        self.idempotent: bool = declaration.idempotent
        self.timeout_seconds: float | None = declaration.timeout_seconds
        self.retry: Retry | None = declaration.retry
        self.nothing_happened: tuple[type[Exception], ...] = declaration.nothing_happened
        self.max_concurrency: int | None = declaration.max_concurrency
        self.rate_limit: RateLimit | None = declaration.rate_limit
        self.requires: tuple[str, ...] = declaration.requires
        self.ensures: tuple[str, ...] = declaration.ensures
        self.keywords: tuple[str, ...] = declaration.keywords
        self.available: Availability | None = declaration.available
        self.approval: Approval | None = declaration.approval
        self.untrusted: bool | tuple[str, ...] = declaration.untrusted
        self.guarded: tuple[str, ...] | None = declaration.guarded
        self.assigns: bool | tuple[str, ...] = declaration.assigns
        self.probe: Callable[..., Any] | None = declaration.probe
        self.compensate: Callable[..., Any] | None = declaration.compensate
        self.runs_in: RunsIn = declaration.runs_in or ("loop" if self.is_async else "thread")
        if self.is_async and self.runs_in != "loop":
            raise UsageError(f"`{self.name}` ({self.place}) is async, so it runs in the loop, not in a {self.runs_in}")
        if self.runs_in == "process" and self._arguments.contexts:
            raise UsageError(f"`{self.name}` ({self.place}) takes a ToolContext, which cannot go to another process")

    @classmethod
    def of(cls, function: Callable[..., Any], **declared: Unpack[Declared]) -> Tool:
        """Return the tool that a function, method, partial or callable object makes.

        Keywords add to what `@tool` said about it, or replace it. Raises `UsageError` when it cannot be a tool.
        """
        if isinstance(function, Tool):
            return function.changed(**declared) if declared else function
        mark = mark_of(function)
        declaration = mark.declaration.changed(declared) if mark else Declaration.of(declared)
        callee = inspect_callable(function, mark.names if mark else None, named=declaration.name is not None)
        name = declaration.name or callee.name
        return cls(
            function,
            declaration,
            name=name,
            place=callee.place,
            arguments=describe_arguments(callee),
            results=functools.partial(results_of, callee),
            is_async=callee.is_async,
            call=_listing(function, callee.result, name),
            document=functools.partial(_documented, callee),
        )

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        function: Callable[..., Any],
        returns: Mapping[str, Any] | None = None,
        **declared: Unpack[Facts],
    ) -> Tool:
        """Return a tool whose schemas are given: one of an MCP server, an OpenAPI document, a benchmark.

        `function` takes the arguments as keywords, as they are; it may take a `ToolContext` too. Raises `UsageError`
        for a schema that is none, is not one of an object, or refers to something outside of itself. A schema that
        lists properties and says nothing about others is taken to be closed, so that a misspelt argument is noticed.
        """
        declaration = Declaration.of({**declared, "name": name, "description": description})
        schema = copied(dict(parameters))
        is_closed = "properties" in schema and not any(keyword in schema for keyword in _OPENING)
        _check_schema(schema, f"the parameters of `{name}`")
        if schema.setdefault("type", "object") != "object" or not isinstance(schema.setdefault("properties", {}), dict):
            raise UsageError(f"the parameters of `{name}` must be a schema of an object with `properties`")
        if returns is not None:
            _check_schema(dict(returns), f"the result of `{name}`")
        if is_closed:
            schema["additionalProperties"] = False
        required = schema.setdefault("required", [])
        items = tuple(
            Argument(argument, argument, "keyword", inner, argument in required, copied)
            for argument, inner in schema["properties"].items()
        )
        contexts, is_async, kind = _inside(function)
        return cls(
            function,
            declaration,
            name=name,
            place=place_of(function),
            arguments=Arguments(items, schema, copied, contexts),
            results=functools.partial(Results, copied(dict(returns)) if returns is not None else None),
            is_async=is_async,
            call=_listing(function, kind, name),
            document=Documentation,
        )

    def changed(self, **declared: Unpack[Declared]) -> Tool:
        """Return this tool with other declarations; keywords that are not given stay. `name` renames it."""
        return self._with(self.declaration.changed(declared))

    def with_effects(self, effects: Effects) -> Tool:
        """Return this tool with other effects, for `effects.INDEPENDENT` and its like, which no keyword says."""
        return self._with(replace(self.declaration, effects=effects))

    def _with(self, declaration: Declaration) -> Tool:
        other = copy.copy(self)
        cached_ones = ("description", "_documentation", "signature", "call_signature")
        of_schema = ("_checker", "_part_checker", "parameters", "argument_types", "strict_compatible")
        of_secrets = ("secret_arguments", "has_secrets")
        for cached in (*cached_ones, *of_schema, *of_secrets, "_naming"):
            other.__dict__.pop(cached, None)
        if declaration.name:
            other.name = declaration.name
        other._declare(declaration)
        return other

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns for these Python arguments."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.call_signature}>"

    # --- what the model and the checker see ---

    @functools.cached_property
    def _documentation(self) -> Documentation:
        return self._document()

    @functools.cached_property
    def description(self) -> str:
        """What the tool does: as declared, else from the docstring; empty when nobody says."""
        declared = self.declaration.description
        return declared if declared is not None else self._documentation.description

    @property
    def summary(self) -> str:
        """The first paragraph of the description, on one line."""
        return " ".join(self.description.strip().split("\n\n")[0].split())

    @functools.cached_property
    def result_description(self) -> str:
        """What the docstring says about the result."""
        return self._documentation.returns

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments object, with a description of each argument if there is one."""
        schema = self._arguments.schema
        described = self._documentation.parameters
        properties = {}
        for argument in self._arguments.items:
            shown = schema["properties"][argument.name]
            text = described.get(argument.parameter) or described.get(argument.name)
            properties[argument.name] = {**shown, "description": text} if text and "description" not in shown else shown
        return {**schema, "properties": properties}

    @property
    def returns(self) -> dict[str, Any] | None:
        """The JSON Schema of the result; None when it is unknown."""
        return self._results.schema

    @functools.cached_property
    def strict_compatible(self) -> bool:
        """Whether providers' strict mode can express the parameters; otherwise the tool has to be sent without it."""
        return is_strict(self._arguments.schema)

    @property
    def has_native_name(self) -> bool:
        """Whether every provider takes the name for a native tool call; a plan may use names of any script."""
        return re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", self.name) is not None

    @functools.cached_property
    def secret_arguments(self) -> SecretNames:
        """The arguments that are, or hold, what the schema marks as secret."""
        return secret_names(self._arguments.schema)

    @functools.cached_property
    def secret_result(self) -> frozenset[str] | None:
        """The fields of the result that are marked as secret; none for one that is as a whole; None for any other."""
        return secret_part(self.returns)

    @functools.cached_property
    def has_secrets(self) -> bool:
        """Whether its arguments or its result hold any."""
        return bool(self.secret_arguments) or self.secret_result is not None

    @functools.cached_property
    def result_type(self) -> Type:
        """The static type of the result."""
        from toolplan.expressions.types import from_schema

        return from_schema(self.returns)

    @functools.cached_property
    def argument_types(self) -> Mapping[str, Type]:
        """The static type of each argument."""
        from toolplan.expressions.types import from_schema

        shared = {key: self._arguments.schema[key] for key in ("$defs", "definitions") if key in self._arguments.schema}
        return {a.name: from_schema({**a.schema, **shared}) for a in self._arguments.items}

    @functools.cached_property
    def signature(self) -> str:
        """The tool as a typed one-line signature, with the fields of its result."""
        from toolplan.tools.signature import signature_of

        return signature_of(self, with_fields=True)

    @functools.cached_property
    def call_signature(self) -> str:
        """The tool as a typed one-line signature; models are only named."""
        from toolplan.tools.signature import signature_of

        return signature_of(self, with_fields=False)

    def to_json(self) -> dict[str, Any]:
        """Return everything that is known about the tool as JSON."""
        effects = self.effects
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "returns": self.returns,
            "result_description": self.result_description,
            "signature": self.signature,
            "effects": {
                "declared": effects.declared,
                "pure": effects.declared and not effects.reads and not effects.writes,
                "reads": list(effects.reads),
                "writes": list(effects.writes),
            },
            "idempotent": self.idempotent,
            "idempotency": self._key_goes_to,
            "requires": list(self.requires),
            "ensures": list(self.ensures),
            "keywords": list(self.keywords),
            "approval": self.approval,
            "untrusted": list(self.untrusted) if isinstance(self.untrusted, tuple) else self.untrusted,
            "guarded": list(self.guarded) if self.guarded is not None else None,
            **({"assigns": list(self.assigns) if isinstance(self.assigns, tuple) else True} if self.assigns else {}),
            "available": self.why_unavailable() is None,
            "timeout_seconds": self.timeout_seconds,
            "retry_attempts": self.retry.attempts if self.retry else None,
            "nothing_happened": [kind.__name__ for kind in self.nothing_happened],
            "max_concurrency": self.max_concurrency,
            "rate_limit": [self.rate_limit.calls, self.rate_limit.seconds] if self.rate_limit else None,
            "async": self.is_async,
            "runs_in": self.runs_in,
            "strict_compatible": self.strict_compatible,
        }

    # --- arguments in, result out ---

    def accesses(self, arguments: Mapping[str, Json]) -> tuple[Access, ...]:
        """Return what a call with these arguments touches, as far as they are there; see `Effects.accesses`."""
        found = self.effects.accesses(self.naming(arguments))
        return tuple(dict.fromkeys(map(covering, found))) if found else found

    def naming(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return those arguments that resource names are made of, as the values that the tool gets."""
        converts = self._naming
        return {name: name_value(converts[name], value) for name, value in arguments.items() if name in converts}

    def normalise(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments without each `null` that means "not given": for an optional one that forbids null."""
        if self._never_null and None in arguments.values():
            never = self._never_null
            return {name: value for name, value in arguments.items() if value is not None or name not in never}
        return arguments

    def accepts(self, arguments: Mapping[str, Json]) -> bool:
        """Return whether the arguments, taken as they are, fit the schema."""
        return self._checker.fits(arguments)

    def faults(self, arguments: Mapping[str, Json]) -> list[ArgumentFault]:
        """Return everything that is wrong with the arguments, taken as they are; empty when they fit."""
        checker = self._checker
        return [] if checker.fits(arguments) else self._faults(checker, arguments)

    def faults_of_given(self, arguments: Mapping[str, Json]) -> list[ArgumentFault]:
        """Return what is wrong with those arguments that are there already; that others are missing is no fault."""
        checker = self._part_checker
        return [] if checker.fits(arguments) else self._faults(checker, arguments)

    def _faults(self, checker: Checker, arguments: Mapping[str, Json]) -> list[ArgumentFault]:
        """Return what is wrong with the arguments; of secret ones, what kind of value they have."""
        found, secret = checker.faults(arguments, "the arguments object"), self.secret_arguments
        if not secret:
            return found
        return [without_value(f, arguments) if f.argument is None or f.argument in secret else f for f in found]

    def bind(self, arguments: Mapping[str, Json], context: ToolContext | None = None) -> Callable[[], Any]:
        """Return the call of the function with these JSON arguments, normalised, checked and converted.

        The arguments are copied: nothing that the function does to its own changes these. The call of a generator
        returns a list. Raises `ArgumentsRefused`, saying everything that does not fit.
        """
        if self._never_null:
            arguments = self.normalise(arguments)
        if not self._checker.fits(arguments):
            faults = self._faults(self._checker, arguments)
            raise ArgumentsRefused(f"`{self.name}` was not called: " + "; ".join(map(fault_text, faults)))
        context = self.with_headers(context)
        try:
            if self.declaration.idempotency is not None:
                key = context.idempotency_key if context is not None else ""
                arguments = {**arguments, self.declaration.idempotency: key}
            return self._all_arguments.bound(self._call, arguments, context)
        except ArgumentsRefused as error:
            raise ArgumentsRefused(f"`{self.name}` was not called: {error.message}") from error

    def with_headers(self, context: ToolContext | None) -> ToolContext | None:
        """Return the context of a call with the headers that its request is to be sent with, if there are any."""
        header = self.declaration.idempotency_header
        if header is None or context is None or not context.idempotency_key:
            return context
        return replace(context, headers={**context.headers, header: context.idempotency_key})

    def to_value(self, raw: Any) -> Json:
        """Return the JSON value of what the function returned; see `conversion.py` for the forms.

        It shares nothing with `raw` that the function could still change. Raises `ResultRefused`.
        """
        return self._results.value(raw, self.name)

    def why_unavailable(self) -> str | None:
        """Return why the tool cannot be used here and now, or None. Asks the environment or the tool's own function."""
        available = self.available
        if available is None:
            return None
        if callable(available):
            answer = available()
            if answer is None or answer is True:
                return None
            return answer if isinstance(answer, str) and answer else f"`{self.name}` says that it is not available"
        kind, _, wanted = available.partition(":")
        if kind == "env":
            return None if os.environ.get(wanted) else f"the environment variable `{wanted}` is not set"
        import shutil  # 2 ms to import

        return None if shutil.which(wanted) else f"the command `{wanted}` is not installed"

    @property
    def takes_context(self) -> bool:
        """Whether the function wants to know about the call it is in (`ToolContext`)."""
        return bool(self._arguments.contexts) or self.declaration.idempotency is not None

    @property
    def _key_goes_to(self) -> str | None:
        header = self.declaration.idempotency_header
        return self.declaration.idempotency if header is None else f"header:{header}"

    @property
    def _is_open(self) -> bool:
        """Whether a plan may give arguments that no parameter names."""
        return self._arguments.schema.get("additionalProperties", True) is not False

    @functools.cached_property
    def _naming(self) -> dict[str, Callable[[Any], Any] | None]:
        """How each argument that resource names are made of becomes what the tool gets."""
        converts = {argument.name: argument.convert for argument in self._all_arguments.items}
        return {name: converts.get(name, self._all_arguments.extra) for name in self.effects.placeholders}

    @functools.cached_property
    def _results(self) -> Results:
        return self._make_results()

    @functools.cached_property
    def _checker(self) -> Checker:
        return Checker(self._arguments.schema)

    @functools.cached_property
    def _part_checker(self) -> Checker:
        return Checker({key: part for key, part in self._arguments.schema.items() if key != "required"})


def _listing(function: Callable[..., Any], kind: ResultKind, name: str) -> Callable[..., Any]:
    """Return what to call so that a call gives a value, not something that has to be iterated over to be known."""
    if kind == "iterator":
        return functools.partial(listing, function, name)
    if kind == "async iterator":
        return functools.partial(listing_async, function, name)
    return function


def _documented(callee: Callee) -> Documentation:
    return read_docstring(callee.doc, [parameter.name for parameter in callee.parameters])


def _inside(function: Callable[..., Any]) -> tuple[tuple[Parameter, ...], bool, ResultKind]:
    """Return the context parameters of a function whose arguments are known from elsewhere, and how to call it."""
    try:
        callee = inspect_callable(function, named=True)
    except UsageError:  # `*args, **kwargs`, or annotations that nobody needs here
        kind, is_async = result_kind(function, MISSING)
        return (), is_async, kind
    return tuple(replace(p, kind="keyword") for p in callee.parameters if p.hidden), callee.is_async, callee.result


def _check_schema(schema: Mapping[str, Any], what: str) -> None:
    reference = remote_reference(schema)
    if reference:
        raise UsageError(f"{what} refer to `{reference}`, which is outside of the schema; put it into `$defs`")
    try:
        Checker(schema)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from error
