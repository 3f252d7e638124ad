import subprocess
import sys
from pathlib import Path

import pytest

from toolplan.errors import UsageError
from toolplan.models import (
    FallbackModel,
    ProviderModel,
    ScriptedModel,
    model_from_environment,
    model_from_name,
    no_model_message,
)
from toolplan.models.facts import PROVIDERS, find_provider

KEY = "sk-proj-abcDEF123456789"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for facts in PROVIDERS.values():
        for variable in (*facts.key_variables, *facts.base_url_variables):
            monkeypatch.delenv(variable, raising=False)


def target_of(model):
    assert isinstance(model, ProviderModel)
    return model._target


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_can_be_named(name):
    facts = PROVIDERS[name]
    model = model_from_name(f"{name}:{facts.example}", facts.base_url or "http://localhost:1/v1", KEY)
    assert model.name == f"{name}:{facts.example}"
    assert KEY not in repr(model)
    assert KEY not in repr(vars(model))


@pytest.mark.parametrize(
    ("alias", "name"), [("qwen", "dashscope"), ("gemini", "google"), ("Claude", "anthropic"), ("llama.cpp", "llamacpp")]
)
def test_aliases(alias, name):
    assert find_provider(alias) is PROVIDERS[name]


def test_no_two_providers_share_a_name():
    names = [name for facts in PROVIDERS.values() for name in (facts.name, *facts.aliases)]
    assert len(names) == len(set(names))


def test_a_model_may_have_colons_of_its_own():
    target = target_of(model_from_name("ollama:qwen3:8b"))
    assert (target.model, target.base_url, target.api_key) == ("qwen3:8b", "http://localhost:11434/v1", None)


def test_a_bare_name_with_an_address_is_a_compatible_server():
    assert model_from_name("qwen3", "http://localhost:1/v1").name == "compatible:qwen3"


@pytest.mark.parametrize("facts", [facts for facts in PROVIDERS.values() if facts.needs_key], ids=lambda f: f.name)
def test_a_missing_key_says_what_to_set(facts):
    with pytest.raises(UsageError) as caught:
        model_from_name(f"{facts.name}:x")
    for variable in facts.key_variables:
        assert f"`{variable}`" in str(caught.value)
    assert "ollama:qwen3:8b" in str(caught.value)


def test_a_file_may_be_asked_first_and_its_name_may_hold_commas(tmp_path):
    for name in ("replies.jsonl", "a,b: c,qwen"):
        (tmp_path / name).write_text('"hello"\n')
        alone = f"scripted:{tmp_path / name}"
        assert isinstance(model_from_name(alone), ScriptedModel)
        several = model_from_name(f"{alone}, ollama:qwen3:8b,vllm:x")
        assert isinstance(several, FallbackModel)
        assert [type(model) for model in several.models] == [ScriptedModel, ProviderModel, ProviderModel]


def test_keys_come_from_the_providers_own_variables_only(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert target_of(model_from_name("openai:x")).api_key == KEY
    assert target_of(model_from_name("openai:x", api_key="mine")).api_key == "mine"
    for name in ("ollama:x", "vllm:x", "llamacpp:x"):
        assert target_of(model_from_name(name)).api_key is None
    assert target_of(model_from_name("x", "http://localhost:1/v1")).api_key is None
    with pytest.raises(UsageError, match="DEEPSEEK_API_KEY"):
        model_from_name("deepseek:x")


def test_the_second_variable_serves_too(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert target_of(model_from_name("google:x")).api_key == KEY


def test_an_address_makes_a_key_unnecessary(monkeypatch):
    assert target_of(model_from_name("openai:x", "http://localhost:1/v1")).api_key is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:2/v1")
    target = target_of(model_from_name("openai:x"))
    assert (target.base_url, target.api_key) == ("http://localhost:2/v1", None)


@pytest.mark.parametrize(
    ("name", "base_url", "message"),
    [
        ("gpt-5-mini", None, "did you mean `openai:gpt-5-mini`?"),
        ("claude-sonnet-5-5", None, "did you mean `anthropic:claude-sonnet-5-5`?"),
        ("opnai:gpt-5", None, "no provider is named `opnai`; did you mean `openai`?"),
        ("zzz:gpt-5", None, "no provider is named `zzz` (providers: `openai`,"),
        ("openai:", None, "write `openai:gpt-5-mini`"),
        ("anthropic", None, "write `anthropic:claude-sonnet-5-5`"),
        ("", None, "does not say whose model it is"),
        ("compatible:x", None, "needs to know where the server listens"),
        ("qwen3:8b", "http://localhost:1/v1", "write `compatible:qwen3:8b`"),
        ("ollama:x", "localhost:11434", "is not an address; write it as `http://localhost:8080/v1`"),
        ("ollama:x", "ftp://localhost/v1", "is not an address"),
        ("scripted:", None, "as in `scripted:replies.jsonl`"),
    ],
)
def test_names_that_say_too_little_say_what_is_missing(name, base_url, message):
    with pytest.raises(UsageError) as caught:
        model_from_name(name, base_url)
    assert message in str(caught.value)


def test_no_message_shows_a_password():
    with pytest.raises(UsageError) as caught:
        model_from_name("ollama:x", "ftp://me:hunter2@localhost/v1")
    assert "hunter2" not in str(caught.value)


def test_the_environment_names_a_model_only_when_nothing_else_does():
    environment = {"TOOLPLAN_MODEL": "ollama:one", "TOOLPLAN_BASE_URL": "http://localhost:1/v1"}
    target = target_of(model_from_environment(environment=environment))
    assert (target.name, target.base_url) == ("ollama:one", "http://localhost:1/v1")
    target = target_of(model_from_environment(base_url="http://localhost:2/v1", environment=environment))
    assert (target.name, target.base_url) == ("ollama:one", "http://localhost:2/v1")
    # The address belongs to the other model.
    target = target_of(model_from_environment("vllm:two", environment=environment))
    assert (target.name, target.base_url) == ("vllm:two", "http://localhost:8000/v1")
    assert model_from_environment(environment={}) is None
    assert model_from_environment(environment={"TOOLPLAN_MODEL": ""}) is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_a_model_everything_that_can_be_set_is_said(language):
    text = no_model_message(language)
    assert "TOOLPLAN_MODEL" in text
    assert "scripted:" in text
    for facts in PROVIDERS.values():
        if facts.needs_key:
            assert f"--model {facts.name}:{facts.example}" in text
            assert facts.key_variables[0] in text
        elif facts.start:
            assert facts.start in text
            assert facts.base_url in text


def test_a_missing_package_says_what_to_install():
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pydantic_ai': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from toolplan.models import model_from_name\n"
        "try: model_from_name('ollama:x')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("UsageError `ollama:` needs the package `pydantic_ai`, which is not installed")
    assert "pip install 'toolplan[models]'" in done.stdout


def test_importing_and_choosing_import_no_sdk():
    code = (
        "import sys\n"
        "import toolplan.models\n"
        "toolplan.models.model_from_name('ollama:x')\n"
        "toolplan.models.no_model_message()\n"
        "heavy = {'pydantic', 'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'httpx', 'httpx2'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("language", "words"), [("en", "started by toolplan itself"), ("zh", "由 toolplan 自己启动")])
def test_the_message_names_the_model_that_is_started_here(language, words):
    text = no_model_message(language)
    assert "--model local:smollm2" in text
    assert words in text


def test_the_page_about_models_says_what_the_table_of_facts_says():
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "any-model.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `") and line.count("|") == 5]
    for facts in PROVIDERS.values():
        (row,) = [row for row in rows if row.startswith(f"| `{facts.name}` |")]
        habits = row.split("|")[4].strip()
        if facts.name == "compatible":
            assert habits == "all of these"
        else:
            assert habits == (", ".join(quirk.replace("_", " ") for quirk in facts.quirks) or "-")
        if facts.needs_key:
            assert f"`{facts.name}:{facts.example}`" in page
            assert f"`{facts.key_variables[0]}`" in page
