"""What the demos say around what happens, in English and Chinese."""

from __future__ import annotations

from toolplan.demo.scenarios import CALL_SECONDS, Tongue

__all__ = ["MIXED", "WORDS"]

MIXED = "Some of these speak Chinese; `--language en` runs all of them in English, `--language zh` in Chinese."

WORDS: dict[Tongue, dict[str, str]] = {
    "en": {
        "what_is_real": "The model's replies in these demos are recordings. The prompt, the parser, the\n"
        "checks, the run, the tools and what they change are real. The weather is\n"
        f"typical for the day, not a forecast; looking it up takes {CALL_SECONDS:g} s, as if it came\n"
        "from a remote service.",
        "request": "request: {text}",
        "recorded": "reply:   recorded, in {file}",
        "answer": "answer:",
        "mail": "in the outbox: a mail to {to}, subject “{subject}”",
        "unchanged": "in the calendar: the same {count} events as before",
        "changed": "in the calendar: {count} events, not those from before",
        "inference": "{count} inference",
        "inferences": "{count} inferences",
        "call": "{count} call",
        "calls": "{count} calls",
        "no_call": "{inferences}, no call",
        "cost": "{inferences}, {calls} in {together:.2f} s",
        "cost_saved": "{inferences}, {calls} in {together:.2f} s; one by one they would have taken {alone:.2f} s",
        "unexpected": "THIS IS NOT HOW IT SHOULD HAVE ENDED; expected: {outcome}, mails: {mails}",
        "score": "{good} of {count} demos ended as they should.",
        "folder": "What they really wrote, mails and calendars, is in {folder}",
        "next": 'Next, with your own tools and model: toolplan ask "..." --tools tools.py --model PROVIDER:NAME',
    },
    "zh": {
        "what_is_real": "以下演示中，模型的回复是事先录制的；提示词、解析、检查、执行、工具及其改动\n"
        f"都是真实的。天气取当天的典型值，不是预报；每次查询耗时 {CALL_SECONDS:g} 秒，如同远程服务。",
        "request": "请求：{text}",
        "recorded": "回复：录制，见 {file}",
        "answer": "答复：",
        "mail": "发件箱中：给 {to} 的邮件，主题“{subject}”",
        "unchanged": "日历中：仍是原来的 {count} 个日程",
        "changed": "日历中：{count} 个日程，与原来不同",
        "inference": "{count} 次推理",
        "inferences": "{count} 次推理",
        "call": "{count} 次调用",
        "calls": "{count} 次调用",
        "no_call": "{inferences}，没有调用工具",
        "cost": "{inferences}，{calls}，用时 {together:.2f} 秒",
        "cost_saved": "{inferences}，{calls}，用时 {together:.2f} 秒；逐个进行需要 {alone:.2f} 秒",
        "unexpected": "结果不符合预期；应为：{outcome}，邮件数：{mails}",
        "score": "{count} 个演示中有 {good} 个符合预期。",
        "folder": "真实写入的邮件和日历在 {folder}",
        "next": '接下来用自己的工具和模型：toolplan ask "……" --tools tools.py --model 服务商:模型名',
    },
}
