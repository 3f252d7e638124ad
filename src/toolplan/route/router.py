"""Chooses the tools that are worth sending with a request: by keywords, by words, by meaning."""

from __future__ import annotations

import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from toolplan.diagnostics import nearest
from toolplan.errors import UsageError
from toolplan.prompt import estimate_tokens
from toolplan.prompt.messages import tools_text
from toolplan.route.bm25 import Index, Term, Worth, diverse
from toolplan.route.companions import companions
from toolplan.route.described import line_of, weighted_words
from toolplan.route.handles import Handles
from toolplan.route.meaning import Embed, Meaning
from toolplan.route.selection import Match, Selection
from toolplan.route.words import holds, words_of
from toolplan.tools import ToolSet
from toolplan.tools.toolset import ToolSource

__all__ = ["TOP", "Router"]

_log = logging.getLogger("toolplan.route")

TOP = 10
RANKS = 60
"""The constant of reciprocal rank fusion, as its authors have it (Cormack, Clarke, Büttcher 2009)."""
BLIND_TOKENS = 2_000
"""Where the words of a request say nothing, all tools are shown if they cost no more: asking again costs more."""
DEPTH = 4
"""Each order is followed to this many times the number of tools that may be chosen."""


class Router:
    """Chooses among `tools` for each request. The same request always gives the same selection.

    `top` is how many tools are chosen at most (but see below), `max_tokens` how much their text may cost; both count
    everything that is shown. `always` names tools that are in every selection. Where there are no more tools than
    `top`, and they fit, all of them are chosen.

    Tools are ordered by the words that they share with the request (BM25) and by keywords: those of
    `@tool(keywords=...)`, and of `intents`, which maps a keyword to the tools it stands for. With `embed`, which gives
    a vector for each text (`toolplan.models.packaged_embeddings()`, or your own), a second order by likeness of meaning
    is put together with it by reciprocal rank fusion.

    A chosen tool brings along what makes the state that it requires, and the tools that `along` names for it; if there
    is no room for all of these, it is not chosen. Where there is room, it also brings one that gives the handle that it
    cannot be called without, as `list_events` gives the `event_id` of `cancel_event`. What room is left goes to tools
    that have words in common with those that were matched, then to any others.

    Where nothing of a request is in any tool, or it is in a script that the tools are not, any choice would be a guess,
    and a plan that has to be asked for twice costs more than signatures do. Then all tools are chosen, whatever `top`
    is, if they cost no more than `max_tokens`, or 2,000 without it; `Selection.is_blind` says so, and, the first time,
    a warning in the log.

    `count` counts the tokens of a text; without it they are estimated. Raises `UsageError` for a name that no tool has,
    and when the `always` tools alone are too many.
    """

    def __init__(
        self,
        tools: Iterable[ToolSource],
        *,
        top: int = TOP,
        max_tokens: int | None = None,
        always: Iterable[str] = (),
        intents: Mapping[str, str | Sequence[str]] | None = None,
        along: Mapping[str, str | Sequence[str]] | None = None,
        embed: Embed | None = None,
        count: Callable[[str], int] = estimate_tokens,
    ) -> None:
        self.tools = ToolSet.of(tools)
        self.top = _at_least_one("top", top)
        self.max_tokens = None if max_tokens is None else _at_least_one("max_tokens", max_tokens)
        self._position = {name: number for number, name in enumerate(self.tools.names)}
        self._count = count
        self._embed = embed
        self._along = {self._known(name, "along"): self._names(others, "along") for name, others in _pairs(along)}
        self._keywords: dict[str, list[str]] = {tool.name: list(tool.keywords) for tool in self.tools}
        for keyword, names in _pairs(intents):
            if not keyword.strip():
                raise UsageError("`intents` has an empty keyword; write a word that requests have in them")
            for name in self._names(names, "intents"):
                self._keywords[name].append(keyword)
        self.always = self._always(always)
        self._has_warned = False

    def select(self, request: str, *, without: Collection[str] = ()) -> Selection:
        """Return the tools for a request; `without` are names of tools that need not be chosen, for they are shown."""
        found = self._ranked(request, without)
        is_blind = self._embed is None and self._says_nothing(request)
        chosen = self._chosen(list(found), without, is_blind=is_blind)
        order = [*(name for name in found if name in chosen), *(name for name in chosen if name not in found)]
        rest = [name for name in found if name not in chosen]
        others = [name for name in self.tools.names if name not in chosen and name not in found]
        matches = tuple(
            replace(
                found.get(name, Match(name)),
                is_chosen=name in chosen,
                is_always=name in self.always,
                along_with=chosen.get(name),
            )
            for name in (*order, *rest)
        )
        shown = self._only(chosen)
        if is_blind and not without:
            self._warn()
        tokens = self._tokens(shown)
        return Selection(request, shown, matches, (*rest, *others), tokens, self._tokens_of_all, is_blind)

    # Orders ---------------------------------------------------------------------------------------------------------

    def _ranked(self, request: str, without: Collection[str]) -> dict[str, Match]:
        """Return what speaks for each tool that anything speaks for, the best first."""
        most = DEPTH * self.top
        names = self.tools.names
        wanted = [number for number, name in enumerate(names) if name not in without]
        shown = dict(reversed(list(words_of(request))))
        keywords = [keyword for keyword in self._all_keywords if holds(request, keyword)]
        worth = self._index.matches(shown, keywords)
        if without:
            worth = {number: worth[number] for number in wanted if number in worth}
        order, likeness = diverse(worth, most), dict[int, float]()
        if self._meaning is not None:
            by_meaning, likeness = self._meaning.nearest(request, wanted, most)
            order = _fused(order, by_meaning)
        return {
            names[number]: Match(
                names[number],
                sum(worth.get(number, {}).values()),
                words=tuple(shown[term.text] for term in _heaviest(worth.get(number, {})) if not term.is_keyword),
                keywords=tuple(term.text for term in _heaviest(worth.get(number, {})) if term.is_keyword),
                likeness=likeness.get(number),
            )
            for number in order
        }

    @functools.cached_property
    def _all_keywords(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(keyword for keywords in self._keywords.values() for keyword in keywords))

    @functools.cached_property
    def _index(self) -> Index:
        return Index(self._words, [dict.fromkeys(keywords) for keywords in self._keywords.values()])

    @functools.cached_property
    def _words(self) -> list[Mapping[str, float]]:
        return [weighted_words(tool) for tool in self.tools]

    @functools.cached_property
    def _meaning(self) -> Meaning | None:
        if self._embed is None or not len(self.tools):
            return None
        return Meaning([line_of(tool, self._keywords[tool.name]) for tool in self.tools], self._embed)

    def _says_nothing(self, request: str) -> bool:
        """Return whether no word of a request is in a tool, or none of those outside of ASCII, and these are the most.

        The words of another script are what such a request is about, whatever a number or a name has in common.
        """
        if not len(self.tools) or any(holds(request, keyword) for keyword in self._all_keywords):
            return False
        words = dict(words_of(request))
        foreign = [word for word in words if not word.isascii()]
        if 2 * len(foreign) > len(words):
            return not self._index.matches(foreign, ())
        return not self._index.matches(words, ())

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "no word of a request is in any of the %d tools, so it could not be told which of them it needs; "
                "give tools keywords in the words of the users, as in @tool(keywords=...) or Router(intents=...), "
                "or compare meanings with Router(embed=...)",
                len(self.tools),
            )

    # Choice ---------------------------------------------------------------------------------------------------------

    def _chosen(self, ranked: Sequence[str], without: Collection[str], *, is_blind: bool) -> dict[str, str | None]:
        """Return the chosen tools, each with the one that it comes along with, if any.

        Where some are shown already, only what is found is chosen: the rest is no use to whoever looks for more.
        """
        if not without and self._has_room_for_all(is_blind):
            return dict.fromkeys(self.tools.names)
        choice = _Choice(self, self._has_room, ranked, without)
        for name in ranked:
            if choice.take(name):
                choice.take_givers(name, self._handles)
        for name in self._neighbours([name for name in ranked if name in choice.chosen]):
            choice.take(name)
        if not without:
            for name in self.tools.names if len(choice.chosen) < self.top else ():
                choice.take(name)
        return choice.chosen

    def _has_room_for_all(self, is_blind: bool) -> bool:
        if len(self.tools) <= self.top:
            return self._fits(self.tools.names)
        most = BLIND_TOKENS if self.max_tokens is None else self.max_tokens
        return is_blind and self._tokens_of_all <= most

    def group(self, name: str, shown: Collection[str], rank: Mapping[str, int] | None = None) -> list[str]:
        """Return a tool and those that have to be shown with it, without what is shown already."""
        return companions(name, self.tools, shown, rank or {}, self._along)

    def _has_room(self, names: Collection[str]) -> bool:
        return len(names) <= self.top and self._fits(names)

    def _neighbours(self, matched: Collection[str]) -> list[str]:
        """Return the tools that share words with those that were matched, nearest first; none where they are enough."""
        if not matched or len(matched) >= self.top:
            return []
        names = self.tools.names
        words = {word for name, own in zip(names, self._words, strict=True) if name in matched for word in own}
        worth = {number: sum(terms.values()) for number, terms in self._index.matches(words, ()).items()}
        order = sorted(worth, key=lambda number: (-worth[number], number))
        return [names[number] for number in order[: DEPTH * self.top]]

    def _always(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the tools of every selection, with those that come along with them."""
        chosen: dict[str, None] = {}
        for name in self._names(names, "always"):
            chosen |= dict.fromkeys(self.group(name, chosen))
        if len(chosen) > self.top:
            raise UsageError(
                f"{len(chosen)} tools are always shown, more than `top={self.top}` allows: {_listed(chosen)}"
            )
        if not self._fits(chosen):
            cost = self._tokens(self._only(chosen))
            raise UsageError(
                f"the tools that are always shown cost {cost} tokens, more than `max_tokens={self.max_tokens}` allows: "
                f"{_listed(chosen)}"
            )
        return tuple(chosen)

    @functools.cached_property
    def _handles(self) -> Handles:
        return Handles(self.tools)

    def _fits(self, names: Iterable[str]) -> bool:
        return self.max_tokens is None or self._tokens(self._only(names)) <= self.max_tokens

    def _only(self, names: Iterable[str]) -> ToolSet:
        return ToolSet(self.tools[name] for name in sorted(frozenset(names), key=self._position.__getitem__))

    def _tokens(self, tools: ToolSet) -> int:
        return self._count(tools_text(tools))

    @functools.cached_property
    def _tokens_of_all(self) -> int:
        return self._tokens(self.tools)

    # Names ----------------------------------------------------------------------------------------------------------

    def _names(self, names: str | Iterable[str], option: str) -> list[str]:
        return [self._known(name, option) for name in ([names] if isinstance(names, str) else names)]

    def _known(self, name: str, option: str) -> str:
        if name in self.tools:
            return name
        near = nearest(name, self.tools.names)
        hint = f"did you mean `{near}`?" if near else "give the name of one of the router's tools"
        raise UsageError(f"`{option}` names `{name}`, but no tool is named that; {hint}")


class _Choice:
    """The tools that are chosen so far, each with the one that it comes along with, if any."""

    def __init__(
        self,
        router: Router,
        has_room: Callable[[Collection[str]], bool],
        ranked: Sequence[str],
        without: Collection[str],
    ) -> None:
        self.chosen: dict[str, str | None] = dict.fromkeys(name for name in router.always if name not in without)
        self._router = router
        self._has_room = has_room
        self._rank = {name: number for number, name in enumerate(ranked)}
        self._without = frozenset(without)

    def take(self, name: str, along_with: str | None = None) -> bool:
        """Choose a tool and all that it needs, if there is room for them; return whether it is new and chosen."""
        shown = self._without.union(self.chosen)
        if name in shown:
            return False
        group = self._router.group(name, shown, self._rank)
        if not self._has_room([*self.chosen, *group]):
            return False
        self.chosen |= {other: along_with if other == name else name for other in group}
        return True

    def take_givers(self, name: str, handles: Handles) -> None:
        """Choose tools that give the handles which a chosen tool needs, as far as there is room."""
        for givers in handles.givers(self._router.tools[name]):
            if not any(giver in self.chosen or giver in self._without for giver in givers):
                self.take(min(givers, key=lambda each: self._rank.get(each, len(self._rank))), name)


def _pairs(mapping: Mapping[str, str | Sequence[str]] | None) -> Iterable[tuple[str, str | Sequence[str]]]:
    return mapping.items() if mapping is not None else ()


def _heaviest(worth: Worth) -> list[Term]:
    return sorted(worth, key=lambda term: (-worth[term], term))


def _fused(*orders: Sequence[int]) -> list[int]:
    """Return one order out of several: by the sum of 1/(60 + rank) over those that a number is in."""
    scores: defaultdict[int, float] = defaultdict(float)
    for order in orders:
        for rank, number in enumerate(order, 1):
            scores[number] += 1 / (RANKS + rank)
    return sorted(scores, key=lambda number: (-scores[number], number))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _at_least_one(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"`{name}` is {value!r}; it is a number of at least 1")
    return value
