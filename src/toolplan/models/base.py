"""What a language model is to toolplan: messages in, one reply and its cost out.

    ModelRequest ──> Model.ask ──> Reply
                        │
                        └── on_text(delta): the reply's text while it arrives; a `Listener` hears of calls, too

Everything above this package speaks only these types. What a provider can do natively and what it cannot, its
protocol, its errors and its odd habits stay below `ask` (P8).

A wanted shape (`ModelRequest.schema`) travels in the best way the model has: as its native JSON-schema output, else
as the arguments of a tool named `schema_name`, else as a sentence in the prompt. Wherever the plan came back,
`Reply.plan_text` is its text.

Tools that are offered to be called one turn at a time (`ModelRequest.tools`) travel natively where the provider has
tool calls, else as text. Either way a reply has `tool_calls`; `Reply.message` goes back into the conversation, and
after it a message of the role `tool` with one `ToolResultPart` for each call. Ids are labels: calls of one message
with equal or empty ids are answered in their order, and each provider gets ids that it accepts.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from toolplan.diagnostics import Diagnostic
from toolplan.patterns import late_pattern
from toolplan.values import Json

__all__ = [
    "Listener",
    "Message",
    "Model",
    "ModelRequest",
    "OnText",
    "Output",
    "PlanForm",
    "Reason",
    "Reply",
    "Role",
    "ToolCallPart",
    "ToolChoice",
    "ToolResultPart",
    "ToolSpec",
    "Usage",
    "close_model",
    "estimate_tokens",
    "hears_calls",
    "plan_form",
    "starts_over",
]

OnText: TypeAlias = Callable[[str], None]
"""Receives each piece of a reply's text as it arrives: prose, native JSON, or the arguments of the plan tool.

One that can take back what it heard is a `Listener`: a reply that broke off is asked for again only while nothing of
it was heard, or if the listener can start over.
"""


def _ignore(_: ToolCallPart) -> None:
    """Hear of a call that nobody waits for."""


@dataclass(frozen=True, slots=True)
class Listener:
    """An `on_text` that can take back what it heard: `start_over` says that a reply was lost and begins anew.

    `called` hears of calls of the offered tools as soon as they are complete, in their order. Not of every call: some
    are known only with the whole reply, which alone says what is called.
    """

    hear: OnText
    start_over: Callable[[], None]
    called: Callable[[ToolCallPart], None] = _ignore

    def __call__(self, text: str) -> None:
        """Hear a piece of the reply."""
        self.hear(text)


def starts_over(on_text: OnText | None) -> bool:
    """Let a listener that heard a part of a lost reply start over; return whether it could."""
    if not isinstance(on_text, Listener):
        return False
    on_text.start_over()
    return True


def hears_calls(on_text: OnText | None) -> Callable[[ToolCallPart], None]:
    """Return what hears of calls: a listener's `called`, else nobody."""
    return on_text.called if isinstance(on_text, Listener) else _ignore


Output: TypeAlias = Literal["native", "tool", "text"]
"""How a wanted shape travels: the provider's JSON-schema output, a tool's arguments, or words in the prompt."""


Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
"""Who speaks: the application, the person, the model, or the tools that answer the model's calls."""

ToolChoice: TypeAlias = Literal["auto", "none", "required"]
"""Whether the model may call a tool, must not, or has to."""

Reason: TypeAlias = Literal[
    "unreachable",  # no connection came about
    "busy",  # too many requests, and waiting did not help
    "failed",  # the provider's own fault: 5xx
    "timeout",  # no answer in time, or a stream that fell silent
    "broke_off",  # the connection, or the stream, ended before the reply did
    "unreadable",  # an answer that is no reply in the provider's protocol
    "empty",  # a reply that says nothing
    "no_quota",  # no quota or credit left
    "key",  # the key is refused
    "not_found",  # no such model, or no such address
    "refused",  # the request is refused
    "declined",  # the model will not, or a content filter stopped it
]
"""What went wrong with a model, in one word: `ModelError.reason`."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the model may call: its name, what it is for, and the JSON Schema of its arguments.

    `strict` asks the provider to enforce the schema, which is done only where every object in it is spelled out.
    `own_name` is the tool's own name, where providers would not take it: a model that writes its calls as text may use
    either.
    """

    name: str
    description: str
    parameters: dict[str, Json]
    strict: bool = False
    own_name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A tool call as it was received: `arguments` is the model's own text, or an object where that came.

    A call that was read out of a reply's text says in `format` how it was written there, in `repairs` what had to be
    mended, and in `problem` why it cannot be made, if it cannot; it has to be answered all the same.
    """

    id: str
    name: str
    arguments: str | dict[str, Any]
    repairs: tuple[str, ...] = ()
    problem: Diagnostic | None = field(default=None, compare=False)
    format: str | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text; the model's own text, faults included, where there is one."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """What the model is told about its call `id` of the tool `name`: the result as text, or what went wrong."""

    id: str
    name: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    An assistant's message may hold text, calls, or both; a message of the role `tool` follows it and holds the results
    of its calls. `kept` is what the provider that wrote the message wants back unchanged with it, such as signatures
    of its thinking: JSON data that means nothing to anybody else.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCallPart, ...] = ()
    tool_results: tuple[ToolResultPart, ...] = ()
    thinking: str = ""
    kept: dict[str, Json] | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """Everything that the message says as one text: its content, its calls, its results."""
        calls = [f"{call.name}({call.arguments_text})" for call in self.tool_calls]
        return "\n".join(
            text for text in (self.content, *calls, *(result.content for result in self.tool_results)) if text
        )


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One inference: the conversation so far and what the reply should look like.

    `schema` is a JSON Schema; only one that describes an object can travel natively or as a tool, any other is stated
    in the prompt. `schema_strict` asks the provider to enforce it, which is done only where every object in it is
    spelled out, because strict modes silently empty objects that are not. With `schema_stated` the messages already
    say what the reply must look like, so nothing is added to them.

    `tools` may be called by the reply as `tool_choice` says. `parallel_tool_calls` False asks for one call at a time;
    it is a wish that servers ignore at times, so a reply may hold several calls all the same. A request has a `schema`
    or `tools`, not both.
    """

    messages: tuple[Message, ...]
    schema: dict[str, Json] | None = None
    schema_name: str = "submit_plan"
    schema_strict: bool = False
    schema_stated: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    purpose: str = "plan"
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True

    @property
    def text(self) -> str:
        """All messages as one text, in order."""
        return "\n\n".join(message.text for message in self.messages)


@dataclass(frozen=True, slots=True)
class Usage:
    """What replies cost. With `estimated`, at least part of the token counts was computed here, not reported."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            estimated=self.estimated or other.estimated,
        )

    def to_dict(self) -> dict[str, Json]:
        """Return the usage as a JSON object."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "estimated": self.estimated,
        }


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, as received.

    `finish_reason` is "stop", "length", "tool_call", "content_filter", "error", or the provider's own word for
    anything else. `output` says how the wanted shape travelled, and `notes` what had to be done differently than
    asked: a level the provider refused, a repeated request, another model that had to answer. `kept`: see `Message`.
    """

    text: str
    tool_calls: tuple[ToolCallPart, ...] = ()
    finish_reason: str | None = None
    usage: Usage = Usage()
    model: str = ""
    thinking: str = ""
    schema_name: str = "submit_plan"
    output: Output = "text"
    notes: tuple[str, ...] = ()
    kept: dict[str, Json] | None = field(default=None, repr=False, compare=False)

    @property
    def message(self) -> Message:
        """The reply as a message of the conversation, for the next request."""
        calls = tuple(replace(call, repairs=(), problem=None) for call in self.tool_calls)
        return Message("assistant", self.text, calls, thinking=self.thinking, kept=self.kept)

    @property
    def is_cut_off(self) -> bool:
        """Whether the reply ended before the model had: at its token budget, by a filter, by an error.

        Such text must never be completed into a call.
        """
        from toolplan.parse.formats.scanner import CUT

        return self.finish_reason == "error" or self.finish_reason in CUT

    @property
    def may_be_cut_off(self) -> bool:
        """Whether the reply was cut off, or ended for a reason that is not known to be its end."""
        return self.finish_reason is not None and self.finish_reason.casefold() not in _ENDED

    @property
    def spoken_text(self) -> str:
        """What `on_text` hears of this reply: its text, then the arguments of each call of the plan tool."""
        return self.text + "".join(call.arguments_text for call in self.tool_calls if call.name == self.schema_name)

    @property
    def plan_text(self) -> str:
        """The text of the plan, wherever it came.

        The arguments of the plan tool when the model called it (of several calls, all, one after the other); else the
        reply's text. A model that called the application's tools themselves instead of writing a plan gets those
        calls read as a plan of them, in order.
        """
        submitted = [call for call in self.tool_calls if call.name == self.schema_name]
        if submitted:
            return "\n\n".join(dict.fromkeys(call.arguments_text for call in submitted))
        if self.tool_calls:
            return json.dumps([_as_step(call) for call in self.tool_calls], ensure_ascii=False, indent=2)
        return self.text


_ENDED = frozenset(
    ("", "stop", "stop_sequence", "end_turn", "eos", "eos_token", "end", "complete", "completed", "finished", "done")
) | {"tool_call", "tool_calls", "tool_use", "function_call", "function_calls"}
"""Reasons, in the words of all providers, that mean that the model had said all it wanted to."""


def _as_step(call: ToolCallPart) -> dict[str, Any]:
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        # Text that is not JSON is kept as it is: the checker then says, at its place, that it is not an object.
        with contextlib.suppress(ValueError):
            arguments = json.loads(arguments or "{}")
    return {"tool_name": call.name, "arguments": arguments}


class Model(Protocol):
    """A language model, hosted, local or scripted."""

    @property
    def name(self) -> str:
        """The model's full name, as in `openai:gpt-5-mini`."""
        ...

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return the model's complete reply to `request`.

        Passes the reply's text to `on_text` piece by piece as it arrives; what `on_text` raises ends the request and
        comes out unchanged. A `Listener` may be told to start over, when the reply is asked for again. Raises
        `ModelError` for everything that went wrong with the model: a reply that broke off is never returned as if it
        were whole. Cancelling the call closes the connection.
        """
        ...


PlanForm: TypeAlias = Literal["full", "small"]
"""Which plans a model is asked for: the whole language, or short plans of calls only."""


def plan_form(model: Model) -> PlanForm:
    """Return the plans to ask a model for: what its attribute `plan_form` says, where it has one, else "full"."""
    return "small" if getattr(model, "plan_form", None) == "small" else "full"


async def close_model(model: Model) -> None:
    """Close what a model holds open, where it has a method `close` for that."""
    close = getattr(model, "close", None)
    if close is not None:
        await close()


_WIDE = late_pattern(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")


def estimate_tokens(*texts: str) -> int:
    """Return roughly how many tokens the texts are, for models that report no usage.

    Counts one token for four characters, and one for each Chinese, Japanese or Korean character. Anything built on it
    must be marked as an estimate.
    """
    tokens = 0
    for text in texts:
        wide = len(_WIDE.findall(text))
        tokens += wide + (len(text) - wide + 3) // 4
    return tokens
