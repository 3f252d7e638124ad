"""What the command line says to a person, in English and Chinese."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["PURPOSES", "WORDS", "Tongue", "count", "tongue_of"]

Tongue: TypeAlias = Literal["en", "zh"]

PURPOSES: dict[Tongue, dict[str, str]] = {
    "en": {
        "plan": "asking {model} for a plan",
        "repair": "asking {model} to mend the plan",
        "replan": "asking {model} to plan the rest",
        "loop": "asking {model} what to do next",
        "review": "asking {model} to review the plan",
        "answer": "asking {model} to word the answer",
        "ask_model": "asking {model} to read",
    },
    "zh": {
        "plan": "请 {model} 制定计划",
        "repair": "请 {model} 修改计划",
        "replan": "请 {model} 规划其余步骤",
        "loop": "请 {model} 决定下一步",
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
        "replanning": "planning again (no. {number}): {reason}",
        "replanning_step": "planning again (no. {number}), because {step} failed: {reason}",
        "looping": "going on as a loop: {reason}",
        "not_made": "call of `{tool}` not made: {reason}",
        "shown": "more tools shown, because {reason}: {tools}",
        "start": "start",
        "again": "again",
        "early": "early",
        "early_done": "waits for the plan",
        "unused": "void",
        "for_nothing": "made for nothing: {call}",
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
        "each": "e: ask again before each call, with the values that come from earlier steps",
        "show_all": "a: show the long arguments in full",
        "allow_one": "Allow it? [y/N] ",
        "allow_all": "Allow all {count}? [y/N] ",
        "not_approved": "not approved; nothing was run",
        "needs_approval": "nothing was run: {steps} must be approved first",
        "needs_approval_rest": "the rest was not run: {steps} must be approved first",
        "how_to_approve": "run it again in a terminal to be asked, or with `--yes` to allow all of it",
        "needs_answer": "the plan waits for an answer to this question; run it in a terminal to be asked",
        "go_on": "it goes on with `toolplan resume {run}`, after:",
        "interrupted": "interrupted",
        "join": ", ",
    },
    "zh": {
        "tokens": "输入 {input} 个 token，输出 {output} 个，{seconds:.2f} 秒",
        "estimated": "（token 数为估计值）",
        "accepted": "计划通过检查：{steps}",
        "refused": "计划被拒绝（第 {attempt} 次）：",
        "replanning": "重新规划（第 {number} 次）：{reason}",
        "replanning_step": "重新规划（第 {number} 次），因为 {step} 失败：{reason}",
        "looping": "改为逐轮调用：{reason}",
        "not_made": "没有调用 `{tool}`：{reason}",
        "shown": "补充显示工具 {tools}：{reason}",
        "start": "开始",
        "again": "重试",
        "early": "提前",
        "early_done": "等待计划",
        "unused": "作废",
        "for_nothing": "未用到的调用：{call}",
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
        "each": "e：在每次调用之前，带上来自前面步骤的值再问一次",
        "show_all": "a：显示完整的长参数",
        "allow_one": "允许吗？[y/N] ",
        "allow_all": "允许全部 {count} 项吗？[y/N] ",
        "not_approved": "未获批准，没有执行任何操作",
        "needs_approval": "没有执行任何操作：需要先批准 {steps}",
        "needs_approval_rest": "其余操作没有执行：需要先批准 {steps}",
        "how_to_approve": "在终端中运行会询问您；加上 `--yes` 则全部允许",
        "needs_answer": "计划在等待上面这个问题的回答；请在终端中运行",
        "go_on": "先执行以下命令，再用 `toolplan resume {run}` 继续：",
        "interrupted": "已中断",
        "join": "、",
    },
}


def tongue_of(language: Literal["auto", "en", "zh"], text: str) -> Tongue:
    """Return the language to speak: the one that was chosen, or that of the text."""
    from toolplan.prompt import language_of

    return language_of(text) if language == "auto" else language


def count(number: int, what: str, language: Tongue) -> str:
    """Return a number with what is counted (`step`, `problem`, `warning`), in the language."""
    if language == "zh":
        return f"{number} {_MEASURED[what]}"
    return f"{number} {what}" + ("" if number == 1 else "s")


_MEASURED = {"step": "个步骤", "call": "次调用", "problem": "个问题", "warning": "个警告"}
