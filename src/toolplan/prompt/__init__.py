"""The text that a model sees: tools and a request become messages.

`messages.py` puts the messages together; `english.py` and `chinese.py` hold the words (`wording.py` says which there
are); `language.py` chooses between them; `concerned.py` picks the tools that a repair needs; `shorten.py` cuts results
that are too long to show; `size.py` counts what a prompt costs.

The order of a prompt is that of how seldom its parts change: rules and examples (never), the application's own rules
and tools (per application), the situation (per call), the request. So a provider's prompt cache serves most of it.
"""

from toolplan.prompt.concerned import concerned_tools
from toolplan.prompt.language import Language, language_of
from toolplan.prompt.messages import (
    PromptMessage,
    StepReport,
    answer_messages,
    earlier_text,
    plan_messages,
    reading_messages,
    repair_messages,
    replan_messages,
    replan_repair_messages,
    review_messages,
)
from toolplan.prompt.size import PromptSize, estimate_tokens, measure
from toolplan.prompt.turns import loop_rules, loop_words, result_text
from toolplan.prompt.wording import Form, LoopWords, Notation

__all__ = [
    "Form",
    "Language",
    "LoopWords",
    "Notation",
    "PromptMessage",
    "PromptSize",
    "StepReport",
    "answer_messages",
    "concerned_tools",
    "earlier_text",
    "estimate_tokens",
    "language_of",
    "loop_rules",
    "loop_words",
    "measure",
    "plan_messages",
    "reading_messages",
    "repair_messages",
    "replan_messages",
    "replan_repair_messages",
    "result_text",
    "review_messages",
]
