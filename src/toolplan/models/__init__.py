"""Language models: hosted, local and scripted, behind one protocol.

`base` says what a model is; `choose` makes one from a name; `providers` asks real ones, with `facts` about each,
`outputs` for how a wanted shape travels, `failures` for what went wrong and `retry` for when to ask again;
`fallback` asks several in turn, `local` runs a model in a child process, `scripted` plays replies without any provider;
`embeddings` has vectors of texts, for a router.
Importing this package imports no provider's SDK.
"""

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
from toolplan.models.providers import ProviderModel
from toolplan.models.retry import Retry
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
