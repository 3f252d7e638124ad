"""What the command line says to a person, in English and Chinese."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["PURPOSES", "WORDS", "Tongue", "count"]

Tongue: TypeAlias = Literal["en", "zh"]

PURPOSES: dict[Tongue, dict[str, str]] = {
    "en": {
        "plan": "asking {model} for a plan",
        "repair": "asking {model} to mend the plan",
        "review": "asking {model} to review the plan",
        "answer": "asking {model} to word the answer",
        "ask_model": "asking {model} to read",
    },
    "zh": {
        "plan": "请 {model} 制定计划",
        "repair": "请 {model} 修改计划",
        "review": "请 {model} 复核计划",
        "answer": "请 {model} 组织答复",
        "ask_model": "请 {model} 阅读",
    },
}

WORDS: dict[Tongue, dict[str, str]] = {
    "en": {
        "tokens": "{input} tokens in, {output} out, {seconds:.2f} s",
        "estimated": " (tokens estimated)",
        "accepted": "plan accepted: {steps}",
        "refused": "plan refused (attempt {attempt}):",
        "start": "start",
        "again": "again",
        "done": "done",
        "failed": "FAIL",
        "unknown": "????",
        "cancelled": "ended",
        "waiting": "waits",
        "note": "note: {text}",
        "more_running": "... and {count} more running",
        "so_far": "{done} done, {running} running",
        "reply": "the reply as it came:",
        "plan": "the plan:",
        "approve": "This plan asks for your approval before anything runs:",
        "open": "What stands in braces comes from earlier steps.",
        "allow_one": "Allow it? [y/N] ",
        "allow_all": "Allow all {count}? [y/N] ",
        "changes": "changes {what}",
        "anything": "may change anything",
        "nothing": "changes nothing",
        "not_approved": "not approved; nothing was run",
        "needs_approval": "nothing was run: {steps} must be approved first",
        "how_to_approve": "run it again in a terminal to be asked, or with `--yes` to allow all of it",
        "needs_answer": "the plan waits for an answer to this question; run it in a terminal to be asked",
        "interrupted": "interrupted",
        "join": ", ",
    },
    "zh": {
        "tokens": "输入 {input} 个 token，输出 {output} 个，{seconds:.2f} 秒",
        "estimated": "（token 数为估计值）",
        "accepted": "计划通过检查：{steps}",
        "refused": "计划被拒绝（第 {attempt} 次）：",
        "start": "开始",
        "again": "重试",
        "done": "完成",
        "failed": "失败",
        "unknown": "不明",
        "cancelled": "中止",
        "waiting": "等待",
        "note": "备注：{text}",
        "more_running": "……另有 {count} 个正在执行",
        "so_far": "已完成 {done} 个，正在执行 {running} 个",
        "reply": "收到的回复：",
        "plan": "计划：",
        "approve": "执行之前，这个计划需要您批准以下操作：",
        "open": "花括号中的内容来自前面的步骤。",
        "allow_one": "允许吗？[y/N] ",
        "allow_all": "允许全部 {count} 项吗？[y/N] ",
        "changes": "会改动 {what}",
        "anything": "可能改动任何东西",
        "nothing": "不改动任何东西",
        "not_approved": "未获批准，没有执行任何操作",
        "needs_approval": "没有执行任何操作：需要先批准 {steps}",
        "how_to_approve": "在终端中运行会询问您；加上 `--yes` 则全部允许",
        "needs_answer": "计划在等待上面这个问题的回答；请在终端中运行",
        "interrupted": "已中断",
        "join": "、",
    },
}


def count(number: int, what: str, language: Tongue) -> str:
    """Return a number with what is counted (`step`, `problem`, `warning`), in the language."""
    if language == "zh":
        return f"{number} {_MEASURED[what]}"
    return f"{number} {what}" + ("" if number == 1 else "s")


_MEASURED = {"step": "个步骤", "call": "次调用", "problem": "个问题", "warning": "个警告"}
