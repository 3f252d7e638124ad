"""What is known about each provider, in one table: how to reach it, and which of its habits need care.

A provider is a row here, never an `if` elsewhere. Whatever speaks OpenAI's chat completions goes through the OpenAI
SDK at that provider's address, so only three protocols exist: `openai`, `anthropic` and `google`.

What the columns about schemas rest on:

- Strict modes fill in `additionalProperties: false` and so empty every object whose fields are not spelled out.
  Anthropic's native output is always strict, so an open schema goes there as a tool. Gemini fills objects without
  properties with nothing in both of its ways, so an open schema is only stated in the prompt.
- DeepSeek and DashScope refuse `response_format: json_schema`; the library's profiles say so, model by model.
- Local servers build a grammar from the schema and accept open objects.
- Gemini reads a subset of OpenAPI's schemas and fails every request over one keyword that it does not know.

Those about calls of tools:

- Every provider has its own rule for ids of calls (`call_ids`); one that is outside of it fails the whole conversation.
- Servers without a parser for their model's calls refuse tools, or pass the calls on as text. The first is noticed and
  the tools told in words, the second read as calls.
- llama.cpp leaves tools out without a word where its model's template has no place for them; it is asked for that
  before (`llama_props`), and the tools told in words.
- `quirks` are habits of replies that differ from OpenAI's own. They are put right for every provider alike, because
  they move between releases; the column says which have been seen where, and a test plays each.

And those about requests:

- Mistral answers 422 to fields it does not know: `max_completion_tokens`, and `stream_options`, without which the
  SDK cannot stream. A refusal to stream is noticed and the request made again without streaming.
- DashScope's thinking models answer only to streamed requests.
- Several local servers accept one system message only, and none of them needs a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

__all__ = ["LOCAL", "PROVIDERS", "ProviderFacts", "Quirk", "find_provider"]

Quirk: TypeAlias = Literal[
    "arguments_as_object",  # a call's arguments come as an object, not as text
    "arguments_twice",  # a stream's last piece repeats all arguments
    "content_in_parts",  # text comes as a list of parts
    "empty_id_and_name",  # later pieces of a call have an empty id and an empty name
    "error_in_stream",  # an error comes as an event of a stream that began well
    "function_call",  # a call comes in the field that came before `tool_calls`
    "keep_alives",  # comments, and chunks without choices, while the model is busy
    "name_in_each_piece",  # every piece of a call repeats the tool's name
    "new_id_in_each_piece",  # every piece of a call has another id
    "no_id",  # calls have no ids
    "no_index",  # pieces of calls have no index
    "no_usage",  # usage is not reported
    "reasoning",  # thinking comes in `reasoning`
    "reasoning_content",  # thinking comes in `reasoning_content`
    "same_id",  # all calls have the same id
    "same_index",  # all calls have the same index
    "stop_with_calls",  # the reason for ending is `stop` although there are calls
    "text_calls",  # the call comes as text in the model's own notation
    "usage_in_each_chunk",  # every chunk has a running total
    "usage_with_choices",  # the last chunk has both a choice and the usage
    "whole_calls",  # a call comes in one piece
]
"""A habit of replies that differs from OpenAI's own."""

_ALL_CHAT_QUIRKS: tuple[Quirk, ...] = get_args(Quirk)

# What an OpenAI-compatible server of unknown make is not asked for: only what the original protocol had is.
_ADDED_LATER = (
    "openai_chat_supports_max_completion_tokens",
    "openai_chat_supports_multiple_system_messages",
    "openai_chat_supports_allowed_tools",
    "openai_supports_strict_tool_definition",
)


@dataclass(frozen=True, slots=True)
class ProviderFacts:
    """One provider.

    `profile_of` names the library's provider class, `module:Class`, whose model profiles apply, less the flags in
    `lacks`. `key_variables` and `base_url_variables` are environment variables, first found first used; an empty
    `base_url` means that the user has to give one. `open_schema` is the best way for a schema with objects whose
    fields are not spelled out; `schema_dialect` what schemas are written in. `tools` says whether tools are offered
    natively (with `tells_template`, only where the server's template has a place for them, which it tells), where
    `call_ids` is the pattern for ids of calls, and `validates_calls` that arguments are held to their
    schemas without asking. `start` is the command that starts a local server.
    """

    name: str
    protocol: Literal["openai", "anthropic", "google"]
    profile_of: str
    example: str
    base_url: str = ""
    aliases: tuple[str, ...] = ()
    key_variables: tuple[str, ...] = ()
    base_url_variables: tuple[str, ...] = ()
    needs_key: bool = True
    open_schema: Literal["native", "tool", "text"] = "native"
    native_is_strict: bool = False
    schema_dialect: Literal["json_schema", "openapi"] = "json_schema"
    tools: Literal["native", "text"] = "native"
    tells_template: bool = False
    call_ids: str = r"[\x21-\x7e]{1,40}"
    validates_calls: bool = False
    quirks: tuple[Quirk, ...] = ()
    always_streams: bool = False
    lacks: tuple[str, ...] = ()
    start: str = ""
    key_note: str = ""


_ALL = (
    ProviderFacts(
        name="openai",
        protocol="openai",
        profile_of="openai:OpenAIProvider",
        example="gpt-5-mini",
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        base_url_variables=("OPENAI_BASE_URL",),
    ),
    ProviderFacts(
        name="anthropic",
        protocol="anthropic",
        profile_of="anthropic:AnthropicProvider",
        example="claude-sonnet-5-5",
        base_url="https://api.anthropic.com",
        aliases=("claude",),
        key_variables=("ANTHROPIC_API_KEY",),
        base_url_variables=("ANTHROPIC_BASE_URL",),
        open_schema="tool",
        native_is_strict=True,
        call_ids=r"[a-zA-Z0-9_-]{1,64}",
        quirks=("keep_alives",),
    ),
    ProviderFacts(
        name="google",
        protocol="google",
        profile_of="google:GoogleProvider",
        example="gemini-3.8-flash",
        base_url="https://generativelanguage.googleapis.com",
        aliases=("gemini",),
        key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        base_url_variables=("GOOGLE_GEMINI_BASE_URL",),
        open_schema="text",
        schema_dialect="openapi",
        call_ids=r"[\x21-\x7e]{1,64}",
        validates_calls=True,
        quirks=("arguments_as_object", "no_id", "stop_with_calls", "usage_in_each_chunk", "whole_calls"),
    ),
    ProviderFacts(
        name="deepseek",
        protocol="openai",
        profile_of="deepseek:DeepSeekProvider",
        example="deepseek-v4-pro",
        base_url="https://api.deepseek.com",
        key_variables=("DEEPSEEK_API_KEY",),
        quirks=("keep_alives", "reasoning_content", "usage_with_choices"),
    ),
    ProviderFacts(
        name="dashscope",
        protocol="openai",
        profile_of="alibaba:AlibabaProvider",
        example="qwen-plus",
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        aliases=("qwen", "alibaba"),
        key_variables=("DASHSCOPE_API_KEY", "ALIBABA_API_KEY"),
        base_url_variables=("DASHSCOPE_BASE_URL",),
        always_streams=True,
        lacks=("openai_chat_supports_max_completion_tokens",),
        key_note=(
            "a key of the international site needs the base URL https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
        ),
        quirks=("empty_id_and_name", "reasoning_content"),
    ),
    ProviderFacts(
        name="mistral",
        protocol="openai",
        profile_of="openai:OpenAIProvider",
        example="mistral-large-latest",
        base_url="https://api.mistral.ai/v1",
        key_variables=("MISTRAL_API_KEY",),
        lacks=_ADDED_LATER,
        call_ids=r"[a-zA-Z0-9]{9}",
        quirks=("content_in_parts", "usage_with_choices", "whole_calls"),
    ),
    ProviderFacts(
        name="groq",
        protocol="openai",
        profile_of="openai:OpenAIProvider",
        example="openai/gpt-oss-120b",
        base_url="https://api.groq.com/openai/v1",
        key_variables=("GROQ_API_KEY",),
        lacks=("openai_chat_supports_allowed_tools",),
        quirks=("reasoning", "whole_calls"),
    ),
    ProviderFacts(
        name="openrouter",
        protocol="openai",
        profile_of="openrouter:OpenRouterProvider",
        example="qwen/qwen3-235b-a22b",
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        quirks=("error_in_stream", "keep_alives", "reasoning"),
    ),
    ProviderFacts(
        name="ollama",
        protocol="openai",
        profile_of="ollama:OllamaProvider",
        example="qwen3:8b",
        base_url="http://localhost:11434/v1",
        key_variables=("OLLAMA_API_KEY",),
        base_url_variables=("OLLAMA_BASE_URL",),
        needs_key=False,
        lacks=_ADDED_LATER,
        start="ollama serve",
        quirks=("no_usage", "reasoning", "same_index", "stop_with_calls", "whole_calls"),
    ),
    ProviderFacts(
        name="vllm",
        protocol="openai",
        profile_of="vllm:VLLMProvider",
        example="Qwen/Qwen3-8B",
        base_url="http://localhost:8000/v1",
        key_variables=("VLLM_API_KEY",),
        base_url_variables=("VLLM_BASE_URL",),
        needs_key=False,
        lacks=_ADDED_LATER,
        start="vllm serve MODEL",
        quirks=(
            *("arguments_twice", "new_id_in_each_piece", "reasoning_content"),
            *("stop_with_calls", "text_calls", "usage_in_each_chunk"),
        ),
    ),
    ProviderFacts(
        name="llamacpp",
        protocol="openai",
        profile_of="openai:OpenAIProvider",
        example="qwen3",
        base_url="http://localhost:8080/v1",
        aliases=("llama.cpp", "llama-cpp"),
        key_variables=("LLAMA_API_KEY",),
        base_url_variables=("LLAMACPP_BASE_URL",),
        needs_key=False,
        lacks=_ADDED_LATER,
        start="llama-server -m MODEL.gguf --jinja",
        tells_template=True,
        quirks=("keep_alives", "no_id", "reasoning_content", "text_calls"),
    ),
    ProviderFacts(
        name="compatible",
        protocol="openai",
        profile_of="openai:OpenAIProvider",
        example="qwen3",
        aliases=("openai-compatible",),
        key_variables=("COMPATIBLE_API_KEY",),
        base_url_variables=("COMPATIBLE_BASE_URL",),
        needs_key=False,
        lacks=_ADDED_LATER,
        quirks=_ALL_CHAT_QUIRKS,
    ),
)

LOCAL = ProviderFacts(
    name="local",
    protocol="openai",
    profile_of="openai:OpenAIProvider",
    example="smollm2",
    needs_key=False,
    lacks=_ADDED_LATER,
    tells_template=True,
    quirks=("keep_alives", "no_id", "reasoning_content", "text_calls"),
)
"""llama.cpp in a child process of this program (`local`): like `llamacpp`, with an address and a key of its own."""

PROVIDERS: Mapping[str, ProviderFacts] = MappingProxyType({facts.name: facts for facts in _ALL})
"""Every provider by its name."""

_BY_ANY_NAME = {name: facts for facts in _ALL for name in (facts.name, *facts.aliases)}


def find_provider(name: str) -> ProviderFacts | None:
    """Return the provider known by `name` or an alias of it, in any case."""
    return _BY_ANY_NAME.get(name.lower())
