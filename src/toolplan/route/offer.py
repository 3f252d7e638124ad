"""The tools that a model is shown while one request is answered. They become more, never fewer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolplan.parse import CannotPlan, Prose
from toolplan.plan import Call, Plan, walk
from toolplan.route.router import Router
from toolplan.tools import ToolSet

__all__ = ["Offer", "called_tools"]

MAX_NAMED = 2
"""How often a plan is asked for again because it names tools that were not shown. For one that says that something is
missing this happens once."""
_WORD = re.compile(r"[\w.\-/]+")


def called_tools(plan: Plan) -> list[str]:
    """Return the names of the tools that a plan calls on any path, in written order."""
    return [step.tool for step in walk(plan.steps) if isinstance(step, Call)]


class Offer:
    """What of `tools` a model is shown. Without a router it is everything, and none of this ever happens.

    `used` are tools that the conversation has used before; they are shown again, the newest first, as many as the
    router may choose.
    """

    def __init__(self, tools: ToolSet, router: Router | None, request: str, used: Iterable[str] = ()) -> None:
        self.tools = tools
        """What the model is shown."""
        self.reasked = 0
        """How often a plan, or calls of a loop, were asked for again because they needed tools that were not shown."""
        self._all = tools
        self._router = router
        self._left_out: tuple[str, ...] = ()
        self._is_blind = False
        self._named = 0
        self._has_widened = False
        if router is not None:
            selection = router.select(request)
            self.tools = self._only(selection.tools.names)
            self._left_out = selection.left_out
            self._is_blind = selection.is_blind
            self.show([name for name in dict.fromkeys(used) if name in tools][: router.top])

    @property
    def is_partial(self) -> bool:
        """Whether there are tools that are not shown."""
        return len(self.tools) < len(self._all)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the tools that are not shown, the likeliest first."""
        return tuple(name for name in self._left_out if name not in self.tools)

    @property
    def others_told(self) -> dict[str, str]:
        """The tools that are not shown, with what each is for where the router could not tell; else without."""
        return {name: self._all[name].summary if self._is_blind else "" for name in self.others}

    def hides(self, name: str) -> bool:
        """Return whether this is a tool that is not shown."""
        return name in self._all and name not in self.tools

    def show(self, names: Iterable[str]) -> tuple[str, ...]:
        """Show these tools too, with those that they need; return the names of all that are new."""
        wanted = [name for name in dict.fromkeys(names) if self.hides(name)]
        if not wanted or self._router is None:
            return ()
        shown = dict.fromkeys(self.tools.names)
        for name in wanted:
            shown |= dict.fromkeys(self._router.group(name, shown))
        new = tuple(name for name in shown if self.hides(name))
        self.tools = self._only(shown)
        return new

    def restore(self, names: Iterable[str]) -> None:
        """Show exactly these tools, as an earlier process did for the same request."""
        if self._router is not None:
            self.tools = self._only(name for name in names if name in self._all)

    def search(self, wanted: str) -> tuple[str, ...]:
        """Show the tools that are named in a text, and the likeliest for it; return the names of those that are new."""
        if self._router is None or not self.is_partial:
            return ()
        # What the model names it wants, however many; of what it only describes, the router's number.
        return self.show([*self._named_in(wanted), *self._router.select(wanted, without=self.tools.names).tools.names])

    def needed(self, reading: Plan | CannotPlan | Prose) -> tuple[str, ...]:
        """Show what a reply needs that was not shown, and return its names; nothing where it is to be taken as it is.

        A plan needs the tools that it calls. Where the model says what is missing, it needs what that text finds, or
        the likeliest of the others.
        """
        if not self.is_partial:
            return ()
        new: tuple[str, ...] = ()
        if isinstance(reading, Plan) and self._named < MAX_NAMED:
            new = self.show(called_tools(reading))
            self._named += bool(new)
        elif isinstance(reading, CannotPlan) and not self._has_widened and self._lacks_a_tool(reading):
            new = self.search(" ".join([*reading.missing, reading.reason])) or self.show(self.others[: self._top])
            self._has_widened = True
        self.reasked += bool(new)
        return new

    def _lacks_a_tool(self, reading: CannotPlan) -> bool:
        return bool(reading.missing) or bool(self._named_in(reading.reason))

    def _named_in(self, text: str) -> list[str]:
        """Return the tools that are not shown and that a text names; in Chinese, names stand between other words."""
        words = [word.strip(".-/") for word in _WORD.findall(text)]
        inside = [name for name in self.others if not name.isascii() and name in text]
        return [name for name in dict.fromkeys([*words, *inside]) if self.hides(name)]

    @property
    def _top(self) -> int:
        return self._router.top if self._router is not None else 0

    def _only(self, names: Iterable[str]) -> ToolSet:
        wanted = frozenset(names)
        return ToolSet(tool for tool in self._all if tool.name in wanted)
