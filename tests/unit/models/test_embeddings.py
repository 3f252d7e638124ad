"""The vectors that come with a package: there without any network, and of use to a router."""

from __future__ import annotations

import importlib.util
import socket
from typing import Any

import pytest

from toolplan import Router, Tool, UsageError
from toolplan.models import packaged_embeddings

HAS_MODEL = importlib.util.find_spec("wordllama") is not None


@pytest.mark.skipif(not HAS_MODEL, reason="not run: wordllama is not installed")
def test_the_model_comes_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: Any, **__: Any) -> None:
        raise AssertionError("something was to be fetched")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    embed = packaged_embeddings()
    about = {
        "forecast": "predicts rain and sunshine",
        "pay": "transfers money to an account",
        "post": "delivers a letter to a person",
    }
    tools = [Tool.from_schema(name, text, {"properties": {}}, lambda: None) for name, text in about.items()]
    router = Router(tools, top=1, embed=embed)
    assert router.select("is it going to be wet tomorrow?").tools.names == ("forecast",)
    assert router.select("wire cash to the bank").tools.names == ("pay",)
    assert router.select("").tools.names != ()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'toolplan\[route\]'"):
        packaged_embeddings()
