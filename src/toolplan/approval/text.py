"""A card in words, English and Chinese: what a person at a terminal reads.

All that comes from data is shown so that it can be seen for what it is (`visible.py`): a value draws no lines, and what
is left out of it is counted.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from toolplan.policy.reasons import Tongue, worded
from toolplan.visible import in_one_line

if TYPE_CHECKING:
    from toolplan.approval.card import Card, CardCall

__all__ = ["card_text", "shortened"]

LONGEST = 2000
"""Characters of an argument on a card, unless it matters who chose it."""

_WORDS: dict[Tongue, dict[str, str]] = {
    "en": {
        "plan": "This plan asks for your approval before anything runs:",
        "calls": "These calls are about to be made and ask for your approval:",
        "call": "This call is about to be made and asks for your approval:",
        "changes": "changes {what}",
        "anything": "may change anything",
        "nothing": "changes nothing",
        "asks": "asks: {reason}",
        "may": "may ask later: {reason}",
        "deny": "may be refused: {reason}",
        "from": "from {steps}",
        "untrusted": "other people's text: {steps}",
        "unsaid": "not in the request: {words}",
        "condition": "only when: {conditions}",
        "led_by": "decided by other people's text: {steps}",
        "most": "up to {count} times",
        "often": "as often as the loop goes round",
        "same_as": "the same call as {step}: it is made twice",
        "again": "made again, because: {reason}",
        "problem": "THAT ANSWER CANNOT BE TAKEN: {problem}",
        "repairs": "The text of the plan had to be mended, or leaves open whether it is meant:",
        "open": "What stands in braces comes from earlier steps.",
        "more": "… ({count:,} more characters)",
        "join": ", ",
        "then": ", then ",
        "apart": "; ",
    },
    "zh": {
        "plan": "执行之前，这个计划需要您批准以下操作：",
        "calls": "以下调用即将执行，需要您批准：",
        "call": "以下调用即将执行，需要您批准：",
        "changes": "会改动 {what}",
        "anything": "可能改动任何东西",
        "nothing": "不改动任何东西",
        "asks": "需要批准：{reason}",
        "may": "之后可能需要批准：{reason}",
        "deny": "可能被拒绝：{reason}",
        "from": "来自 {steps}",
        "untrusted": "含有他人的文字：{steps}",
        "unsaid": "请求中没有：{words}",
        "condition": "仅当：{conditions}",
        "led_by": "由他人的文字决定：{steps}",
        "most": "最多 {count} 次",
        "often": "次数取决于循环",
        "same_as": "与 {step} 是同样的调用：会执行两次",
        "again": "再次执行，因为：{reason}",
        "problem": "不能这样答复：{problem}",
        "repairs": "计划的文本经过修补，或者不确定是否真要执行：",
        "open": "花括号中的内容来自前面的步骤。",
        "more": "…（还有 {count:,} 个字符）",
        "join": "、",
        "then": "，且 ",
        "apart": "；",
    },
}


def card_text(card: Card, language: Tongue, *, full: bool = False) -> str:
    """Return the card, a paragraph a call. With `full`, every argument in full."""
    words = _WORDS[language]
    head = words["call"] if card.about == "calls" and len(card.lines) == 1 else words[card.about]
    lines = [head, ""]
    for line in card.lines:
        written = {name: card.secrets.clean(value) for name, value in line.arguments.items()}
        if not full:
            written |= {name: shortened(value, language) for name, value in written.items() if name not in line.guarded}
        lines += _call(line, written, words, language)
        if problem := card.problems.get(line.call.step):
            lines.append(f"      {words['problem'].format(problem=worded([problem], language))}")
    if card.about == "plan" and any(
        "{" in line.arguments.get(name, "") for line in card.lines for name in line.origins
    ):
        lines += ["", words["open"]]
    if card.repairs:
        lines += ["", words["repairs"], *(f"  {repair}" for repair in card.repairs)]
    return "\n".join(map(in_one_line, lines))


def shortened(value: str, language: Tongue) -> str:
    """Return what is written for an argument; of a long one its beginning, and how much there is more."""
    if len(value) <= LONGEST:
        return value
    return value[:LONGEST] + _WORDS[language]["more"].format(count=len(value) - LONGEST)


_PLAIN_RESOURCE = re.compile(r"[\w@.:/+*{}-]{1,200}")


def _resource(name: str) -> str:
    """Return a resource, in quotes where what an argument has put into it could be taken for something else."""
    return name if _PLAIN_RESOURCE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _call(line: CardCall, written: dict[str, str], words: dict[str, str], language: Tongue) -> list[str]:
    call = line.call
    changes = line.changes
    if changes is None:
        what = words["anything"]
    else:
        what = (
            words["changes"].format(what=words["join"].join(map(_resource, changes))) if changes else words["nothing"]
        )
    lines = [f"  {call.step}  {call.tool}  [{what}]"]
    for name, value in written.items():
        notes = [words["from"].format(steps=words["join"].join(line.origins[name]))] if name in line.origins else []
        if name in line.untrusted:
            notes.append(words["untrusted"].format(steps=words["join"].join(line.untrusted[name])))
        if name in call.unsaid:
            notes.append(words["unsaid"].format(words=words["join"].join(call.unsaid[name])))
        lines.append(f"      {name}: {value}" + (f"   ({words['apart'].join(notes)})" if notes else ""))
    if call.verdict.asks:
        lines.append(f"      {words['asks'].format(reason=call.reason_in(language))}")
    elif not call.verdict.is_sure:
        kind = "may" if call.verdict.action == "ask" else "deny"
        lines.append(f"      {words[kind].format(reason=call.reason_in(language))}")
    if line.conditions:
        lines.append(f"      {words['condition'].format(conditions=words['then'].join(line.conditions))}")
    if line.led_by:
        lines.append(f"      {words['led_by'].format(steps=words['join'].join(line.led_by))}")
    if line.most is None:
        lines.append(f"      {words['often']}")
    elif line.most > 1:
        lines.append(f"      {words['most'].format(count=line.most)}")
    if line.same_as:
        lines.append(f"      {words['same_as'].format(step=line.same_as)}")
    if call.again:
        lines.append(f"      {words['again'].format(reason=call.again)}")
    return lines
