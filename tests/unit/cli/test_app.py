"""The commands on tools, plans and recorded replies: what they print, what they run, what they end with."""

from __future__ import annotations

import json
import re

import pytest

TOOLS_FILE = ("--tools", "office.py")


# ask ------------------------------------------------------------------------------------------------------------------


def test_ask_answers(office) -> None:
    done = office("ask", "How cold is Beijing?", *TOOLS_FILE, "--model", office.model(office.GOOD_PLAN))
    assert (done.code, done.out) == (0, "北京: -3.5\n")
    assert "plan accepted: 1 step" in done.err
    assert 'get_weather(city="北京")' in done.err
    assert "a tool prints" in done.err


def test_ask_speaks_the_language_of_the_request(office) -> None:
    done = office("ask", "北京有多冷？", *TOOLS_FILE, "--model", office.model(office.GOOD_PLAN))
    assert "计划通过检查：1 个步骤" in done.err
    done = office("ask", "北京有多冷？", *TOOLS_FILE, "--model", office.model(office.GOOD_PLAN), "--language", "en")
    assert "plan accepted: 1 step" in done.err


def test_ask_as_json_is_the_interface(office) -> None:
    done = office("ask", "How cold is Beijing?", *TOOLS_FILE, "--model", office.model(office.GOOD_PLAN), "--json")
    document = done.document
    assert done.code == 0
    assert document.keys() >= office.ANSWER_KEYS
    assert (document["outcome"], document["answer"], document["inferences"]) == ("succeeded", "北京: -3.5", 1)
    assert document["usage"]["requests"] == 1
    [step] = document["steps"]
    assert step.keys() == office.STEP_KEYS
    assert (step["id"], step["tool"], step["arguments"]) == ("s1", "get_weather", {"city": "北京"})
    assert (step["outcome"], step["result"]) == ("succeeded", {"city": "北京", "temperature": -3.5})
    assert step["started_seconds"] <= step["finished_seconds"]
    assert document["plan"]["steps"][0]["tool_name"] == "get_weather"


def test_a_refused_plan_is_mended(office) -> None:
    model = office.model(office.BAD_PLAN, office.GOOD_PLAN)
    done = office("ask", "How cold is Beijing?", *TOOLS_FILE, "--model", model)
    assert (done.code, done.out) == (0, "北京: -3.5\n")
    assert "plan refused (attempt 1):" in done.err
    assert "error[TP201]: no tool is named `get_wether`" in done.err
    assert office.sent == []


def test_a_plan_that_stays_refused_runs_nothing(office) -> None:
    arguments = ("ask", "Mail me.", *TOOLS_FILE, "--yes", "--max-repairs", "1", "--model")
    done = office(*arguments, office.model(office.BAD_PLAN, office.BAD_PLAN), "--json")
    assert (done.code, done.document["outcome"], done.document["inferences"]) == (1, "rejected", 2)
    assert {found["code"] for found in done.document["diagnostics"]} == {"TP201", "TP203"}
    assert done.document["steps"] == []
    plain = office(*arguments, office.model(office.BAD_PLAN, office.BAD_PLAN))
    assert plain.code == 1
    assert "= help: did you mean `get_weather`?" in plain.out
    assert office.sent == []


def test_prose_is_the_answer_and_a_refusal_says_what_is_missing(office) -> None:
    done = office("ask", "Who are you?", *TOOLS_FILE, "--model", office.model("I plan tool calls."), "--json")
    assert (done.code, done.document["outcome"], done.document["answer"]) == (0, "succeeded", "I plan tool calls.")
    cannot = {"cannot": "no tool cancels a lunch", "missing": ["cancel_event(id)"]}
    done = office("ask", "Cancel lunch.", *TOOLS_FILE, "--model", office.model(cannot), "--json")
    assert (done.code, done.document["outcome"]) == (1, "rejected")
    assert "no tool cancels a lunch" in done.document["answer"]
    assert done.document["missing"] == ["cancel_event(id)"]


@pytest.mark.parametrize(
    ("request_text", "said"), [("Hello?", "no model is configured"), ("你好吗？", "还没有指定模型")]
)
def test_without_a_model_it_says_what_to_set(office, request_text, said) -> None:
    done = office("ask", request_text, *TOOLS_FILE)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    for way in ("OPENAI_API_KEY", "ollama:", "--base-url", "TOOLPLAN_MODEL"):
        assert way in done.err
    document = office("ask", request_text, *TOOLS_FILE, "--json").document
    assert document["outcome"] == "usage"
    assert said in document["error"]


def test_the_model_of_the_environment_is_taken(office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLPLAN_MODEL", office.model(office.GOOD_PLAN))
    assert office("ask", "How cold is Beijing?", *TOOLS_FILE, "--quiet").out == "北京: -3.5\n"


def test_a_model_that_fails_is_a_failed_result(office) -> None:
    done = office("ask", "Hello?", *TOOLS_FILE, "--model", office.model(), "--json")
    assert (done.code, done.document["outcome"]) == (1, "failed")
    assert done.document.keys() >= office.ANSWER_KEYS
    assert "has no replies" in done.document["error"]
    plain = office("ask", "Hello?", *TOOLS_FILE, "--model", office.model())
    assert plain.code == 1
    assert "has no replies" in plain.out


def test_a_model_that_fails_to_word_the_answer_loses_nothing(office) -> None:
    model = office.model(office.GOOD_PLAN)
    done = office("ask", "How cold is it?", *TOOLS_FILE, "--model", model, "--answer", "model", "--json")
    assert (done.code, done.document["outcome"], done.document["answer"]) == (0, "succeeded", "北京: -3.5")
    assert "could not be worded" in done.document["error"]
    assert [step["outcome"] for step in done.document["steps"]] == ["succeeded"]
    plain = office(
        "ask", "How cold is it?", *TOOLS_FILE, "--model", office.model(office.GOOD_PLAN), "--answer", "model"
    )
    assert plain.out == "北京: -3.5\n"
    assert "could not be worded" in plain.err


def test_a_reviewed_plan_costs_one_more_inference(office) -> None:
    model = office.model(office.GOOD_PLAN, {"objections": []})
    done = office("ask", "How cold is Beijing?", *TOOLS_FILE, "--model", model, "--review")
    assert (done.code, done.out) == (0, "北京: -3.5\n")
    assert "to review the plan ..." in done.err


def test_a_plan_in_the_python_notation(office) -> None:
    program = 'w = get_weather(city="北京")\nanswer(f"{w.city}: {w.temperature}")'
    done = office("ask", "How cold is it?", *TOOLS_FILE, "--model", office.model(program), "--notation", "python", "-q")
    assert (done.code, done.out) == (0, "北京: -3.5\n")
    prompts = [office("prompt", "Hi", *TOOLS_FILE, "--notation", name).out for name in ("json", "python")]
    assert prompts[0] != prompts[1]
    plan = office.write("plan.py", program)
    assert office("run", plan, *TOOLS_FILE, "-q").out == "北京: -3.5\n"
    assert office("show", plan, *TOOLS_FILE, "--json").document["plan"]["steps"][0]["tool_name"] == "get_weather"


def test_trace_shows_every_value_between_the_stages(office) -> None:
    done = office("ask", "How cold is Beijing?", *TOOLS_FILE, "--model", office.model(office.GOOD_PLAN), "--trace")
    assert done.out == "北京: -3.5\n"
    for value in (
        "--- system ---",
        "--- user ---\nHow cold is Beijing?",
        json.dumps(office.GOOD_PLAN, ensure_ascii=False),
    ):
        assert value in done.err
    assert '"steps": [{"tool_name": "get_weather"' in done.err


# run ------------------------------------------------------------------------------------------------------------------


def test_run_says_what_it_will_do_before_it_does_it(office) -> None:
    done = office("run", office.plan(office.MAIL_PLAN), *TOOLS_FILE, "--yes")
    assert done.code == 0
    summary, answer = done.out.split("\n\n")
    assert "This plan makes 2 calls; 1 of them may change something" in summary
    assert re.search(r"! s3 .*send_email\(to=\"me@example.com\"", summary)
    assert answer == "北京: -3.5\n"
    assert office.sent == ["me@example.com: -3.5 °C"]
    assert office("run", office.plan(office.GOOD_PLAN), *TOOLS_FILE, "-q").out == "北京: -3.5\n"


def test_run_waits_for_approval_and_runs_nothing(office) -> None:
    done = office("run", office.plan(office.MAIL_PLAN), *TOOLS_FILE)
    assert done.code == 3
    assert "nothing was run: s3 (send_email) must be approved first" in done.err
    assert "--yes" in done.err
    assert "a tool prints" not in done.err
    as_json = office("run", office.plan(office.MAIL_PLAN), *TOOLS_FILE, "--json")
    assert (as_json.code, as_json.document["outcome"], as_json.document["steps"]) == (3, "waiting", [])
    [call] = as_json.document["approvals"]
    assert (call["id"], call["tool"]) == ("s3", "send_email")
    assert call["arguments"] == {"to": "me@example.com", "subject": "{w.temperature} °C"}
    assert office.sent == []


def test_run_as_json_prints_one_document(office) -> None:
    done = office("run", office.plan(office.MAIL_PLAN), *TOOLS_FILE, "--yes", "--json")
    assert done.code == 0
    assert done.document.keys() >= office.ANSWER_KEYS
    assert [step["id"] for step in done.document["steps"]] == ["s1", "s3"]
    assert done.err == "a tool prints\n"


def test_a_plan_with_a_wrong_second_step_runs_nothing_of_the_first(office) -> None:
    done = office("run", office.plan(office.BAD_PLAN), *TOOLS_FILE, "--yes", "--json")
    assert (done.code, done.document["outcome"], done.document["steps"]) == (1, "rejected", [])
    assert [found["code"] for found in done.document["diagnostics"]] == ["TP201", "TP203"]
    plain = office("run", office.plan(office.BAD_PLAN), *TOOLS_FILE, "--yes")
    assert plain.code == 1
    assert "--> plan.json:1:" in plain.out
    assert "This plan makes" not in plain.out
    assert office.sent == []


def test_a_failure_says_what_happened_and_what_did_not(office) -> None:
    pay = {"tool_name": "pay", "arguments": {"amount": 5}}
    confirm = {"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "paid"}}
    done = office("run", office.plan([pay, confirm]), *TOOLS_FILE, "--yes", "-q")
    assert done.code == 1
    assert "step s1 (pay) failed: ValueError: the bank is closed" in done.out
    assert "Nothing else was changed or sent." in done.out
    assert "Not run because of it: s2 (send_email)." in done.out
    document = office("run", office.plan([pay, confirm]), *TOOLS_FILE, "--yes", "--json").document
    assert [(step["id"], step["outcome"]) for step in document["steps"]] == [("s1", "failed"), ("s2", "not_run")]
    assert office.sent == []


def test_a_plan_comes_from_standard_input(office, stdin) -> None:
    stdin(json.dumps(office.GOOD_PLAN))
    assert office("run", "-", *TOOLS_FILE, "-q").out == "北京: -3.5\n"
    stdin(json.dumps(office.BAD_PLAN))
    assert "--> <stdin>:1:" in office("check", "-", *TOOLS_FILE).out


def test_run_takes_prose_and_refusals_for_what_they_are(office) -> None:
    prose = office.write("prose.txt", "It is cold in Beijing.")
    done = office("run", prose, *TOOLS_FILE)
    assert (done.code, done.out) == (0, "It is cold in Beijing.\n")
    document = office("run", prose, *TOOLS_FILE, "--json").document
    assert document.keys() >= office.ANSWER_KEYS
    assert (document["outcome"], document["answer"]) == ("succeeded", "It is cold in Beijing.")
    cannot = office.plan({"cannot": "没有取消日程的工具", "missing": ["取消日程的工具"]})
    done = office("run", cannot, *TOOLS_FILE)
    assert (done.code, done.out) == (1, "无法完成：没有取消日程的工具\n缺少：取消日程的工具。\n")


def test_a_question_without_anybody_to_ask_waits(office) -> None:
    plan = office.plan([{"ask_user": "Which day?", "result_variable": "day"}, {"answer": "{day}"}])
    done = office("run", plan, *TOOLS_FILE, "-q")
    assert (done.code, done.out) == (3, "Which day?\n")
    assert "waits for an answer" in done.err


def test_a_plan_that_reads_needs_a_model_before_anything_runs(office) -> None:
    mail = {"tool_name": "send_email", "arguments": {"to": "a@example.org", "subject": "first"}}
    ask = {"ask_model": "Which day?", "data": "'on Monday'", "returns": {"type": "string"}, "result_variable": "day"}
    plan = office.plan({"steps": [mail, ask], "answer": "{day}"})
    done = office("run", plan, *TOOLS_FILE, "--yes")
    assert (done.code, done.out) == (2, "")
    assert "this plan has an `ask_model` step, and no model is configured" in done.err
    assert office.sent == []
    done = office("run", plan, *TOOLS_FILE, "--yes", "-q", "--model", office.model('"Monday"'))
    assert (done.code, done.out) == (0, "Monday\n")
    assert office.sent == ["a@example.org: first"]


def test_now_is_what_the_plan_sees(office) -> None:
    plan = office.plan({"steps": [], "answer": "{date(now)}"})
    assert office("run", plan, *TOOLS_FILE, "-q", "--now", "2026-03-18T09:00").out == "2026-03-18\n"


# check, show ----------------------------------------------------------------------------------------------------------


def test_check_accepts_and_says_how_much(office) -> None:
    done = office("check", office.plan(office.MAIL_PLAN), *TOOLS_FILE)
    assert (done.code, done.out) == (0, "the plan may run: 2 steps\n")
    document = office("check", office.plan(office.MAIL_PLAN), *TOOLS_FILE, "--json").document
    assert (document["outcome"], document["diagnostics"]) == ("accepted", [])
    assert document["plan"]["steps"][1]["if"] == "w.temperature < 5"


def test_check_says_everything_that_is_wrong(office) -> None:
    done = office("check", office.plan(office.BAD_PLAN), *TOOLS_FILE)
    assert done.code == 1
    assert done.out.count("error[") == 2
    assert done.out.endswith("\n2 problems\n")
    document = office("check", office.plan(office.BAD_PLAN), *TOOLS_FILE, "--json").document
    assert (document["outcome"], document["plan"]) == ("rejected", None)
    assert [(found["code"], found["line"]) for found in document["diagnostics"]] == [("TP201", 1), ("TP203", 1)]


def test_check_refuses_a_forbidden_tool(office) -> None:
    done = office("check", office.plan([{"tool_name": "launch", "arguments": {}}]), *TOOLS_FILE, "--json")
    assert (done.code, done.document["diagnostics"][0]["code"]) == (1, "TP403")


def test_check_tells_warnings_and_lets_the_plan_run(office) -> None:
    done = office("check", office.plan({**office.GOOD_PLAN, "answer": "done"}), *TOOLS_FILE)
    assert done.code == 0
    assert "warning[" in done.out
    assert done.out.endswith("the plan may run: 1 step, 1 warning\n")


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_text_that_is_no_plan_is_no_success(office, command) -> None:
    tools = ("--tools", office.tools)
    done = office(command, office.write("prose.txt", "It is cold in Beijing."), *tools)
    assert done.code == 1
    assert "this text is prose, not a plan" in done.out
    document = office(command, office.plan({"cannot": "no such tool", "missing": ["one"]}), *tools, "--json").document
    assert (document["outcome"], document["missing"], document["plan"]) == ("rejected", ["one"], None)
    done = office(command, office.write("broken.json", '{"steps": ['), *tools, "--json")
    assert (done.code, done.document["outcome"]) == (1, "rejected")


def test_show_prints_the_canonical_form(office) -> None:
    lenient = [{"tool": "get_weather", "args": {"city": "北京"}, "as": "w"}]
    done = office("show", office.plan(lenient))
    assert done.code == 0
    assert json.loads(done.out) == {
        "steps": [{"tool_name": "get_weather", "arguments": {"city": "北京"}, "result_variable": "w"}]
    }
    again = office("show", office.write("again.json", done.out))
    assert again.out == done.out
    assert office("show", office.plan(lenient), "--json").document == {"plan": json.loads(done.out)}


def test_show_draws_a_flowchart(office) -> None:
    done = office("show", office.plan(office.MAIL_PLAN), "--mermaid")
    assert done.out.startswith("flowchart TD\n")
    assert "send_email" in done.out
    document = office("show", office.plan(office.MAIL_PLAN), "--mermaid", "--json").document
    assert document["mermaid"].strip() == done.out.strip()


# tools, prompt, schema, explain ---------------------------------------------------------------------------------------


def test_tools_lists_signatures_and_effects(office) -> None:
    done = office("tools", *TOOLS_FILE)
    assert done.code == 0
    assert "get_weather(city: str) -> Weather" in done.out
    assert "  get_weather  reads weather\n" in done.out
    assert "  send_email   changes mailbox:{to}; asks for approval\n" in done.out
    assert "  launch       pure; may not be called" in done.out
    assert "runs alone" not in done.out
    document = office("tools", *TOOLS_FILE, "--json").document
    assert [tool["name"] for tool in document] == ["get_weather", "send_email", "pay", "launch"]
    assert document[0]["parameters"]["required"] == ["city"]
    assert document[0]["returns"]["properties"].keys() == {"city", "temperature"}


def test_tools_says_what_a_declaration_would_gain(office) -> None:
    plain = office.write("plain.py", "def f(x: int) -> int:\n    return x\n")
    done = office("tools", "--tools", plain)
    assert "  f  not declared" in done.out
    assert "A call of f runs alone and in written order" in done.out


def test_prompt_prints_exactly_what_a_model_would_get(office) -> None:
    arguments = ("prompt", "北京冷吗？", *TOOLS_FILE, "--now", "2026-03-18T09:00")
    document = office(*arguments, "--json").document
    system, user = document["messages"]
    assert (system["role"], user) == ("system", {"role": "user", "content": "北京冷吗？"})
    assert "get_weather(city: str) -> Weather" in system["content"]
    assert "2026-03-18T09:00" in system["content"]
    assert 0 < document["tokens"]["tools"] < document["tokens"]["total"]
    done = office(*arguments)
    assert done.out == f"--- system ---\n{system['content']}\n\n--- user ---\n北京冷吗？\n\n"
    assert f"about {document['tokens']['total']:,} tokens" in done.err


def test_schema_is_a_json_schema_of_plans(office) -> None:
    import jsonschema_rs

    done = office("schema", *TOOLS_FILE)
    assert done.code == 0
    validator = jsonschema_rs.validator_for(done.document)
    assert validator.is_valid(office.MAIL_PLAN)
    assert not validator.is_valid({"steps": [{"tool_name": "no_such_tool", "arguments": {}}]})
    assert office("schema", *TOOLS_FILE, "--json").document == done.document


def test_explain_tells_the_story_of_a_code(office) -> None:
    done = office("explain", "TP302")
    assert done.out.startswith("TP302: ")
    assert "wrong:\n" in done.out
    assert "right:\n" in done.out
    assert office("explain", "302").out == office("explain", "tp302").out == done.out
    document = office("explain", "TP302", "--json").document
    assert document.keys() == {"code", "title", "severity", "story", "wrong", "right"}
    listed = office("explain").out.splitlines()
    assert len(listed) == len(office("explain", "--json").document) > 50
    assert listed == sorted(listed)


# demo -----------------------------------------------------------------------------------------------------------------


def test_a_demo_says_that_its_reply_is_recorded(office) -> None:
    done = office("demo", "kickoff", "--language", "en")
    assert done.code == 0
    assert "The model's replies in these demos are recordings." in done.out
    assert "reply:   recorded, in kickoff.en.jsonl" in done.out
    assert "in the outbox: a mail to team@example.com" in done.out
    assert "1 inference, 2 calls in" in done.out


def test_a_demo_as_json_is_a_result_with_evidence(office) -> None:
    done = office("demo", "kickoff", "--language", "zh", "--json")
    document = done.document
    assert (done.code, done.err) == (0, "")
    assert document.keys() >= office.ANSWER_KEYS
    assert (document["outcome"], document["inferences"], document["reply_is_recorded"]) == ("succeeded", 1, True)
    assert len(document["mails"]) == 1
    assert all(step.keys() == office.STEP_KEYS for step in document["steps"])


def test_the_demos_are_listed(office) -> None:
    names = ["weather-cold", "weather-warm", "kickoff", "cancel-lunch", "largest-files", "ten-cities"]
    assert [line.split()[0] for line in office("demo", "--list").out.splitlines()] == names
    assert [demo["demo"] for demo in office("demo", "--list", "--json").document] == names
