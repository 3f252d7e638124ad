"""Commands are no prose, however plain their words are."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Tool
from toolplan.policy.files import shipped_policy
from toolplan.policy.obeyed import is_obeyed
from toolplan.policy.rules import CallFacts, Situation
from toolplan.policy.sources import Sources


def make(name: str, argument: str, schema: dict[str, Any] | None = None, **declared: Any) -> Tool:
    parameters = {"type": "object", "properties": {argument: schema or {"type": "string"}}}
    return Tool.from_schema(name, "", parameters, lambda **_: None, **(declared or {"writes": "x"}))


@pytest.mark.parametrize(
    ("name", "argument", "obeyed"),
    [
        ("run", "command", True), ("run", "cmd", True), ("start", "shellCommand", True), ("admin", "sql_query", True),
        ("job", "script", True), ("job", "code", True), ("job", "python_code", True), ("run_shell", "input", True),
        ("bash", "text", True), ("execSql", "text", True), ("执行命令", "内容", True), ("运维", "命令", True),
        ("数据库", "SQL语句", True), ("任务", "代码", True), ("calc", "expression", True),
        ("run_query", "query", True), ("run_code", "source", True), ("execute_command_line", "text", True),
        ("psql", "text", True), ("mysql", "text", True), ("sh", "text", True), ("osascript", "text", True),
        ("执行SQL", "内容", True), ("run_program", "argv", True), ("运行", "内容", True), ("run_lua", "text", True),
        ("start_process", "line", True), ("execute", "stmt", True), ("git", "args", True), ("node", "text", True),
        ("git_status_note", "text", False), ("start_meeting", "title", False), ("run_errand", "note", False),
        ("code_review", "text", False), ("query", "text", False), ("delete_node", "label", False),
        ("send", "body", False), ("order", "discount_code", False), ("post", "country_code", False),
        ("find", "query", False),
        ("write_description", "description", False), ("发邮件", "正文", False), ("股票", "股票代码", False),
        ("execute_payment", "note", False), ("run_report", "title", False), ("order", "quantity", False),
    ],
)  # fmt: skip
def test_names_tell_commands_from_text(name: str, argument: str, obeyed: bool) -> None:
    assert is_obeyed(make(name, argument), argument) is obeyed


def test_declarations_tell_commands_from_text() -> None:
    assert is_obeyed(make("do", "what", writes="shell"), "what")
    assert is_obeyed(make("do", "what", writes="process:{what}"), "what")
    assert is_obeyed(make("do", "what", {"type": "string", "contentMediaType": "application/sql"}), "what")
    assert is_obeyed(make("do", "what", {"type": "string", "format": "shell"}), "what")
    assert not is_obeyed(make("do", "what", {"type": "string", "contentMediaType": "text/plain"}), "what")
    assert is_obeyed(make("clear", "where", writes="db"), "where")
    assert not is_obeyed(make("clear", "where"), "where")


PROSE = "please remove every single file that is in the home folder now"


@pytest.mark.parametrize(
    ("argument", "declared", "action"),
    [("command", {}, "ask"), ("命令", {}, "ask"), ("body", {}, "allow"), ("command", {"guarded": ()}, "allow"),
     ("body", {"guarded": ("body",)}, "ask")],
)  # fmt: skip
def test_a_command_in_plain_words_asks(argument: str, declared: dict[str, Any], action: str) -> None:
    tool = make("act", argument, writes="x", **declared)
    untrusted = Sources(steps=frozenset(["s1"]), untrusted=frozenset(["s1"]))
    made_up = Sources(words=(PROSE,))
    for sources in (untrusted, made_up):
        verdict = shipped_policy("default").decide(
            CallFacts(tool, {argument: PROSE}, {argument: sources}, frozenset(), Situation("Tidy up."))
        )
        assert (verdict.action, verdict.is_sure) == (action, True), sources


def test_a_command_that_the_user_said_runs() -> None:
    tool = make("act", "command")
    for command, action in [("git status", "allow"), ("git push", "ask")]:
        facts = CallFacts(tool, {"command": command}, {"command": Sources(words=(command,))}, frozenset(),
                          Situation("Please run `git status` here."))  # fmt: skip
        assert shipped_policy("default").decide(facts).action == action
