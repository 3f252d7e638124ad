"""Secrets that were seen are taken out of texts, however they are spelled there."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any

import pytest

from toolplan import Tool
from toolplan.tools.seen_secrets import SeenSecrets

SECRET = {"type": "string", "format": "password"}


def tool_with(schema: dict[str, Any], returns: dict[str, Any] | None = None) -> Tool:
    parameters = {"type": "object", "properties": {"it": schema, "name": {"type": "string"}}}
    return Tool.from_schema("login", "", parameters, lambda **_: None, returns)


def seen(value: Any, schema: dict[str, Any] = SECRET) -> SeenSecrets:
    secrets = SeenSecrets()
    secrets.see(tool_with(schema), {"it": value, "name": "somebody"})
    return secrets


@pytest.mark.parametrize("spell", [str, json.dumps, repr, urllib.parse.quote, urllib.parse.quote_plus])
@pytest.mark.parametrize("secret", ["hunter22", 'a "b" \\ c/d', "pässwört\n2", "x&y=z+1 "])
def test_every_spelling_is_found(secret: str, spell: Any) -> None:
    text = seen(secret).clean(f"login of somebody with {spell(secret)} failed")
    assert text in ("login of somebody with (secret) failed", 'login of somebody with "(secret)" failed',
                    "login of somebody with '(secret)' failed")  # fmt: skip


def test_what_is_short_is_no_secret_and_nothing_else_is() -> None:
    assert not seen("1234")
    assert not seen(None)
    assert not seen(True, {"type": "boolean", "writeOnly": True})
    assert seen(12345678).clean("found 12345678") == "found (secret)"


def test_the_longer_of_two_goes_first() -> None:
    secrets = seen(["hunter22", "hunter22-and-more"], {"type": "array", "items": SECRET})
    assert secrets.clean("hunter22-and-more, hunter22") == "(secret), (secret)"


def test_results_have_secrets_in_some_fields_or_are_secret_as_a_whole() -> None:
    fields = {"type": "object", "properties": {"token": SECRET, "user": {"type": "string"}}}
    secrets = SeenSecrets()
    secrets.see_result(tool_with({"type": "string"}, fields), {"token": "t-123456", "user": "somebody"})
    assert secrets.clean("somebody has t-123456") == "somebody has (secret)"
    secrets.see_result(tool_with({"type": "string"}, SECRET), "whole-secret")
    assert secrets.clean("whole-secret") == "(secret)"
    secrets.see_result(tool_with({"type": "string"}), "no secret")
    assert secrets.clean("no secret") == "no secret"
