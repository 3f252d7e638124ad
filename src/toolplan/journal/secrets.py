"""Secrets are not written down: not in plans, not in arguments, not in results, not in messages.

What is secret is said by the schema of a tool: a property with `"format": "password"` or `"writeOnly": true`, which is
what pydantic makes of `SecretStr`. Such a value is left out where it stands; and a text of some length that was seen in
such a place is left out wherever else it turns up in what the run writes. A secret that is written before anybody can
know that it is one, as the result of a tool that does not say so, is written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, cast

from toolplan.expressions import Literal
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
)
from toolplan.plan import Call, Plan, walk
from toolplan.schedule import CallSucceeded
from toolplan.tools import ToolSet
from toolplan.tools.secrets import is_secret, secret_names
from toolplan.values import Json

__all__ = ["LEFT_OUT", "Secrets"]

LEFT_OUT = "[secret]"
"""Stands in place of a secret."""

SHORTEST = 5
"""A secret of fewer characters is left out where it stands, but not looked for elsewhere."""


class Secrets:
    """What is secret in the calls of these tools, and the texts that were seen to be."""

    def __init__(self, tools: ToolSet) -> None:
        self._arguments = {tool.name: names for tool in tools if (names := secret_names(tool.parameters))}
        self._results = {tool.name: names for tool in tools if (names := _secret_result(tool.returns)) is not None}
        self._calls: dict[int, str] = {}  # the tools of calls in flight whose results are secret
        self._texts: list[str] = []

    def __bool__(self) -> bool:
        """Whether any tool has secrets at all."""
        return bool(self._arguments or self._results)

    def see(self, tool: str, key: int | None, arguments: Mapping[str, Json]) -> None:
        """Note the secrets in the arguments of a call that is about to be made under this key, or asked about."""
        for name in self._arguments.get(tool, ()):
            self._note(arguments.get(name))
        if key is not None and tool in self._results:
            self._calls[key] = tool

    def hides_result(self, tool: str) -> bool:
        """Return whether something in the result of this tool is secret."""
        return tool in self._results

    def see_plan(self, plan: Plan) -> None:
        """Note the secrets in the text of a plan."""
        for step in walk(plan.steps):
            if isinstance(step, Call) and (names := self._arguments.get(step.tool)):
                for name, value in step.arguments.fields:
                    if name in names and isinstance(value, Literal):
                        self._note(value.value)

    def shown(self, tool: str, arguments: Mapping[str, Json] | None) -> dict[str, Json] | None:
        """Return the arguments of a call as they may be shown and written."""
        if arguments is None:
            return None
        secret = self._arguments.get(tool, frozenset())
        return {name: LEFT_OUT if name in secret else value for name, value in arguments.items()}

    def rows(self, entry: Entry) -> list[tuple[str, str]]:
        """Return the rows of an entry: its own without secrets, and one that says so if that may be missed later."""
        before = entry
        if isinstance(entry, EffectStarted):
            entry = dataclasses.replace(entry, arguments=self.shown(entry.tool, cast("Any", entry.arguments)))
        elif isinstance(entry, PlanBegun):
            entry = dataclasses.replace(entry, plan=self._plan(entry.plan), known=self._known(entry.known))
        elif isinstance(entry, ModelSaid):
            entry = self._said(entry)
        elif isinstance(entry, Earlier) and self._is_told(entry):
            entry = dataclasses.replace(entry, messages=[], told=None, known=None)
        elif isinstance(entry, Decision) and entry.arguments is not None:
            self.see(entry.tool, None, cast("Any", entry.arguments))
            entry = dataclasses.replace(entry, arguments=self.shown(entry.tool, cast("Any", entry.arguments)))
        elif isinstance(entry, StepResolved) and entry.result is not None and entry.key in self._calls:
            entry = dataclasses.replace(entry, result=self._result(self._calls[entry.key], entry.result))
        elif isinstance(entry, CallSucceeded) and (tool := self._calls.pop(entry.key, None)) is not None:
            entry = dataclasses.replace(entry, value=self._result(tool, entry.value))
        kind, body = encode(entry)
        cleaned = body
        for text in self._texts:
            cleaned = cleaned.replace(text, LEFT_OUT)
        rows = [(kind, cleaned)]
        if (cleaned != body or entry != before) and (what := self._kind(entry, before)) is not None:
            rows.append(encode(SecretLeftOut(what)))
        return rows

    def _kind(self, entry: Entry, before: Entry) -> str | None:
        """Return what is missing later when something of this entry is; None when nobody reads it again."""
        match entry:
            case PlanBegun():
                known = json.dumps(entry.known, ensure_ascii=False)
                is_cut = isinstance(before, PlanBegun) and before.known != entry.known
                return "result" if is_cut or any(text in known for text in self._texts) else "plan"
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

    def clean(self, text: str) -> str:
        """Return the text without the secrets that were seen."""
        for secret in self._texts:
            text = text.replace(secret, LEFT_OUT)
        return text

    def _said(self, entry: ModelSaid) -> ModelSaid:
        """Return a reply as it may be written: of one whose calls hold secrets, its calls without these."""
        calls = [self._call(call) for call in entry.calls]
        heard = [self._call(call) for call in entry.heard]
        if (calls, heard) == (entry.calls, entry.heard):
            return entry
        if heard:  # the calls stand in the text, or have other names there
            calls = [{**cast("dict[str, Json]", call), "arguments": LEFT_OUT} for call in entry.calls]
        text = LEFT_OUT if heard else entry.text
        return dataclasses.replace(entry, text=text, calls=calls, heard=heard, thinking="", kept=None)

    def _call(self, call: Json) -> Json:
        """Return a call of a reply without its secrets, after noting them. One that cannot be read may hold some."""
        assert isinstance(call, dict)
        tool, arguments = str(call.get("tool") or call.get("name")), call.get("arguments")
        secret = self._arguments.get(tool)
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
        if not secret & given.keys():
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
                found |= result.get("name") in self._results
        return found

    def _note(self, value: Json) -> None:
        if isinstance(value, str):
            text = json.dumps(value, ensure_ascii=False)[1:-1]
            if len(text) >= SHORTEST and text not in self._texts:
                self._texts.append(text)
                self._texts.sort(key=len, reverse=True)
        elif isinstance(value, list):
            for item in value:
                self._note(item)
        elif isinstance(value, dict):
            for item in value.values():
                self._note(item)

    def _result(self, tool: str, value: Json) -> Json:
        names = self._results[tool]
        if not names or not isinstance(value, dict):
            self._note(value)
            return LEFT_OUT
        for name in names:
            self._note(value.get(name))
        return {name: LEFT_OUT if name in names else inner for name, inner in value.items()}

    def _plan(self, node: Json) -> Json:
        """Return the plan's JSON without the secret arguments of its calls."""
        if isinstance(node, list):
            return [self._plan(item) for item in node]
        if not isinstance(node, dict):
            return node
        secret = self._arguments.get(cast(str, node.get("tool_name")), frozenset()) if "tool_name" in node else ()
        shown = {key: self._plan(value) for key, value in node.items()}
        arguments = node.get("arguments")
        if secret and isinstance(arguments, dict):
            shown["arguments"] = {
                name: LEFT_OUT if name in secret and not _is_reference(value) else self._plan(value)
                for name, value in arguments.items()
            }
        return shown


def _is_reference(value: Json) -> bool:
    """Return whether an argument of a plan is no literal, but comes from elsewhere."""
    return (isinstance(value, str) and "{" in value) or (isinstance(value, dict) and "$expr" in value)


def _secret_result(schema: Mapping[str, Any] | None) -> frozenset[str] | None:
    """Return the secret fields of a result; none of them for one that is secret as a whole; None for any other."""
    if schema is None:
        return None
    return secret_names(schema) or (frozenset() if is_secret(schema, schema.get("$defs", {}), 0) else None)
