"""Why the policy says what it says, in the language of its reader. Reasons of your own rules stay as they are."""

from __future__ import annotations

from typing import Literal

__all__ = ["DECLARED", "ELSEWHERE", "MENDED", "NOTHING_ALLOWS_IT", "REFUSED", "REFUSED_BEFORE", "Tongue", "worded"]

Tongue = Literal["en", "zh"]

ELSEWHERE = (
    "the changed arguments name something else that would be changed; during the run its place in the order is taken. "
    "Leave that as it is, or refuse the call"
)
NOTHING_ALLOWS_IT = "no rule allows it"
MENDED = "the text of the plan had to be mended, or leaves open whether it is meant"
REFUSED = "refused"
"""What stands for a rule where a person has refused the very same call before."""
REFUSED_BEFORE = "a person refused this very call before"
DECLARED = 'its tool is declared with approval="{action}"'

_CHINESE = {
    NOTHING_ALLOWS_IT: "没有规则允许它",
    ELSEWHERE: "修改后的参数会改动另一个对象；运行中它的先后次序已经确定。请保持该对象不变，或者拒绝这次调用",
    REFUSED_BEFORE: "之前有人拒绝过完全相同的调用",
    MENDED: "计划的文本经过修补，或者不确定是否真要执行",
    DECLARED: '工具声明了 approval="{action}"',
    "a value in it may have been chosen by other people's text": "其中的值可能是由他人的文字决定的",
    "other people's text was read before, and nothing in the call is from the request": (
        "之前读过他人的文字，而这次调用中没有任何内容来自请求"
    ),
    "a value in it is not in the request": "其中的值在请求中没有出现",
    "it changes something": "它会改动数据",
}
"""By the English words, those of the shipped policies among them."""
_JOIN = {"en": "; ", "zh": "；"}


def worded(reasons: list[str], language: Tongue, action: str = "") -> str:
    """Return reasons as one text, each once."""
    found = [_CHINESE.get(reason, reason) if language == "zh" else reason for reason in reasons if reason]
    text = _JOIN[language].join(dict.fromkeys(found))
    return text.replace("{action}", action) if action else text
