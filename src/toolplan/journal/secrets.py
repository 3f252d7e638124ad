"""Secrets are not written down: not in plans, not in arguments, not in results, not in messages.

What is secret is said by the schema of a tool: a property with `"format": "password"` or `"writeOnly": true`, which is
what pydantic makes of `SecretStr` (`tools/secrets.py`). Such a value is left out where it stands, in a plan with all
that it is made of (`tools/secret_words.py`); one of some length that was seen in such a place is left out wherever else
it turns up in what the run writes (`tools/seen_secrets.py`).

What nobody has checked may hold a secret under a wrong name. So where any tool takes secrets, these are left out whole,
with the words around them: a call of a tool that there is not, one that cannot be read, an argument that its tool does
not name, a reply that was cut off.

A secret that is written before anybody can know that it is one, as in the request, in an argument of another tool, or
in the result of a tool that does not say so, is written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, cast

from toolplan.journal.entries import (
    Decision,
    Earlier,
    EffectStarted,
    Entry,
    ModelSaid,
    PlanBegun,
    SecretLeftOut,
    StepResolved,
    encode,
    to_text,
)
from toolplan.parse.tool_calls import ASK_USER, FIND_TOOLS
from toolplan.plan import Plan
from toolplan.schedule import CallSucceeded
from toolplan.show import to_json
from toolplan.tools import Tool, ToolSet
from toolplan.tools.secret_words import secret_words
from toolplan.tools.secrets import SecretNames, result_shown
from toolplan.tools.seen_secrets import SeenSecrets
from toolplan.values import Json

__all__ = ["LEFT_OUT", "Secrets"]

LEFT_OUT = "[secret]"
"""Stands in place of a secret."""

_DATA = frozenset(("arguments", "known", "plan", "result", "value"))
"""The fields of entries in which a number may be a secret; the others have numbers of the scheduler."""

_OWN = (ASK_USER, FIND_TOOLS)
"""What a loop offers besides the tools."""
_OF_CALLS = ("format", "id", "name", "tool")
"""The fields of a call besides what it was given and what was wrong with it."""


class Secrets:
    """What is secret in the calls of these tools, and the texts that were seen to be."""

    def __init__(self, tools: ToolSet) -> None:
        self._all = tools
        self._tools = {tool.name: tool for tool in tools if tool.has_secrets}
        self._takes_some = any(tool.secret_arguments for tool in self._tools.values())
        self._plan: tuple[Json, Json] | None = None  # the plan that is about to be written, as it is and as it may be
        self._calls: dict[int, Tool] = {}  # the tools of calls in flight whose results are secret
        self._seen = SeenSecrets()

    def __bool__(self) -> bool:
        """Whether any tool has secrets at all."""
        return bool(self._tools)

    def see(self, tool: str, key: int | None, arguments: Mapping[str, Json]) -> None:
        """Note the secrets in the arguments of a call that is about to be made under this key, or asked about."""
        made = self._tools.get(tool)
        if made is None:
            return
        self._seen.see(made, arguments)
        if key is not None and made.secret_result is not None:
            self._calls[key] = made

    def see_plan(self, plan: Plan) -> None:
        """Note the secrets in the text of a plan, which is about to be written."""
        words = secret_words(plan, self._all)
        self._seen.see_words(words.values)
        self._plan = (to_json(plan), to_json(words.cut(LEFT_OUT))) if words else None

    def shown(self, tool: str, arguments: Mapping[str, Json] | None) -> dict[str, Json] | None:
        """Return the arguments of a call as they may be shown and written."""
        if arguments is None:
            return None
        secret = self._secret_arguments(tool)
        return {name: LEFT_OUT if name in secret else value for name, value in arguments.items()}

    def rows(self, entry: Entry) -> list[tuple[str, str]]:
        """Return the rows of an entry: its own without secrets, and one that says so if that may be missed later."""
        before = entry
        if isinstance(entry, EffectStarted):
            entry = dataclasses.replace(entry, arguments=self.shown(entry.tool, cast("Any", entry.arguments)))
        elif isinstance(entry, PlanBegun):
            entry = dataclasses.replace(entry, plan=self._cut(entry.plan), known=self._known(entry.known))
        elif isinstance(entry, ModelSaid):
            entry = self._said(entry)
        elif isinstance(entry, Earlier) and self._is_told(entry):
            entry = dataclasses.replace(entry, messages=[], told=None, known=None)
        elif isinstance(entry, Decision):
            self.see(entry.tool, None, cast("Any", entry.arguments or {}))
            pattern = self.shown(entry.tool, cast("Any", entry.pattern))
            shown = self.shown(entry.tool, cast("Any", entry.arguments))
            entry = dataclasses.replace(entry, arguments=shown, pattern=pattern)
        elif isinstance(entry, StepResolved) and entry.result is not None and entry.key in self._calls:
            entry = dataclasses.replace(entry, result=self._result(self._calls[entry.key], entry.result))
        elif isinstance(entry, CallSucceeded) and (tool := self._calls.pop(entry.key, None)) is not None:
            entry = dataclasses.replace(entry, value=self._result(tool, entry.value))
        row = encode(entry)
        cleaned = self._cleaned(row)
        rows = [cleaned]
        if (cleaned != row or entry != before) and (what := self._kind(entry, before)) is not None:
            rows.append(encode(SecretLeftOut(what)))
        return rows

    def _kind(self, entry: Entry, before: Entry) -> str | None:
        """Return what is missing later when something of this entry is; None when nobody reads it again."""
        match entry:
            case PlanBegun():
                is_cut = isinstance(before, PlanBegun) and before.known != entry.known
                return "result" if is_cut or self._seen.clean_json(entry.known) != entry.known else "plan"
            case CallSucceeded() | StepResolved():
                return "result"
            case Decision():
                return "change"
            case ModelSaid():
                return "reply"
            case Earlier():
                return "earlier"
            case _:
                return None

    def _secret_arguments(self, tool: str) -> SecretNames:
        made = self._tools.get(tool)
        return made.secret_arguments if made is not None else SecretNames()

    def _cleaned(self, row: tuple[str, str]) -> tuple[str, str]:
        """Return a row without the secrets that were seen. The names of its fields stay."""
        kind, body = row
        if not self._seen or self._seen.clean(body) == body:
            return row
        fields: dict[str, Json] = json.loads(body)
        for name, value in fields.items():
            fields[name] = self._seen.clean_json(value, LEFT_OUT, numbers=name in _DATA)
        return kind, to_text(fields)

    def _said(self, entry: ModelSaid) -> ModelSaid:
        """Return a reply as it may be written: of one whose calls hold secrets, or may, its calls without these."""
        told = entry.heard or entry.calls  # what was heard stands in the text, or has other names there
        shown = [self._call(call) for call in told]
        is_cut_off = entry.finish_reason == "length" and self._takes_some
        if any(map(self._is_unreadable, entry.calls)):
            shown = [_bare(call) for call in told]
        if shown == told and not is_cut_off:
            return entry
        calls, heard = ([_bare(call) for call in entry.calls], shown) if entry.heard else (shown, [])
        return dataclasses.replace(entry, text=LEFT_OUT, calls=calls, heard=heard, thinking="", kept=None, notes=[])

    def _is_unreadable(self, call: Json) -> bool:
        return self._takes_some and isinstance(call, dict) and bool(call.get("problem"))

    def _call(self, call: Json) -> Json:
        """Return a call of a reply without its secrets, after noting them. One that fits no tool may hold some."""
        assert isinstance(call, dict)
        tool, arguments = str(call.get("tool") or call.get("name")), call.get("arguments")
        secret = self._secret_arguments(tool)
        if self._is_unreadable(call) or (self._takes_some and tool not in self._all and tool not in _OWN):
            return _bare(call)
        if not secret:
            return call
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments or "{}")
            except ValueError:
                arguments = None
        if not isinstance(arguments, dict):
            return {**call, "arguments": LEFT_OUT}
        given = cast("dict[str, Json]", arguments)
        if not any(name in secret for name in given):
            return call
        self.see(tool, None, given)
        return {**call, "arguments": self.shown(tool, given)}

    def _known(self, known: Json) -> Json:
        """Return what is known before a plan without the secrets in the calls that were made before."""
        made = known.get("made") if isinstance(known, dict) else None
        if not isinstance(known, dict) or not isinstance(made, list):
            return known
        return {**known, "made": [self._call(call) for call in made]}

    def _is_told(self, entry: Earlier) -> bool:
        """Return whether what was said and done before holds secrets, after noting them."""
        found = False
        for message in cast("list[dict[str, Any]]", entry.messages):
            found |= any(self._call(call) != call for call in message.get("tool_calls", ()))
            for result in message.get("tool_results", ()):
                tool = self._tools.get(result.get("name"))
                found |= tool is not None and tool.secret_result is not None
        return found

    def _result(self, tool: Tool, value: Json) -> Json:
        self._seen.see_result(tool, value)
        return result_shown(value, tool, LEFT_OUT)

    def _cut(self, plan: Json) -> Json:
        """Return the plan that was seen last as it may be written."""
        return self._plan[1] if self._plan is not None and self._plan[0] == plan else plan


def _bare(call: Json) -> Json:
    """Return a call of which nothing may be written but what it was to be of."""
    assert isinstance(call, dict)
    return {name: value for name, value in call.items() if name in _OF_CALLS} | {"arguments": LEFT_OUT}
