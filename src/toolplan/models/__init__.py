"""Language models: hosted, local and scripted, behind one protocol.

`base` says what a model is; `choose` makes one from a name; `providers` asks real ones, with `facts` about each,
`outputs` for how a wanted shape travels, `failures` for what went wrong and `retry` for when to ask again;
`scripted` plays replies without any provider. Importing this package imports no provider's SDK.
"""

from toolplan.models.base import Message, Model, ModelRequest, OnText, Output, Reply, ToolCallPart, Usage
from toolplan.models.choose import model_from_environment, model_from_name, no_model_message
from toolplan.models.providers import ProviderModel
from toolplan.models.retry import Retry
from toolplan.models.scripted import FunctionModel, RecordingModel, ScriptedModel

__all__ = [
    "FunctionModel",
    "Message",
    "Model",
    "ModelRequest",
    "OnText",
    "Output",
    "ProviderModel",
    "RecordingModel",
    "Reply",
    "Retry",
    "ScriptedModel",
    "ToolCallPart",
    "Usage",
    "model_from_environment",
    "model_from_name",
    "no_model_message",
]
