"""From a name to a model: `openai:gpt-5-mini`, `ollama:qwen3:8b`, `local:smollm2`, `scripted:replies.jsonl`.

Several names with commas between them are asked in turn until one answers. A name is a provider and a model with a
colon between them; what follows the first colon is the model's own name, colons included. Keys come from the
environment or from the caller, and only the provider's own variables are read: the key of one provider is never sent
to another.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import urlsplit

from toolplan.errors import UsageError
from toolplan.models.base import Model, Output, Reason
from toolplan.models.facts import PROVIDERS, ProviderFacts, find_provider
from toolplan.models.fallback import MOVES_ON, FallbackModel
from toolplan.models.retry import Retry

__all__ = ["fallback", "model_from", "model_from_environment", "model_from_name", "no_model_message"]

MODEL_VARIABLE = "TOOLPLAN_MODEL"
BASE_URL_VARIABLE = "TOOLPLAN_BASE_URL"


def model_from_name(
    name: str,
    base_url: str | None = None,
    api_key: str | None = None,
    *,
    output: Output | Literal["auto"] = "auto",
    stream: bool | None = None,
    retry: Retry | None = None,
    timeout_seconds: float = 600.0,
    stall_seconds: float = 180.0,
) -> Model:
    """Return the model called `name`, ready to be asked. Nothing is imported or contacted yet.

    `base_url` is where an OpenAI-compatible server, a proxy or a local server listens; a bare model name together
    with a `base_url` means such a server. Without `api_key` the provider's own environment variables are read. The
    other options are those of `ProviderModel`. Raises `UsageError` that says exactly what to set for an unknown
    provider, a missing key or address, and a missing package.
    """
    options: dict[str, Any] = {
        "output": output,
        "stream": stream,
        "retry": retry,
        "timeout_seconds": timeout_seconds,
        "stall_seconds": stall_seconds,
    }
    names = _names(name)
    if len(names) > 1:
        if base_url or api_key:
            raise UsageError(f"a base URL or key belongs to one model, and `{name}` names {len(names)}")
        return FallbackModel([model_from_name(each, **options) for each in names])
    provider, colon, model = name.strip().partition(":")
    if provider.lower() == "local":
        return _local(model, base_url, **options)
    if provider.lower() == "scripted":
        if not model:
            raise UsageError("`scripted:` needs the file with the replies, as in `scripted:replies.jsonl`")
        from toolplan.models.scripted import ScriptedModel

        return ScriptedModel(model)
    if not colon and base_url:
        provider, model = "compatible", provider
    facts = find_provider(provider)
    if facts is None or not model:
        raise UsageError(_unknown(name, facts, base_url))
    from toolplan.models.failures import Target
    from toolplan.models.providers import ProviderModel  # 10 ms to import

    target = Target(facts, model, _address(facts, base_url), _key(facts, api_key, base_url))
    _check_installed(facts)
    return ProviderModel(target, **options)


def _names(name: str) -> list[str]:
    """Return the names that have commas between them. A file's name may hold commas, and ends where a provider does."""
    names: list[str] = []
    for each in name.split(","):
        provider, colon, _ = each.strip().lower().partition(":")
        is_new = bool(colon) and (provider in _WITH_FILES or find_provider(provider) is not None)
        if names and not is_new and names[-1].lower().partition(":")[0] in _WITH_FILES:
            names[-1] += f",{each}"
        else:
            names.append(each.strip())
    return names


_WITH_FILES = ("local", "scripted")
"""What stands before the name of a file."""


def _local(model: str, base_url: str | None, **options: Any) -> Model:
    from toolplan.models.local import LOCAL_MODELS, LocalModel

    if base_url:
        raise UsageError("`local:` starts a server of its own; for one that runs already write `llamacpp:NAME`")
    if not model:
        raise UsageError(f"`local:` needs a model file, as in `local:model.gguf`, or one of {', '.join(LOCAL_MODELS)}")
    return LocalModel(model, **options)


def fallback(*models: str | Model, on: Collection[Reason] = MOVES_ON, rest_seconds: float = 30.0) -> FallbackModel:
    """Return the models, given or by name, as one: `fallback("openai:gpt-5-mini", "anthropic:claude-haiku-4-5")`.

    See `FallbackModel` for what becomes of a failure.
    """
    chosen = [model_from_name(model) if isinstance(model, str) else model for model in models]
    return FallbackModel(chosen, on=on, rest_seconds=rest_seconds)


def model_from(
    model: str | Model | Sequence[str | Model], base_url: str | None = None, api_key: str | None = None
) -> Model:
    """Return the model that is meant: one by name, one given, or several of either, asked in turn until one answers."""
    if isinstance(model, str):
        return model_from_name(model, base_url, api_key)
    if not isinstance(model, Sequence):
        return model
    if len(model) > 1 and (base_url or api_key):
        raise UsageError(f"a base URL or key belongs to one model, and there are {len(model)}")
    if len(model) == 1:
        return model_from(model[0], base_url, api_key)
    return fallback(*model)


def model_from_environment(
    name: str | Sequence[str] | None = None, base_url: str | None = None, *, environment: Mapping[str, str] = os.environ
) -> Model | None:
    """Return the model that a command line or the environment names, or None when neither does.

    For programs' own command lines only: what is not given is taken from `TOOLPLAN_MODEL` and `TOOLPLAN_BASE_URL`.
    An address in the environment goes with the model in the environment, not with one given by name. Of several names
    the models are asked in turn until one answers.
    """
    if name is None:
        name = environment.get(MODEL_VARIABLE) or None
        base_url = base_url or environment.get(BASE_URL_VARIABLE) or None
    return model_from(name, base_url) if name else None


def no_model_message(language: Literal["en", "zh"] = "en") -> str:
    """Return what to tell somebody who has not said which model to ask: what to set, hosted and local."""
    words = _NO_MODEL[language]
    hosted = [
        (f"--model {facts.name}:{facts.example}", words["key"].format(facts.key_variables[0]))
        for facts in PROVIDERS.values()
        if facts.needs_key
    ]
    local = [
        (f"--model {facts.name}:{facts.example}", words["server"].format(facts.start, facts.base_url))
        for facts in PROVIDERS.values()
        if facts.start
    ]
    local.append(("--model local:smollm2, --model local:FILE.gguf", words["here"]))
    other = [
        ("--model NAME --base-url http://HOST:PORT/v1", words["compatible"]),
        ("--model scripted:replies.jsonl", words["scripted"]),
    ]
    sections = [(words["hosted"], hosted), (words["local"], local), (words["other"], other)]
    lines = [words["missing"]]
    for title, rows in sections:
        width = max(len(option) for option, _ in rows)
        lines += ["", title, *(f"    {option:<{width}}  {note}" for option, note in rows)]
    return "\n".join(lines)


_NO_MODEL = {
    "en": {
        "missing": (
            f"no model is configured: pass `--model PROVIDER:NAME`, or set {MODEL_VARIABLE}"
            f" (and {BASE_URL_VARIABLE}, for a server at an address of its own)"
        ),
        "hosted": "hosted models, with a key in the environment:",
        "key": "with {}=... set",
        "local": "models on your own machine, without a key:",
        "server": "after `{}`; looked for at {} unless --base-url says otherwise",
        "here": "started by toolplan itself; needs `pip install 'toolplan[local]'`",
        "other": "anything else:",
        "compatible": "any server that speaks OpenAI's chat completions",
        "scripted": "replies from a file; `toolplan demo` needs not even that",
    },
    "zh": {
        "missing": (
            f"还没有指定模型：请使用 `--model 服务商:模型名`，或设置 {MODEL_VARIABLE}"
            f"（自定义地址的服务还需设置 {BASE_URL_VARIABLE}）"
        ),
        "hosted": "云端模型，密钥放在环境变量中：",
        "key": "需要设置 {}=...",
        "local": "本机模型，不需要密钥：",
        "server": "先运行 `{}`；默认地址 {}，可用 --base-url 更改",
        "here": "由 toolplan 自己启动；需要 `pip install 'toolplan[local]'`",
        "other": "其他：",
        "compatible": "任何兼容 OpenAI chat completions 的服务",
        "scripted": "从文件中读取回复；`toolplan demo` 连文件也不需要",
    },
}

LOCAL_ALTERNATIVE = "a model on your own machine needs no key, as in `ollama:qwen3:8b`"


def _address(facts: ProviderFacts, base_url: str | None) -> str:
    address = base_url or _first(facts.base_url_variables) or facts.base_url
    if not address:
        raise UsageError(
            f"`{facts.name}:` needs to know where the server listens; pass its base URL,"
            " as in `--base-url http://localhost:8080/v1`"
        )
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        from toolplan.models.failures import without_password

        raise UsageError(
            f"the base URL `{without_password(address)}` is not an address; write it as `http://localhost:8080/v1`"
        )
    return address


def _key(facts: ProviderFacts, api_key: str | None, base_url: str | None) -> str | None:
    key = (api_key or _first(facts.key_variables) or "").strip()
    if key:
        return key
    elsewhere = base_url or _first(facts.base_url_variables)
    if facts.needs_key and not elsewhere:
        names = " or ".join(f"`{variable}`" for variable in facts.key_variables)
        raise UsageError(
            f"`{facts.name}:` needs a key; set the environment variable {names}, or pass `api_key`."
            f" Alternatively, {LOCAL_ALTERNATIVE}"
        )
    return None


def _first(variables: tuple[str, ...]) -> str | None:
    return next((value for variable in variables if (value := os.environ.get(variable))), None)


def _unknown(name: str, facts: ProviderFacts | None, base_url: str | None) -> str:
    provider, colon, _ = name.partition(":")
    if facts is not None:
        return f"`{name}` names no model; write `{facts.name}:{facts.example}`"
    known = ", ".join(f"`{each}`" for each in (*PROVIDERS, "local", "scripted"))
    if not colon:
        maker = next((make for prefix, make in _MAKERS.items() if name.lower().startswith(prefix)), None)
        hint = f"did you mean `{maker}:{name}`?" if maker else "write `PROVIDER:NAME`, as in `openai:gpt-5-mini`"
        return f"`{name}` does not say whose model it is; {hint} (providers: {known})"
    if base_url:
        return f"no provider is named `{provider}`; for a model with a colon in its name write `compatible:{name}`"
    from difflib import get_close_matches

    close = get_close_matches(provider.lower(), [*PROVIDERS, "local", "scripted", "qwen", "gemini"], n=1)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    return f"no provider is named `{provider}`{hint} (providers: {known})"


_MAKERS = {
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "deepseek": "deepseek",
    "qwen": "dashscope",
    "mistral": "mistral",
}


def _check_installed(facts: ProviderFacts) -> None:
    for module in ("pydantic_ai", _SDKS[facts.protocol]):
        try:
            found = find_spec(module) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            raise UsageError(
                f"`{facts.name}:` needs the package `{module}`, which is not installed;"
                " run `pip install 'toolplan[models]'`"
            )


_SDKS = {"openai": "openai", "anthropic": "anthropic", "google": "google.genai"}
