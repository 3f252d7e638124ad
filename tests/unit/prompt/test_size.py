"""Token counts: the estimate against a real tokenizer's, and our tool text against JSON Schemas."""

from pathlib import Path

import pytest

from toolplan.prompt import estimate_tokens, measure, plan_messages
from toolplan.tools import ToolSet

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"

COUNTED = {
    "model_replies/tools_travel.txt": 2057,
    "model_replies/tools_workspace.txt": 1943,
    "model_replies/tools_banking.txt": 572,
    "model_replies/system_prompt_python.md": 237,
    "model_replies/system_prompt_zh.md": 449,
    "model_replies/README.md": 866,
    "zh_tasks/signatures.txt": 4749,
    "zh_tasks/README.md": 1224,
    "field_cases/README.md": 1038,
    "complexfuncbench/README.md": 440,
    "agentdojo/tools.json": 7619,
    "tau_bench/tools.json": 4236,
}
"""Tokens of these texts in OpenAI's `o200k_base`, as counted by the package bpe-openai 0.1.4."""


@pytest.mark.parametrize("file", COUNTED)
def test_the_estimate_is_near_what_a_tokenizer_counts(file: str) -> None:
    if not (DATA / file).exists():
        pytest.skip(f"not run: {DATA / file} is absent")
    assert estimate_tokens((DATA / file).read_text(encoding="utf-8")) == pytest.approx(COUNTED[file], rel=0.08)


def test_texts_in_other_scripts_are_not_free() -> None:
    assert estimate_tokens("おはようございます") > 5
    assert estimate_tokens("안녕하세요") > 3
    assert estimate_tokens("") == 0


def greet(name: str, times: int = 1) -> dict[str, int]:
    """Greets somebody.

    Args:
        name: Whom to greet.
        times: How often.
    """
    return {name: times}


def test_parts_and_total_are_counted() -> None:
    tools = ToolSet.of([greet])
    size = measure(tools, "Greet Ann twice.", now="2026-03-18T09:00")
    system, user = plan_messages("Greet Ann twice.", tools, now="2026-03-18T09:00")
    assert size.total == estimate_tokens(system.content) + estimate_tokens(user.content)
    assert 0 < size.tools < size.json_schemas < size.json_schemas_with_results < size.total
    assert size.share < 1
    assert size.counted_with.startswith("estimate")


def test_any_counter_can_be_used() -> None:
    size = measure(ToolSet.of([greet]), "Hi", count=lambda text: len(text.split()), counted_with="words")
    system, user = plan_messages("Hi", ToolSet.of([greet]), now="2026-01-01T00:00")
    assert size.total == len(system.content.split()) + len(user.content.split())
    assert size.counted_with == "words"


def test_without_tools_nothing_is_sent_for_them() -> None:
    size = measure(ToolSet.of([]), "Hi")
    assert (size.tools, size.share) == (0, 1.0)
