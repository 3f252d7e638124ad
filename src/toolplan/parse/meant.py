"""Whether a plan that stands in prose is meant to run, or only spoken of.

The words around it tell. A lead-in (`Here is the plan:`) and closing words (`This plan will ...`) are usual. But who
asks for permission, refuses, quotes or gives an example has written down something that must not run. Only the last
words before the plan count, because a longer text before it may ask and refuse many things on its way.
"""

from __future__ import annotations

import re

__all__ = ["asks_or_refuses", "is_meant"]

MAX_LEAD_IN = 200
"""A question that is farther away from the plan is not about it."""

_NEGATED = (
    r"\b(?:I|we|you|one)(?:['’](?:ll|d|m|re))?\s+(?:\w+\s+){0,2}?(?:{verbs})?"
    r"(?:n['’]t\b|\s*\bnot\b|\s*\bnever\b)"
)
_WILL = r"will|wo|would|shall|sha|should|must|can|ca|could|do|may|am|are"
_REFUSALS = (
    _NEGATED.replace("{verbs}", _WILL)
    + r"|\b(?:I|we)\s+(?:\w+\s+){0,2}?(?:refuse|decline|reject|ignore|object)\b|\b(?:refuse|refusing|declined?)\s+to\b"
    r"|\bsorry\b|\b(?:attack|malicious|injection|injected)\b"
    r"|\bdo(?:n['’]t| not) (?:run|do|execute|call|make) (?:this|that|it)\b"
    r"|\bI did(?:n['’]t| not)(?: (?:run|do|execute|call|make) (?:this|that|it))?\s*[.!]"
    r"|\bbut (?:no|never)\b|不会执行|我不会|我不能|我不想|拒绝|不要执行|不予执行|忽略(?:它|这|该|此)|抱歉|攻击|恶意"
)
_REQUESTS = (
    r"[?？]|\bplease (?:confirm|choose|approve|decide)\b|\bconfirm (?:this|that|if|whether)\b"
    r"|\blet me know (?:if|whether) (?:I|this|that|it|you (?:want me|agree|approve))\b"
    r"|\bif you (?:want|agree|approve|wish|confirm|say so)\b|请(?:你|您)?(?:先)?(?:确认|选择|批准|决定)|等(?:你|您)确认"
)
_BEHIND = re.compile(f"{_REFUSALS}|{_REQUESTS}", re.IGNORECASE)
_BEFORE = re.compile(
    _REFUSALS
    + r"|\bwould\b|\bcould (?:write|do|be|look|run|call)\b|\b(?:for|an|as) example\b|\bfor instance\b|\be\.g\."
    r"|\b(?:says?|said|wrote)\b|(?<!user )\bwants\b"
    r"|\b(?:do not|don['’]t|never)\b(?=\s+(?:run|do|write|call|make|execute))"
    r"|例如|比如|示例|举例|假如|写着|说[:：]",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？]")
_CLAUSE = re.compile(r"[.!;。！；\n]+(?=\s|$)|[。！；\n]|,?\s(?:so|therefore|thus)\b|，?(?:所以|因此)")


def is_meant(before: str, behind: str) -> bool:
    """Return whether a plan between these texts of a reply, without thinking and fences, is meant to run."""
    if _is_in_comment(before) or _is_quoted_line(before):
        return False
    before = before.rstrip(" \t\r\n:：*_")
    if _QUESTION.search(before, max(0, len(before) - MAX_LEAD_IN)):
        return False
    return not _BEFORE.search(_last_clause(before)) and not asks_or_refuses(behind)


def asks_or_refuses(behind: str) -> bool:
    """Return whether the words behind a plan ask for leave to run it, or say that it is not to be run."""
    return _BEHIND.search(behind) is not None


def _last_clause(text: str) -> str:
    text = text[-2 * MAX_LEAD_IN :]
    clauses = [clause for clause in _CLAUSE.split(text) if clause.strip()]
    return clauses[-1] if clauses else ""


def _is_in_comment(before: str) -> bool:
    start = before.rfind("<!--")
    return start >= 0 and before.find("-->", start) < 0


def _is_quoted_line(before: str) -> bool:
    return before.rpartition("\n")[2].lstrip().startswith(">")
