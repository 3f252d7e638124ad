"""Whether a llama.cpp server shows its model the tools that it is sent.

Conversations are written with the template that comes with the model. Where that has no place for tools, the server
takes them, leaves them out without a word, and the model answers as if there were none. What it has is told under
`/props`, beside `/v1`: newer servers say what the template can do (`chat_template_caps`), older ones show its text.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any, cast
from urllib.parse import quote, urlsplit, urlunsplit

from toolplan.models.failures import Target

__all__ = ["shows_tools"]

WAIT_SECONDS = 10.0


def shows_tools(target: Target) -> bool | None:
    """Return whether the server shows tools to the model; None when it does not say, or cannot be reached.

    Waits for an answer, so it belongs into a thread.
    """
    props = _props(target)
    capabilities = props.get("chat_template_caps")
    if isinstance(capabilities, dict):
        known = cast("dict[str, Any]", capabilities).get("supports_tools")
        if isinstance(known, bool):
            return known
    template = props.get("chat_template")
    return "tools" in template if isinstance(template, str) and template else None


def _props(target: Target) -> dict[str, Any]:
    parts = urlsplit(target.address)
    root = parts.path.rstrip("/").removesuffix("/v1")
    # A server of many models answers for the one that is named, any other ignores the name.
    address = urlunsplit(parts._replace(path=f"{root}/props", query=f"model={quote(target.model, safe='')}"))
    login = {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}
    request = urllib.request.Request(address, headers={**login, **target.headers})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:
            props: object = json.load(response)
    except (OSError, ValueError):  # `URLError` is an `OSError`
        return {}
    return cast("dict[str, Any]", props) if isinstance(props, dict) else {}
