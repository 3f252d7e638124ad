"""From what happened to words for the user, when neither the plan nor a model gave any.

Everything here is plain text put together from the run's records: no inference, nothing invented.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolplan.expressions import render_text
from toolplan.schedule import StepRecord

__all__ = ["approval_text", "cannot_text", "failure_text", "plain_results", "unsettled_text"]

Tongue = Literal["en", "zh"]

ROOM = 600
"""Characters of one result that are shown here; the whole result stays in `Result.steps`."""

_WORDS = {
    "en": {
        "nothing": "Nothing had to be done.",
        "went_wrong": "Failed: {steps}.",
        "more": " ({count} more steps failed)",
        "cut_short": "Cut short because of it: {steps}.",
        "skipped": "Left out, because a value was missing: {steps}.",
        "approval": "Nothing was run: a person has to allow {steps}.",
        "refused": "Nothing was run: the plan was not approved ({steps}).",
        "approval_rest": "The rest was not run: a person has to allow {steps}.",
        "refused_rest": "The rest was not run: it was not approved ({steps}).",
        "failed": "This did not work: step {step} failed: {error}",
        "failed_plain": "This did not work: {error}",
        "done": "Done before that: {steps}.",
        "nothing_done": "Nothing was changed or sent.",
        "nothing_else": "Nothing else was changed or sent.",
        "not_run": "Not run because of it: {steps}.",
        "unknown": "Nobody knows whether these took effect: {steps}.",
        "unsettled": "Somebody has to find out whether these happened; they had begun when the process ended: {steps}.",
        "cannot": "This cannot be done: {reason}",
        "missing": "Missing: {missing}.",
        "cut": "… ({count} more characters)",
        "join": ", ",
    },
    "zh": {
        "nothing": "没有需要做的事。",
        "went_wrong": "失败：{steps}。",
        "more": "（另有 {count} 个步骤失败）",
        "cut_short": "因此中断：{steps}。",
        "skipped": "因缺少所需的值而略过：{steps}。",
        "approval": "没有执行任何步骤：需要有人批准 {steps}。",
        "refused": "没有执行任何步骤：计划未获批准（{steps}）。",
        "approval_rest": "其余步骤没有执行：需要有人批准 {steps}。",
        "refused_rest": "其余步骤没有执行：未获批准（{steps}）。",
        "failed": "没有完成：步骤 {step} 失败：{error}",
        "failed_plain": "没有完成：{error}",
        "done": "在此之前已完成：{steps}。",
        "nothing_done": "没有改动或发送任何东西。",
        "nothing_else": "没有改动或发送其他任何东西。",
        "not_run": "因此没有执行：{steps}。",
        "unknown": "不知道是否已经生效：{steps}。",
        "unsettled": "进程结束时这些操作已经开始，需要有人查明是否已经生效：{steps}。",
        "cannot": "无法完成：{reason}",
        "missing": "缺少：{missing}。",
        "cut": "……（还有 {count} 个字符）",
        "join": "、",
    },
}


def plain_results(steps: Sequence[StepRecord], language: Tongue) -> str:
    """Return the results of the steps that succeeded, one a line."""
    words = _WORDS[language]
    lines = [f"{step.tool}: {_cut(render_text(step.result), words)}" for step in steps if step.outcome == "succeeded"]
    if failed := [step for step in steps if step.outcome == "failed"]:
        lines.append(words["went_wrong"].format(steps=_names(failed, words)))
    lines += _left_open(steps, words)
    return "\n".join(lines) or words["nothing"]


def failure_text(
    error: str | None, failed_step: str | None, steps: Sequence[StepRecord], changes: frozenset[str], language: Tongue
) -> str:
    """Return what failed, what had happened before and what was therefore not done.

    `changes` are the names of the tools that may change something; only their calls are worth listing as done.
    """
    words = _WORDS[language]
    failed = next((step for step in steps if step.id == failed_step), None)
    if failed_step and failed_step != "answer":
        name = f"{failed_step} ({failed.tool})" if failed else failed_step
        lines = [words["failed"].format(step=name, error=error or "")]
    else:
        lines = [words["failed_plain"].format(error=error or "")]
    done = [step for step in steps if step.outcome == "succeeded" and step.tool in changes]
    unknown = any(step.outcome == "unknown" for step in steps)
    if others := [step for step in steps if step.outcome == "failed" and step.id != failed_step]:
        lines[0] += words["more"].format(count=len(others))
    if done:
        lines.append(words["done"].format(steps=_names(done, words)))
    elif not unknown:
        # A call that failed may have changed something before it did; nobody but the tool could tell.
        tried = any(step.outcome == "failed" and step.tool in changes for step in steps)
        lines.append(words["nothing_else" if tried else "nothing_done"])
    return "\n".join(lines + _left_open(steps, words))


def approval_text(calls: Sequence[tuple[str, str]], language: Tongue, *, refused: bool, rest: bool = False) -> str:
    """Return that nothing was run because of these calls (step and tool), which a person has to allow.

    `rest`: they belong to the rest of a plan, so that something did run before.
    """
    words = _WORDS[language]
    names = words["join"].join(f"{step} ({tool})" for step, tool in calls)
    return words[("refused" if refused else "approval") + ("_rest" if rest else "")].format(steps=names)


def unsettled_text(calls: Sequence[tuple[str, str]], language: Tongue) -> str:
    """Return that a person has to find out whether these calls (step and tool) took effect."""
    words = _WORDS[language]
    return words["unsettled"].format(steps=words["join"].join(f"{step} ({tool})" for step, tool in calls))


def _left_open(steps: Sequence[StepRecord], words: dict[str, str]) -> list[str]:
    """Return a line for each way in which a step did not come to its end."""
    lines: list[str] = []
    for key, outcome in (
        ("unknown", "unknown"),
        ("cut_short", "cancelled"),
        ("skipped", "skipped"),
        ("not_run", "not_run"),
    ):
        if found := [step for step in steps if step.outcome == outcome]:
            lines.append(words[key].format(steps=_names(found, words)))
    return lines


def cannot_text(reason: str, missing: Sequence[str], language: Tongue) -> str:
    """Return why the request cannot be done, and what would be needed."""
    words = _WORDS[language]
    lines = [words["cannot"].format(reason=reason)]
    if missing:
        lines.append(words["missing"].format(missing=words["join"].join(missing)))
    return "\n".join(lines)


def _names(steps: Sequence[StepRecord], words: dict[str, str]) -> str:
    return words["join"].join(f"{step.id} ({step.tool})" for step in steps[:12]) + ("…" if len(steps) > 12 else "")


def _cut(text: str, words: dict[str, str]) -> str:
    return text if len(text) <= ROOM else text[:ROOM] + words["cut"].format(count=len(text) - ROOM)
