"""A tool that is offered under another name may be called by either in text."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Agent, tool
from toolplan.models import FunctionModel, ToolSpec
from toolplan.models.text_tools import tools_of

CALL = '{"name": "发邮件", "arguments": {"收件人": "bob@x.org"}}'


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL.replace('发邮件', 'tool')}</tool_call>",
    ],
)
@pytest.mark.parametrize("streams", [True, False])
def test_the_real_name_and_the_offered_one_mean_the_same_tool(text: str, streams: bool) -> None:
    sent: list[str] = []

    @tool(writes="邮箱:{收件人}", guarded="收件人")
    def 发邮件(收件人: str) -> str:
        sent.append(收件人)
        return "已发"

    def say(request: Any) -> str:
        assert [spec.name for spec in request.tools][:1] == ["tool"]
        return "完成" if any(message.role == "assistant" for message in request.messages) else text

    agent = Agent(FunctionModel(say), [发邮件], mode="loop", language="zh", early_start=streams)
    assert (agent.run_sync("给 bob@x.org 发邮件").outcome, sent) == ("succeeded", ["bob@x.org"])


def test_a_reader_of_calls_knows_both_names() -> None:
    specs = [ToolSpec("tool", "", {"type": "object"}, own_name="发邮件"), ToolSpec("other", "", {"type": "object"})]
    assert sorted(tools_of(specs).names) == ["other", "tool", "发邮件"]
