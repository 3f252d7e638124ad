"""Tools that come along with others: what makes the state that a tool needs, as `navigate` does for `click`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from toolplan.check.states import may_be_same
from toolplan.tools import ToolSet

__all__ = ["companions"]


def companions(
    name: str, tools: ToolSet, shown: Collection[str], rank: Mapping[str, int], along: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the tools that have to be shown with `name`, itself first, without those that are shown already.

    For each state that a tool requires, one that ensures it: the best ranked, where none is shown; and again for that
    one. `along` names further tools for a tool, which the application wants together.
    """
    group: dict[str, None] = {name: None} if name not in shown else {}
    waiting = [name]
    while waiting:
        tool = tools[waiting.pop()]
        wanted = [other for other in along.get(tool.name, ()) if other in tools]
        for state in tool.requires:
            makers = [each.name for each in tools if any(may_be_same(state, made) for made in each.ensures)]
            if makers and not any(maker in shown or maker in group or maker in wanted for maker in makers):
                wanted.append(min(makers, key=lambda maker: rank.get(maker, len(tools))))
        new = [other for other in wanted if other not in shown and other not in group]
        group.update(dict.fromkeys(new))
        waiting += new
    return list(group)
