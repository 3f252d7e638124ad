"""What is declared beside a tool: effects, limits, states, approval. Checked when written, not when used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, TypedDict, cast

from toolplan.diagnostics import nearest
from toolplan.effects import UNDECLARED, Effects, declare
from toolplan.errors import UsageError
from toolplan.plan import Retry

__all__ = ["Approval", "Availability", "Declaration", "Declared", "Facts", "RateLimit", "RunsIn"]

Approval: TypeAlias = Literal["allow", "ask", "deny"]
RunsIn: TypeAlias = Literal["thread", "loop", "process"]
Availability: TypeAlias = "str | Callable[[], bool | str | None]"
"""`"env:NAME"` (a variable that is set), `"cmd:NAME"` (a command on the path), or a function that returns whether the
tool can be used, or the reason why not as text."""

_PER = {"s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_RATE = re.compile(r"\s*(\d+)\s*/\s*([a-z]+)\s*\Z")
_NAME = re.compile(r"[^\s{}\[\]()\"'`,;=\\]{1,128}\Z")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `calls` calls in any `seconds` seconds."""

    calls: int
    seconds: float = 1.0


class Facts(TypedDict, total=False):
    """The keywords of `@tool` besides name and description."""

    pure: bool
    reads: str | tuple[str, ...] | list[str]
    writes: str | tuple[str, ...] | list[str]
    idempotent: bool
    idempotency: str
    timeout_seconds: float
    retry: Retry | int
    nothing_happened: type[Exception] | tuple[type[Exception], ...]
    max_concurrency: int
    rate_limit: RateLimit | str | tuple[int, float]
    requires: str | tuple[str, ...] | list[str]
    ensures: str | tuple[str, ...] | list[str]
    keywords: str | tuple[str, ...] | list[str]
    available: Availability
    approval: Approval
    untrusted: bool | str | tuple[str, ...] | list[str]
    guarded: str | tuple[str, ...] | list[str]
    assigns: bool | str | tuple[str, ...] | list[str]
    probe: Callable[..., Any]
    compensate: Callable[..., Any]
    runs_in: RunsIn


class Declared(Facts, total=False):
    """The keywords of `@tool`."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Declaration:
    """The keywords of `@tool`, checked and in one form. Nothing declared is `Declaration()`."""

    name: str | None = None
    description: str | None = None
    effects: Effects = UNDECLARED
    idempotent: bool = False
    idempotency: str | None = None
    """The argument that the host fills with the idempotency key, and that nobody else sees."""
    idempotency_header: str | None = None
    """The header under which the key stands in `ToolContext.headers`, for a tool that sends it with an HTTP request."""
    timeout_seconds: float | None = None
    retry: Retry | None = None
    nothing_happened: tuple[type[Exception], ...] = ()
    max_concurrency: int | None = None
    rate_limit: RateLimit | None = None
    requires: tuple[str, ...] = ()
    ensures: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    """Words of requests that want this tool, for a router."""
    available: Availability | None = None
    approval: Approval | None = None
    untrusted: bool | tuple[str, ...] = False
    guarded: tuple[str, ...] | None = None
    assigns: bool | tuple[str, ...] = False
    probe: Callable[..., Any] | None = None
    compensate: Callable[..., Any] | None = None
    runs_in: RunsIn | None = None

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Declaration:
        """Return the declaration that the keywords of `@tool` make. Raises `UsageError` for a wrong one."""
        known = [*Declared.__annotations__, *Facts.__annotations__]
        for keyword in keywords:
            if keyword not in known:
                near = nearest(keyword, known)
                hint = f"did you mean `{near}`?" if near else "it knows " + ", ".join(f"`{name}`" for name in known)
                raise UsageError(f"`tool` has no keyword `{keyword}`; {hint}")
        given = {name: value for name, value in keywords.items() if value is not None}
        effects = declare(
            pure=_bool("pure")(given.pop("pure", False)),
            reads=_resources("reads")(given.pop("reads", ())),
            writes=_resources("writes")(given.pop("writes", ())),
        )
        for name, check in _CHECKS.items():
            if name in given:
                given[name] = check(given[name])
        if "idempotency" in given:
            kind, name = _idempotency(given.pop("idempotency"))
            given["idempotency" if kind == "argument" else "idempotency_header"] = name
            given.setdefault("idempotent", True)
        if given.get("assigns") and effects.declared and not effects.writes:
            raise UsageError("`assigns` is for a tool that makes something; this one is declared to change nothing")
        if given.get("assigns") is True and given.get("untrusted"):
            raise UsageError("a result that the tool `assigns` itself is not `untrusted`; name the fields of either")
        return cls(effects=effects, **given)

    def changed(self, keywords: Mapping[str, Any]) -> Declaration:
        """Return this declaration with the keywords that are given replacing what was said before."""
        newer = Declaration.of(keywords)
        effects_given = any(keyword in keywords for keyword in ("pure", "reads", "writes"))
        names = {f.name for f in fields(Declaration)} - {"effects"}
        changes = {name: getattr(newer, name) for name in names if name in keywords}
        if "idempotency" in keywords:
            changes["idempotency_header"] = newer.idempotency_header
            if keywords["idempotency"] is not None:
                changes["idempotent"] = newer.idempotent
        return replace(self, **changes, **({"effects": newer.effects} if effects_given else {}))

    def unknown_placeholder(self, arguments: Iterable[str]) -> str | None:
        """Return what is wrong with the first `{placeholder}` or guarded name that is no argument, or None."""
        known = list(arguments)
        for name in self.guarded or ():
            if name not in known:
                near = nearest(name, known)
                parameters = ", ".join(f"`{name}`" for name in known) or "none"
                hint = f"; did you mean `{near}`?" if near else ""
                return f"`guarded` names `{name}`, but the parameters are: {parameters}{hint}"
        spoken: list[tuple[str, str]] = [(name, "reads") for name in self.effects.reads]
        spoken += [(name, "writes") for name in self.effects.writes]
        spoken += [(name, "requires") for name in self.requires] + [(name, "ensures") for name in self.ensures]
        for text, keyword in spoken:
            for placeholder in _PLACEHOLDER.findall(text):
                root = placeholder.split(".")[0]
                if root not in known:
                    near = nearest(root, known)
                    parameters = ", ".join(f"`{name}`" for name in known) or "none"
                    hint = f"; did you mean `{near}`?" if near else ""
                    return f"`{keyword}={text!r}` speaks of `{{{root}}}`, but the parameters are: {parameters}{hint}"
        return None


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.match(value):
        raise UsageError(
            f"a tool cannot be named {value!r}; a name has 1 to 128 characters, no spaces, quotes, commas or brackets"
        )
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"`description` must be text, but is {value!r}")
    return value


def _positive(keyword: str) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise UsageError(f"`{keyword}` must be a number above 0, but is {value!r}")
        return value

    return check


def _count(keyword: str) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"`{keyword}` must be a whole number of at least 1, but is {value!r}")
        return value

    return check


def _retry(value: Any) -> Retry:
    return value if isinstance(value, Retry) else Retry(attempts=_count("retry")(value))


def _several(value: Any) -> tuple[Any, ...] | None:
    """Return what a keyword names: one text, or each of a collection; None for what is neither."""
    if isinstance(value, str):
        return (value,)
    return tuple(cast("Iterable[Any]", value)) if isinstance(value, Iterable) else None


def _bool(keyword: str) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise UsageError(f"`{keyword}` must be True or False, but is {value!r}")
        return value

    return check


def _exceptions(keyword: str) -> Callable[[Any], tuple[type[Exception], ...]]:
    def check(value: Any) -> tuple[type[Exception], ...]:
        kinds = (value,) if isinstance(value, type) else _several(value)
        if not kinds or not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise UsageError(f"`{keyword}` must be exception classes, such as ConnectionRefusedError, but is {value!r}")
        return kinds

    return check


def _rate_limit(value: Any) -> RateLimit:
    if isinstance(value, str) and (match := _RATE.match(value)) and match[2] in _PER and int(match[1]):
        return RateLimit(int(match[1]), _PER[match[2]])
    if isinstance(value, RateLimit):
        return value
    if isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == 2:
        calls, seconds = cast("tuple[Any, Any]", value)
        return RateLimit(_count("rate_limit")(calls), _positive("rate_limit")(seconds))
    raise UsageError(f'`rate_limit` must be like "10/min" or (calls, seconds), but is {value!r}')


def _states(keyword: str) -> Callable[[Any], tuple[str, ...]]:
    def check(value: Any) -> tuple[str, ...]:
        states = _several(value)
        if states is None or not all(isinstance(state, str) and state.strip() for state in states):
            raise UsageError(f'`{keyword}` must be a state such as "page:open", or several, but is {value!r}')
        return states

    return check


def _names(keyword: str) -> Callable[[Any], tuple[str, ...]]:
    def check(value: Any) -> tuple[str, ...]:
        names = _several(value)
        if names is None or not all(isinstance(name, str) and name.strip() for name in names):
            raise UsageError(f"`{keyword}` must be a name, or several, but is {value!r}")
        return names

    return check


def _resources(keyword: str) -> Callable[[Any], tuple[str, ...]]:
    def check(value: Any) -> tuple[str, ...]:
        names = _several(value)
        if names is None or not all(isinstance(name, str) for name in names):
            raise UsageError(f'`{keyword}` must be a resource such as "mail:{{to}}", or several, but is {value!r}')
        return names

    return check


def _idempotency(value: Any) -> tuple[str, str]:
    """Return whether an argument or a header takes the key, and its name; a header's is a token (RFC 9110, 5.6.2)."""
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind == "header" and name and not _TOKEN.match(name):
        raise UsageError(
            f"`idempotency` names the header {name!r}, but a header's name has no spaces, accents or colons"
        )
    if kind not in ("argument", "header") or not name:
        raise UsageError(
            '`idempotency` must be "argument:NAME", the argument that takes the key, or "header:NAME", the header to '
            f"send it in, but is {value!r}"
        )
    return kind, name


def _fields(keyword: str) -> Callable[[Any], bool | tuple[str, ...]]:
    def check(value: Any) -> bool | tuple[str, ...]:
        return value if isinstance(value, bool) else _names(keyword)(value)

    return check


def _available(value: Any) -> Availability:
    if callable(value):
        return cast("Callable[[], Any]", value)
    if isinstance(value, str) and re.match(r"(env|cmd):\S+\Z", value):
        return value
    raise UsageError(
        f'`available` must be "env:VARIABLE", "cmd:COMMAND" or a function that says whether, but is {value!r}'
    )


def _one_of(keyword: str, *allowed: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value not in allowed:
            raise UsageError(f"`{keyword}` must be one of {', '.join(map(repr, allowed))}, but is {value!r}")
        return value

    return check


def _function(keyword: str) -> Callable[[Any], Callable[..., Any]]:
    def check(value: Any) -> Callable[..., Any]:
        if not callable(value):
            raise UsageError(f"`{keyword}` must be a function, but is {value!r}")
        return value

    return check


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "name": _name,
    "description": _text,
    "idempotent": _bool("idempotent"),
    "timeout_seconds": _positive("timeout_seconds"),
    "retry": _retry,
    "nothing_happened": _exceptions("nothing_happened"),
    "max_concurrency": _count("max_concurrency"),
    "rate_limit": _rate_limit,
    "requires": _states("requires"),
    "ensures": _states("ensures"),
    "keywords": _names("keywords"),
    "available": _available,
    "approval": _one_of("approval", "allow", "ask", "deny"),
    "untrusted": _fields("untrusted"),
    "guarded": _names("guarded"),
    "assigns": _fields("assigns"),
    "probe": _function("probe"),
    "compensate": _function("compensate"),
    "runs_in": _one_of("runs_in", "thread", "loop", "process"),
}
