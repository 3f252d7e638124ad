"""The words of one language: every piece of text that a prompt is put together from.

Pieces marked with `{...}` in their comment are `str.format` patterns; all others are sent as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Form", "LoopWords", "Notation", "Wording"]

Notation: TypeAlias = Literal["json", "python"]

Form: TypeAlias = Literal["json", "python", "small"]
"""What a model is asked for: a plan in one of the notations, or a short one of calls only, in JSON."""


@dataclass(frozen=True, slots=True)
class LoopWords:
    """What a model is told in the classic loop: its rules, and what came of calls that gave no result."""

    rules: str
    ask_user: str
    """Describes the tool that asks the person."""
    failed: str
    """Pattern: {error}."""
    unknown: str
    """Pattern: {error}. Nobody knows whether the call took effect."""
    held_back: str
    """Pattern: {tool}. A call that was not made because an earlier one of its turn failed or was refused."""
    refused: str
    """Pattern: {findings}. The check found something."""
    not_allowed: str
    waiting: str
    repeated: str
    """Pattern: {times}."""
    left_open: str
    """The same call was made before, and nobody knows whether it took effect."""
    too_many: str
    """Pattern: {limit}."""
    cut_off: str
    silent: str
    """After a reply without words and calls."""
    left_out: str
    """Pattern: {left}. Added to the rules when the oldest turns had to go."""
    find_tools: str
    """Describes the tool that shows further tools. Pattern: {names}, those that come first."""
    found: str
    """Pattern: {names}."""
    found_none: str
    not_shown: str
    """Pattern: {tool}. The call of a tool that had not been shown."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What one language says. `example_tools` and `example_plans` are kept apart so that tests can run them."""

    rules: Mapping[Form, str]
    """Role, notation, and how to plan well: everything that is the same for all tools and requests."""
    example_tools: Mapping[Form, str]
    """The signatures of the made-up tools of the examples, exactly as `signatures` writes them."""
    example_plans: Mapping[Form, tuple[tuple[str, str], ...]]
    """Pairs of a request and the reply to it."""
    examples_heading: str
    request_label: str
    reply_label: str
    tools_heading: str
    no_tools: str
    rules_heading: str
    """Above the rules that the application adds."""
    situation: str
    """Pattern: {now}, {weekday}."""
    weekdays: tuple[str, ...]
    """Monday first."""
    context_heading: str

    repair: str
    """Pattern: {diagnostics}. The last message of a repair."""
    repair_prose: str
    """Pattern: {diagnostics}. The same for a reply that held no plan, so that there is nothing to quote."""
    other_tools: str
    """Pattern: {names}."""
    more_tools: str
    """Pattern: {left}. Added where even the names of some tools are left out."""

    replan: Mapping[Form, str]
    """Pattern: {first}, the id of the next step. Asks for the rest of a plan, below what has run."""

    answer_rules: str
    results_heading: str
    """Pattern: {mark}, the word that opens and closes the results."""
    request_heading: str
    shortened_items: str
    """Pattern: {left}, {all}."""
    file: str
    """A file in a value, which is not shown: `{kind}` and `{size}` in bytes."""
    file_of_unknown_type: str
    shortened_text: str
    """Pattern: {left}, {all}."""
    shortened_fields: str
    """Pattern: {left}, {all}."""
    left_out: str
    """Stands for a value for which there was no room at all."""

    review_rules: str
    review: str
    """Pattern: {plan}. Asks for objections to a plan that has passed every check."""

    reading_rules: str
    """Pattern: {schema}. For the quarantined reading of a text."""
    data_heading: str
    """Pattern: {mark}."""
    question_heading: str

    loop: LoopWords
    may_loop: Mapping[Form, str]
    """Added to the rules where a loop may follow; a short plan cannot ask for one."""
    earlier_heading: str
    """Pattern: {mark}. Above what went before in a conversation."""
