"""One call as the rules of a policy see it: what its arguments are, where they come from, and who asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from toolplan.policy.dates import holds_dates
from toolplan.policy.obeyed import is_obeyed
from toolplan.policy.quantities import seconds_of
from toolplan.policy.said import Way, bare_leaves, is_free_text, is_glue, leads_nowhere, unsaid
from toolplan.policy.sources import NO_SOURCES, Sources
from toolplan.tools import Tool
from toolplan.tools.fields import field_names
from toolplan.values import Json

__all__ = ["UNKNOWN", "CallFacts", "Effect", "Situation", "Unknown", "effect_of", "same"]

Effect: TypeAlias = Literal["none", "writes", "undeclared"]


class Unknown:
    """The value of an argument that is not known yet."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Situation:
    """Who asks for calls, how, and what was said; the same for all calls of a plan.

    `said` is what the user has said: the request, answers to questions, and whatever else counts as said. With
    `words_are_trusted` the plan was written by whoever asks for the run; else a model wrote it, and the words in it
    count as the user's only where `said` holds them. With `has_read_untrusted` that model had other people's text
    before it (a later turn of a loop, a replan), so whatever is not the user's counts as chosen by that text. `now` is
    the time of the request, as ISO text.
    """

    said: str = ""
    user: str = ""
    mode: str = "plan"
    words_are_trusted: bool = False
    has_read_untrusted: bool = False
    now: str = ""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """One call as rules see it.

    `arguments` are the values as far as they are known; those still to come are `UNKNOWN`. `sources` says where each
    comes from and `condition` which untrusted steps decide that the call is made.
    """

    tool: Tool
    arguments: Mapping[str, Json | Unknown]
    sources: Mapping[str, Sources] = field(default_factory=dict[str, Sources])
    condition: frozenset[str] = frozenset()
    situation: Situation = field(default_factory=Situation)

    @property
    def effect(self) -> Effect:
        """What the call may do to the world."""
        return effect_of(self.tool)

    @property
    def known(self) -> dict[str, Json]:
        """The arguments whose values are known."""
        return {name: value for name, value in self.arguments.items() if not isinstance(value, Unknown)}

    def unsaid(self, name: str) -> list[str]:
        """Return which of the words that a model put into an argument the user did not say, as far as they are known.

        Those are the words in the plan's text, and the value itself where an `ask_model` step worded some of it. What
        counts depends on the argument: everything in those that the tool names as `guarded`, in commands where it names
        none, and when the model has had other people's text before it; only what can lead somewhere (addresses,
        accounts) in those that it does not name; and where it names none, everything but plain words.
        """
        if self.situation.words_are_trusted or self._is_choice(name) or self.is_left_out(name):
            return []
        sources = self.sources.get(name, NO_SOURCES)
        value = self.arguments.get(name, UNKNOWN)
        words = tuple(word for word in sources.words if not is_glue(word))
        if not isinstance(value, Unknown):
            if sources.written:
                words += (value,)
            elif name in self.sources and not sources.steps:  # the plan wrote all of it
                words += tuple(bare_leaves(value))
        return self._unsaid(name, words, self._way(name)) if words else []

    def _unsaid(self, name: str, words: tuple[Json, ...], way: Way, *, flags: bool = False) -> list[str]:
        """Return which of these words of an argument the user did not say."""
        schema = self._schema(name)
        dates = not self.is_after_untrusted and holds_dates(name, schema)
        missing = unsaid(words, self.situation.said, way, seconds_of(name, schema), dates=dates, flags=flags)
        fields = field_names(schema) if missing else ()
        return [word for word in missing if word not in fields]

    def _way(self, name: str) -> Way:
        if self.is_guarded(name):
            is_name = self.tool.guarded is not None or self.is_after_untrusted or is_obeyed(self.tool, name)
            return "name" if is_name else "wording"
        return "prose"

    def is_said(self, name: str) -> bool | None:
        """Return whether the user said all that a model put into an argument; None while that is not known."""
        if self.unsaid(name):
            return False
        if self.situation.words_are_trusted or not isinstance(self.arguments.get(name, UNKNOWN), Unknown):
            return True
        sources = self.sources.get(name)
        if sources is None:
            return True
        is_all_signs = not sources.steps and all(
            map(is_glue, sources.words)
        )  # `"-" + "-"`: what that is has to be seen
        return None if sources.written or is_all_signs else True

    @property
    def is_after_untrusted(self) -> bool:
        """Whether a model wrote the call that had other people's text before it, so that they may have told it to."""
        return self.situation.has_read_untrusted and not self.situation.words_are_trusted

    @property
    def is_led(self) -> bool:
        """Whether other people's text may decide that the call is made."""
        return bool(self.condition) or self.is_after_untrusted

    @property
    def is_bound(self) -> bool | None:
        """Return whether the request ties the call to itself; None while that is not known.

        A call that was planned before the model had other people's text is; one after it where the user said at least
        one of the arguments for which it matters who chose them: what is paid to Ann is what the request is about.
        """
        if not self.is_after_untrusted:
            return True
        is_open = False
        for name, value in self.arguments.items():
            if self.tool.guarded and name not in self.tool.guarded:
                continue
            if isinstance(value, Unknown):
                is_open = True
            elif self._is_users_word(name, value):
                return True
        return None if is_open else False

    def _is_users_word(self, name: str, value: Json) -> bool:
        if value in (None, "", [], {}) or isinstance(value, bool) or self._is_default(name):
            return False  # it says nothing
        return not self._unsaid(name, (value,), "name", flags=True)

    def is_untrusted(self, name: str) -> bool | None:
        """Return whether an argument depends on other people's text; None while that is not known.

        Of a model that had such text before it, everything may - choices, flags, nothing at all -, except what the user
        said and what the call would have without it.
        """
        sources = self.sources.get(name, NO_SOURCES)
        if sources.is_untrusted:
            return True
        if not self.is_after_untrusted or self.is_left_out(name):
            return False
        value = self.arguments.get(name, UNKNOWN)
        if isinstance(value, Unknown):
            return True if self.unsaid(name) else None
        return value in ([], {}) or bool(self._unsaid(name, (value,), "name", flags=True))

    def is_left_out(self, name: str) -> bool:
        """Return whether the call is as it would be without the argument: null, nothing in it, or its own default.

        An empty text may mean something else than none (`""` as a path), so it counts unless it is the default.
        """
        value = self.arguments.get(name, UNKNOWN)
        if isinstance(value, Unknown):
            return False
        if self._is_default(name):
            return True
        if value is None and not self.is_after_untrusted:
            return True
        is_optional = name not in self.tool.parameters.get("required", ())
        nothing: tuple[Json, ...] = (None, [], {})
        return value in nothing and is_optional and self._schema(name).get("default") in nothing

    def is_guarded(self, name: str) -> bool:
        """Return whether it matters who chose the argument: those that the tool declares, else every one."""
        return self.tool.guarded is None or name in self.tool.guarded

    def is_prose(self, name: str, value: Json) -> bool:
        """Return whether a value is prose, which does nothing by itself. What a tool guards or obeys never is."""
        if self.never_prose(name):
            return False
        return is_free_text(value) and (self.tool.guarded is not None or leads_nowhere(value, self.situation.said))

    def never_prose(self, name: str) -> bool:
        """Return whether an argument counts in every word: what the tool names as guarded, or commands to it."""
        return is_obeyed(self.tool, name) if self.tool.guarded is None else name in self.tool.guarded

    def _is_choice(self, name: str) -> bool:
        """Return whether the value is the author's word, one of a list of choices, and nobody else made the choice."""
        if self.is_after_untrusted:
            return False
        known = self._schema(name)
        return "enum" in known or "const" in known or known.get("type") == "boolean"

    def _is_default(self, name: str) -> bool:
        known, value = self._schema(name), self.arguments.get(name, UNKNOWN)
        return "default" in known and not isinstance(value, Unknown) and same(value, known["default"])

    def _schema(self, name: str) -> dict[str, Any]:
        schema: Any = self.tool.parameters["properties"].get(name)
        return cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}

    def with_default(self, name: str) -> CallFacts | None:
        """Return the call with an argument that is left out as its schema fills it in, None where it is not there."""
        default = self._schema(name).get("default")
        return None if default is None else replace(self, arguments={**self.arguments, name: default})


def effect_of(tool: Tool) -> Effect:
    """Return what a call of a tool may do to the world."""
    effects = tool.effects
    if not effects.declared:
        return "undeclared"
    return "writes" if effects.writes else "none"


def same(a: Json, b: object) -> bool:
    """Return whether two values are equal; true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)
