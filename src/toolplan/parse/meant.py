"""Whether a plan or a call that stands in prose is meant to run, or only spoken of.

The words around it tell. There are three verdicts, and the one in the middle is why the first one is safe:

    meant       nothing is around it, or nothing but words that announce and close it, all of which are recognised
    spoken of   the words refuse it, ask for permission, quote it or give it as an example: it is text
    unclear     any other words: it is taken, and says so in `repairs`, so that its effects ask a person

Refusals are recognised by the last words before the plan only, because a longer text may ask and refuse many things on
its way. For the verdict `meant` every sentence counts (see `announcing`).
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from toolplan.parse.announcing import Matter, announces, closes
from toolplan.patterns import late_pattern

__all__ = ["UNCLEAR", "Meaning", "asks_or_refuses", "how_meant", "is_meant", "last_clause", "refuses"]

Meaning: TypeAlias = Literal["meant", "unclear", "spoken of"]

UNCLEAR = "took it as meant to run, although the words around it leave that open"
"""The repair of a plan or call whose verdict is `unclear`."""
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
_BEHIND = late_pattern(f"{_REFUSALS}|{_REQUESTS}", re.IGNORECASE)
_BEFORE = late_pattern(
    _REFUSALS
    + r"|\bwould\b|\bcould (?:write|do|be|look|run|call)\b|\b(?:for|an|as) example\b|\bfor instance\b|\be\.g\."
    r"|\b(?:says?|said|wrote)\b|(?<!user )\bwants\b"
    r"|\b(?:do not|don['’]t|never)\b(?=\s+(?:run|do|write|call|make|execute))"
    r"|例如|比如|示例|举例|假如|写着|说[:：]",
    re.IGNORECASE,
)
_END = " \t\r\n:：*_"
_QUESTION = re.compile(r"[?？]")
_CLAUSE = late_pattern(r"[.!;。！；\n]+(?=\s|$)|[。！；\n]|,?\s(?:so|therefore|thus)\b|，?(?:所以|因此)")


def how_meant(before: str, behind: str, matter: Matter) -> Meaning:
    """Return the verdict on a plan between these texts of a reply, without thinking and fences.

    `matter` is what the plan is about: its own text, its tools, the request.
    """
    if not is_meant(before, behind):
        return "spoken of"
    return "meant" if announces(before, matter) and closes(behind, matter) else "unclear"


def is_meant(before: str, behind: str) -> bool:
    """Return whether the texts around a plan do not refuse or quote it in words that are recognised."""
    if _is_in_comment(before) or _is_quoted_line(before):
        return False
    if _QUESTION.search(before, max(0, len(before.rstrip(_END)) - MAX_LEAD_IN)):
        return False
    return not refuses(before) and not asks_or_refuses(behind)


def refuses(before: str) -> bool:
    """Return whether the last words before a plan say that it is not to be run, that it is quoted or an example."""
    return _BEFORE.search(last_clause(before.rstrip(_END))) is not None


def asks_or_refuses(behind: str) -> bool:
    """Return whether the words behind a plan ask for leave to run it, or say that it is not to be run."""
    return _BEHIND.search(behind) is not None


def last_clause(text: str) -> str:
    """Return the last clause of a text: what stands behind its last full stop or `so`."""
    text = text[-2 * MAX_LEAD_IN :]
    clauses = [clause for clause in _CLAUSE.split(text) if clause.strip()]
    return clauses[-1] if clauses else ""


def _is_in_comment(before: str) -> bool:
    start = before.rfind("<!--")
    return start >= 0 and before.find("-->", start) < 0


def _is_quoted_line(before: str) -> bool:
    return before.rpartition("\n")[2].lstrip().startswith(">")
