"""An agent that routes: what the model is shown, and what happens when that was not enough."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolplan import Agent, ToolSet, UsageError, tool
from toolplan.agent_events import CallRefused, ModelAsked, ToolsShown
from toolplan.loop.offered import Offered
from toolplan.models import FunctionModel, ModelRequest, Reply, ToolCallPart
from toolplan.prompt import loop_words
from toolplan.route import Router
from toolplan.run import EarlyStarted


class Desk:
    """Tools of several trades that write down what they did."""

    def __init__(self) -> None:
        self.log: list[str] = []

        @tool(reads="weather", keywords="天气")
        def get_weather(city: str) -> str:
            """Tells the weather of a city."""
            self.log.append(f"weather {city}")
            return "rain"

        @tool(writes="mail", approval="allow")
        def send_email(to: str, body: str) -> str:
            """Sends a mail."""
            self.log.append(f"mail {to}: {body}")
            return "sent"

        @tool(reads="contacts")
        def find_contact(name: str) -> str:
            """Finds the address of a person."""
            self.log.append(f"contact {name}")
            return f"{name.lower()}@example.com"

        @tool(reads="rates")
        def get_rate(base: str) -> float:
            """Exchange rates."""
            self.log.append(f"rate {base}")
            return 7.0

        @tool(reads="票")
        def 查车票(日期: str) -> str:
            """查询火车票。"""
            self.log.append(f"train {日期}")
            return "G1"

        self.tools = ToolSet.of([get_weather, send_email, find_contact, get_rate, 查车票])


class Script:
    """A model that gives these replies and keeps what it was asked."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.model = FunctionModel(self._reply)

    def _reply(self, request: ModelRequest) -> Reply | str:
        self.requests.append(request)
        reply = self.replies.pop(0)
        return reply if isinstance(reply, Reply | str) else json.dumps(reply, ensure_ascii=False)

    def system(self, number: int = -1) -> str:
        return self.requests[number].messages[0].content


def step(tool_name: str, result: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    return {"tool_name": tool_name, "arguments": arguments} | ({"result_variable": result} if result else {})


def plan(*steps: dict[str, Any], answer: str = "done") -> dict[str, Any]:
    return {"steps": list(steps), "answer": answer}


def calls(*given: tuple[str, dict[str, Any]]) -> Reply:
    parts = tuple(ToolCallPart(f"c{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(given))
    return Reply("", parts, "tool_call")


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_prompt_schema_and_result_hold_what_was_chosen(desk: Desk) -> None:
    script = Script(plan(step("get_weather", "w", city="Oslo"), answer="{w}"))
    agent = Agent(script.model, desk.tools, route=1)
    result = agent.run_sync("How is the weather in Oslo?")
    assert (result.outcome, result.answer, result.inferences, result.reasked) == ("succeeded", "rain", 1, 0)
    assert result.shown_tools == ("get_weather",)
    [asked] = script.requests
    assert "get_weather(city: str)" in script.system()
    assert "send_email(" not in script.system()
    assert "Further tools, shown by name only: send_email, find_contact, get_rate, 查车票." in script.system()
    schema = json.dumps(asked.schema)
    assert "get_weather" in schema
    assert "send_email" not in schema
    document = result.to_dict()
    assert (document["shown_tools"], document["reasked"]) == (["get_weather"], 0)


@pytest.mark.parametrize("reply", ["Hello!", plan(answer="Hello!"), {"answer": "Hello!"}])
@pytest.mark.parametrize("mode", ["plan", "auto"])
def test_a_chat_takes_one_inference_whatever_is_shown(desk: Desk, mode: Any, reply: Any) -> None:
    script = Script(reply)
    result = Agent(script.model, desk.tools, route=1, mode=mode).run_sync("Zzz?")
    assert (result.answer, result.shown_tools, result.inferences) == ("Hello!", desk.tools.names, 1)
    assert result.reasked == 0


@pytest.mark.parametrize("mode", ["plan", "auto", "loop"])
def test_a_request_in_words_that_no_tool_has_finds_its_tool_in_one_inference(desk: Desk, mode: Any) -> None:
    call = (
        calls(("get_rate", {"base": "EUR"})) if mode == "loop" else plan(step("get_rate", "r", base="EUR"), answer="7")
    )
    script = Script(call, "7")
    result = Agent(script.model, desk.tools, route=1, mode=mode).run_sync("50欧元是多少钱？")
    assert (result.outcome, result.answer, result.reasked) == ("succeeded", "7", 0)
    assert desk.log == ["rate EUR"]


def test_where_not_all_fit_the_others_are_told_with_what_they_are_for(desk: Desk) -> None:
    script = Script("hello")
    Agent(script.model, desk.tools, route=Router(desk.tools, top=2, max_tokens=30)).run_sync("Zzz?")
    assert "get_weather(city: str)" in script.system()
    assert "\n- get_rate: Exchange rates." in script.system()


def test_the_prompt_is_the_one_that_is_sent(desk: Desk) -> None:
    script = Script("hello")
    agent = Agent(script.model, desk.tools, route=2, now="2026-01-01T09:00")
    agent.run_sync("查一下天气")
    assert [message.content for message in agent.prompt("查一下天气")] == [
        message.content for message in script.requests[0].messages
    ]
    assert "get_weather(city: str)" in script.system()


def test_without_routing_nothing_is_new(desk: Desk) -> None:
    script = Script(plan(answer="hello"))
    result = Agent(script.model, desk.tools).run_sync("Hello!")
    assert (result.shown_tools, result.reasked) == (None, 0)
    assert "by name only" not in script.system()


def test_a_plan_that_names_a_tool_it_was_not_shown_is_asked_for_again_with_it(desk: Desk) -> None:
    guessed = plan(step("get_weather", "w", city="Oslo"), step("send_email", address="ann"))
    right = plan(step("get_weather", "w", city="Oslo"), step("send_email", to="ann@example.com", body="{w}"))
    events: list[Any] = []
    script = Script(guessed, right)
    result = Agent(script.model, desk.tools, route=1, policy="declared").run_sync(
        "Tell ann@example.com the weather in Oslo.", watch=events.append
    )
    assert (result.outcome, result.inferences, result.reasked) == ("succeeded", 2, 1)
    assert desk.log[-1] == "mail ann@example.com: rain"
    assert desk.log.count("mail ann@example.com: rain") == 1
    assert "send_email(to: str, body: str)" in script.system()
    assert "send_email" in json.dumps(script.requests[1].schema)
    assert [m.content for m in script.requests[1].messages[1:]] == [m.content for m in script.requests[0].messages[1:]]
    [shown] = [event for event in events if isinstance(event, ToolsShown)]
    assert shown.tools == ("send_email",)
    assert [event.purpose for event in events if isinstance(event, ModelAsked)] == ["plan", "plan"]
    assert result.shown_tools == ("get_weather", "send_email")


def test_a_repeated_guess_is_checked_like_any_plan(desk: Desk) -> None:
    guesses = [
        step("find_contact", name="Ann"),
        step("get_rate", base="EUR"),
        step("查车票", 日期="2026-01-02"),
    ]
    script = Script(*map(plan, guesses))
    result = Agent(script.model, desk.tools, route=1).run_sync("The weather?")
    assert (result.outcome, result.inferences, result.reasked) == ("succeeded", 3, 2)
    assert desk.log == ["train 2026-01-02"]
    assert "查车票" in (result.shown_tools or ())


def test_a_tool_that_is_said_to_be_missing_is_looked_for_once(desk: Desk) -> None:
    missing = {"cannot": "No tool tells exchange rates.", "missing": ["a tool for exchange rates"]}
    script = Script({"steps": [missing]}, plan(step("get_rate", "r", base="USD"), answer="{r}"))
    result = Agent(script.model, desk.tools, route=1).run_sync("The weather, and what is a dollar?")
    assert (result.outcome, result.answer, result.reasked, result.inferences) == ("succeeded", "7.0", 1, 2)
    assert "get_rate(base: str)" in script.system()
    script = Script({"steps": [missing]}, {"steps": [missing]})
    result = Agent(script.model, desk.tools, route=1).run_sync("The weather, and what is a dollar?")
    assert (result.outcome, result.reasked, result.inferences) == ("rejected", 1, 2)
    assert result.missing == ("a tool for exchange rates",)


def test_what_cannot_be_done_by_any_tool_is_believed(desk: Desk) -> None:
    script = Script({"steps": [{"cannot": "Nobody knows the future."}]})
    result = Agent(script.model, desk.tools, route=1).run_sync("Who will win?")
    assert (result.outcome, result.inferences) == ("rejected", 1)


def test_a_repair_shows_the_tool_that_was_meant(desk: Desk) -> None:
    script = Script(plan(step("send_mail", to="a", body="b")), plan(step("send_email", to="a@example.com", body="b")))
    result = Agent(script.model, desk.tools, route=1, policy="declared").run_sync("Weather! Write to a@example.com: b")
    assert (result.outcome, result.inferences, result.reasked) == ("succeeded", 2, 0)
    assert "send_email(to: str, body: str)" in script.system()


def test_the_rest_of_a_plan_may_need_other_tools(desk: Desk) -> None:
    first = plan(step("get_weather", "w", city="Oslo"), {"replan": "look at the weather"})
    rest = {"steps": [step("find_contact", "c", name="Ann")], "answer": "{c}"}
    script = Script(first, rest, rest)
    result = Agent(script.model, desk.tools, route=1).run_sync("The weather in Oslo, then decide.")
    assert (result.outcome, result.answer) == ("succeeded", "ann@example.com")
    assert (result.inferences, result.replans, result.reasked) == (3, 1, 1)
    assert "find_contact(name: str)" in script.system()
    assert [message.role for message in script.requests[2].messages] == ["system", "user", "assistant", "user"]
    assert desk.log == ["weather Oslo", "contact Ann"]


def test_a_guessed_call_does_not_start_early(desk: Desk) -> None:
    reply = plan(step("find_contact", "c", name="Ann"), answer="{c}")
    events: list[Any] = []
    script = Script(reply, reply)
    Agent(script.model, desk.tools, route=1).run_sync("The weather?", watch=events.append)
    assert desk.log == ["contact Ann"]
    asked = [n for n, event in enumerate(events) if isinstance(event, ModelAsked)]
    assert all(n > asked[1] for n, event in enumerate(events) if isinstance(event, EarlyStarted))


def test_given_plans_may_use_every_tool(desk: Desk) -> None:
    agent = Agent(None, desk.tools, route=1)
    result = agent.run_plan_sync(plan(step("find_contact", "c", name="Ann"), answer="{c}"))
    assert (result.outcome, result.reasked) == ("succeeded", 0)


def test_a_router_of_ones_own(desk: Desk) -> None:
    script = Script(plan(answer="ok"))
    agent = Agent(script.model, desk.tools, route=Router(desk.tools, top=2, always=["find_contact"]))
    assert agent.run_sync("How is the weather?").shown_tools == ("get_weather", "find_contact")
    with pytest.raises(UsageError, match="`route` chooses among other tools"):
        Agent(script.model, list(desk.tools)[:3], route=Router(desk.tools))
    with pytest.raises(UsageError, match="`route` is 0"):
        Agent(script.model, desk.tools, route=0)


def test_a_conversation_keeps_the_tools_it_has_used(desk: Desk) -> None:
    script = Script(plan(step("get_weather", "w", city="Oslo"), answer="{w}"), plan(answer="the same"))
    talk = Agent(script.model, desk.tools, route=1).conversation()
    talk.send_sync("The weather in Oslo?")
    assert talk.send_sync("And the rates there?").shown_tools == ("get_weather", "get_rate")
    assert "get_weather(city: str)" in script.system()


def test_a_conversation_keeps_them_from_a_loop_too(desk: Desk) -> None:
    train = Reply("", (ToolCallPart("t", "tool", '{"日期": "1"}'),), "tool_call")
    script = Script(train, "G1", plan(answer="the same"))
    talk = Agent(script.model, desk.tools, route=1).conversation()
    assert talk.send_sync("查询火车票", mode="loop").answer == "G1"
    assert talk.send_sync("And the rates?", mode="plan").shown_tools == ("get_rate", "查车票")


def offered(request: ModelRequest) -> list[str]:
    return [spec.name for spec in request.tools]


def test_a_loop_looks_for_more(desk: Desk) -> None:
    script = Script(
        calls(("find_tools", {"wanted": "exchange rates"}), ("get_weather", {"city": "Oslo"})),
        calls(("get_rate", {"base": "USD"})),
        "Rain, and 7.",
    )
    events: list[Any] = []
    result = Agent(script.model, desk.tools, route=1, mode="loop").run_sync("The weather?", watch=events.append)
    assert (result.outcome, result.answer, result.inferences) == ("succeeded", "Rain, and 7.", 3)
    assert offered(script.requests[0]) == ["get_weather", "find_tools"]
    assert offered(script.requests[1]) == ["get_weather", "get_rate", "find_tools"]
    told = [part.content for part in script.requests[1].messages[-1].tool_results]
    assert told == ["You can now also call: get_rate", "rain"]
    assert [part.id for part in script.requests[1].messages[-1].tool_results] == ["c0", "c1"]
    assert [event.tools for event in events if isinstance(event, ToolsShown)] == [("get_rate",)]
    assert result.shown_tools == ("get_weather", "get_rate")
    assert desk.log == ["weather Oslo", "rate USD"]


def test_a_loop_shows_what_was_called_without_being_shown(desk: Desk) -> None:
    script = Script(
        calls(
            ("find_contact", {"person": "Ann"}),
            ("send_email", {"to": "x", "body": "y"}),
            ("get_weather", {"city": "A"}),
        ),
        calls(("find_contact", {"name": "Ann"})),
        "ann@example.com",
    )
    events: list[Any] = []
    result = Agent(script.model, desk.tools, route=1, mode="loop").run_sync("The weather?", watch=events.append)
    assert (result.outcome, result.reasked) == ("succeeded", 1)
    assert desk.log == ["weather A", "contact Ann"]  # what was guessed was not made
    told = [part.content for part in script.requests[1].messages[-1].tool_results]
    assert told[0].startswith("not made: you had not been shown `find_contact`")
    assert {"find_contact", "send_email"} <= set(offered(script.requests[1]))
    assert [event.tool for event in events if isinstance(event, CallRefused)] == ["find_contact", "send_email"]


def test_a_loop_looks_for_more_in_text(desk: Desk) -> None:
    call = {"name": "find_tools", "arguments": {"wanted": "exchange rates"}}
    script = Script(f"<tool_call>{json.dumps(call)}</tool_call>", calls(("get_rate", {"base": "USD"})), "7")
    result = Agent(script.model, desk.tools, route=1, mode="loop").run_sync("The weather?")
    assert (result.answer, result.shown_tools) == ("7", ("get_weather", "get_rate"))


def test_a_loop_that_only_looks_ends(desk: Desk) -> None:
    script = Script(*(calls(("find_tools", {"wanted": "magic"})) for _ in range(9)))
    result = Agent(script.model, desk.tools, route=1, mode="loop").run_sync("The weather?")
    assert (result.outcome, result.inferences) == ("failed", 2)
    assert "find_tools" in (result.error or "")


def test_a_loop_offers_what_its_conversation_speaks_of(desk: Desk) -> None:
    train = Reply("", (ToolCallPart("t", "tool", '{"日期": "1"}'),), "tool_call")
    script = Script(calls(("find_tools", {"wanted": "火车票"})), train, "G1", "G1 again")
    talk = Agent(script.model, desk.tools, route=1, mode="loop").conversation()
    assert talk.send_sync("The weather?").answer == "G1"
    talk.send_sync("And the weather?")
    assert offered(script.requests[-1]) == ["get_weather", "tool", "find_tools"]
    assert all(call.name in ("find_tools", "tool") for m in script.requests[-1].messages for call in m.tool_calls)


def test_auto_mode_keeps_what_was_shown(desk: Desk) -> None:
    script = Script(
        plan(step("find_contact", name="Ann")),
        {"steps": [{"cannot": "only results can tell"}]},
        calls(("find_contact", {"name": "Ann"})),
        "done",
    )
    result = Agent(script.model, desk.tools, route=1, mode="auto").run_sync("The weather?")
    assert (result.outcome, result.mode_used, result.reasked) == ("succeeded", "loop", 1)
    assert desk.log == ["contact Ann"]


def test_a_made_up_name_means_one_tool_whatever_is_shown() -> None:
    @tool(reads="a")
    def 查天气(城市: str) -> str:
        return ""

    @tool(reads="b")
    def 查车票(日期: str) -> str:
        return ""

    tools = ToolSet.of([查天气, 查车票])
    words = loop_words("zh", "")
    everything = Offered(tools, words, can_ask=False)
    one = Offered(tools, words, can_ask=False, others=["查天气"])
    assert [spec.name for spec in one.specs] == [everything.native("查车票"), "find_tools"]
    assert one.real("tool") == everything.real("tool") == "查天气"
