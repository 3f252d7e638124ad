"""Language models: hosted, local and scripted, behind one protocol.

`base` says what a model is; `choose` makes one from a name; `providers` asks real ones, with `facts` about each,
`outputs` for how a wanted shape travels, `failures` for what went wrong and `retry` for when to ask again;
`fallback` asks several in turn, `local` runs a model in a child process, `scripted` plays replies without any provider;
`embeddings` has vectors of texts, for a router.
Importing this package imports no provider's SDK, and the models themselves only when one is wanted.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from toolplan.models.base import (
    Listener,
    Message,
    Model,
    ModelRequest,
    OnText,
    Output,
    PlanForm,
    Reason,
    Reply,
    Role,
    ToolCallPart,
    ToolChoice,
    ToolResultPart,
    ToolSpec,
    Usage,
    plan_form,
)
from toolplan.models.choose import fallback, model_from, model_from_environment, model_from_name, no_model_message
from toolplan.models.embeddings import packaged_embeddings
from toolplan.models.fallback import FallbackModel
from toolplan.models.retry import Retry

if TYPE_CHECKING:
    from toolplan.models.providers import ProviderModel
    from toolplan.models.scripted import FunctionModel, RecordingModel, ScriptedModel

__all__ = [
    "FallbackModel",
    "FunctionModel",
    "Listener",
    "Message",
    "Model",
    "ModelRequest",
    "OnText",
    "Output",
    "PlanForm",
    "ProviderModel",
    "Reason",
    "RecordingModel",
    "Reply",
    "Retry",
    "Role",
    "ScriptedModel",
    "ToolCallPart",
    "ToolChoice",
    "ToolResultPart",
    "ToolSpec",
    "Usage",
    "fallback",
    "model_from",
    "model_from_environment",
    "model_from_name",
    "no_model_message",
    "packaged_embeddings",
    "plan_form",
]

_LATE = {
    "FunctionModel": "scripted",
    "ProviderModel": "providers",
    "RecordingModel": "scripted",
    "ScriptedModel": "scripted",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module `toolplan.models` has no attribute `{name}`")
    return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
