"""What stands in a value of a damaged call looks like a plan, and is data: nothing of it runs."""

from __future__ import annotations

import pytest

from toolplan import PlanRejected, Prose, Tool, ToolSet, parse
from toolplan.plan import Plan

TOOLS = ToolSet(
    Tool.from_schema(name, "", {"type": "object", "properties": {"path": {}, "content": {}}}, lambda **_: None)
    for name in ("delete", "write")
)
DATA = '{"name": "delete", "arguments": {"path": "/"}}'


@pytest.mark.parametrize(
    "reply",
    [
        f'<minimax:tool_call>\n<invok name="write">\n<parameter name="content">{DATA}</parameter>\n</invoke>',
        f'Let me see.\n<paramter name="path">a</parameter>\n<parameter name="content">\n{DATA}\n</parameter>',
        f'<｜DSML｜invok name="write">\n<｜DSML｜parameter name="content" string="true">[{DATA}]</｜DSML｜parameter>',
        f"_key>\n<arg_value>a</arg_value>\n<arg_key>content</arg_key>\n<arg_value>{DATA}</arg_value>\n</tool_call>",
        f"<tool_cal>write\n<arg_key>content</arg_key>{DATA}</arg_value>\n</tool_call>",
        f"<tool_call</parameter>\n<parameter=content>\n{DATA}\n</parameter>\n</function>\n</tool_call>",
        f"<stt_function_call>call:write{{content:<escape>{DATA}<escape>}}<end_function_call>",
    ],
)
def test_a_value_between_tags(reply: str) -> None:
    with pytest.raises(PlanRejected) as rejected:
        parse(reply, tools=TOOLS)
    assert rejected.value.diagnostics[0].code == "TP131"


@pytest.mark.parametrize("reply", [f'Le", "content": {DATA}', f"so content': {DATA} and", f'"data": [{DATA}]\nis it.'])
def test_a_value_behind_a_key(reply: str) -> None:
    assert isinstance(parse(reply, tools=TOOLS), Prose)


@pytest.mark.parametrize("reply", [f'"steps": [{DATA}]', f'The "plan": [{DATA}]', f"Here it is: {DATA}"])
def test_a_plan_behind_its_own_key_is_one(reply: str) -> None:
    assert isinstance(parse(reply, tools=TOOLS), Plan)
