"""Events as lines: which there are, how long they may be, and what happens when nobody reads them any more."""

from __future__ import annotations

import io
import itertools
import json
import re
import time
from typing import Any

import pytest

from toolplan import Agent, ToolSet, check, parse, tool
from toolplan.agent import ModelAsked, ModelReplied, PlanAccepted, PlanRefused, ReplyStreamed
from toolplan.cli.progress import call_text, one_line, outcome_text, watching
from toolplan.errors import PlanRejected, ToolFailed
from toolplan.models import Message, ScriptedModel, Usage
from toolplan.run import (
    EarlyDiscarded,
    EarlyFinished,
    EarlyStarted,
    NoteShown,
    RunStarted,
    StepFinished,
    StepProgress,
    StepStarted,
)
from toolplan.schedule import StepRecord


@tool(pure=True)
def look(what: str) -> str:
    return what


TOOLS = ToolSet.of([look])


def record(step: str = "s1", **changes: object) -> StepRecord:
    values = {"outcome": "succeeded", "result": "gold", "started_seconds": 0.5, "finished_seconds": 1.25}
    return StepRecord(step, "look", **{**values, **changes})  # type: ignore[arg-type]


def story() -> list[object]:
    checked = check(parse('{"steps": [{"tool_name": "look", "arguments": {"what": "x"}}], "answer": "done"}'), TOOLS)
    with pytest.raises(PlanRejected) as caught:
        check(parse('[{"tool_name": "lok", "arguments": {}}]'), TOOLS)
    return [
        ModelAsked("plan", "recorded:x", (Message("system", "You plan."), Message("user", "Look!"))),
        ReplyStreamed('{"st'),
        ReplyStreamed('eps": []}'),
        ModelReplied("plan", Usage(1, 812, 95, estimated=True), 1.5),
        PlanRefused(caught.value, 1),
        PlanAccepted(checked),
        StepStarted("s1", "look", {"what": "x"}, 0.5),
        StepProgress("s1", "half way", 0.75),
        StepFinished(record(outcome="failed", result=None, error="no luck")),
        StepStarted("s1", "look", {"what": "x"}, 0.9, 2),
        StepFinished(record()),
        NoteShown("s2", "nearly there"),
    ]


def lines(language: str = "en", **options: bool) -> list[str]:
    stream = io.StringIO()
    with watching(stream, language=language, **options) as view:  # type: ignore[arg-type]
        for event in story():
            view.see(event)  # type: ignore[arg-type]
        with view.paused():
            pass
    return stream.getvalue().splitlines()


def test_each_event_is_a_line() -> None:
    assert lines() == [
        "asking recorded:x for a plan ...",
        "  812 tokens in, 95 out, 1.50 s (tokens estimated)",
        "plan refused (attempt 1):",
        "  error[TP201]: no tool is named `lok`",
        "plan accepted: 1 step",
        "  warning[TP209]: the result of `look` is never used",
        '   0.500s  start  s1  look(what="x")',
        "   0.750s  ...    s1  half way",
        "   1.250s  FAIL   s1  look -> no luck",
        '   0.900s  again  s1  look(what="x")',
        '   1.250s  done   s1  look -> "gold"',
        "note: nearly there",
    ]


def test_lines_in_chinese_have_columns_too() -> None:
    shown = lines("zh")
    assert shown[0] == "请 recorded:x 制定计划 ..."
    assert '   0.500s  开始   s1  look(what="x")' in shown
    assert '   1.250s  完成   s1  look -> "gold"' in shown


def test_trace_shows_values_whole() -> None:
    text = "\n".join(lines(trace=True))
    assert "--- system ---\nYou plan.\n\n--- user ---\nLook!" in text
    assert 'the reply as it came:\n{"steps": []}' in text
    assert "= help: did you mean `look`?" in text
    assert '{"tool_name": "look", "arguments": {"what": "x"}}' in text


def test_quiet_shows_nothing() -> None:
    assert lines(quiet=True) == []


class Gone(io.StringIO):
    written = 0

    def write(self, text: str) -> int:
        self.written += 1
        raise BrokenPipeError


def test_a_reader_that_has_gone_is_no_failure_and_not_tried_again() -> None:
    stream = Gone()
    with watching(stream) as view:
        for event in story():
            view.see(event)  # type: ignore[arg-type]
    assert stream.written == 1


def test_long_values_are_cut_and_say_so() -> None:
    long = call_text(StepStarted("s1", "look", {"what": "长" * 5000}, 0.0), 40)
    assert len(long) == 40
    assert long.endswith("…")
    assert outcome_text(record(result=["x"] * 100_000), 40).endswith("…")
    assert len(outcome_text(record(result=["x"] * 100_000), 40)) <= 40
    assert outcome_text(record(result="a\nb"), 40) == '"a\\nb"'
    assert outcome_text(record(error="line one\n  line two\x1b[31m"), 60) == "line one line two\\x1b[31m"


def test_one_line_keeps_short_text() -> None:
    assert one_line("a  b\n c") == "a b c"
    assert one_line("abcdef", 6) == "abcdef"
    assert one_line("abcdefg", 6) == "abcde…"


def test_early_calls_have_lines() -> None:
    stream = io.StringIO()
    with watching(stream) as view:
        view.see(EarlyStarted("s1", "look", {"what": "x"}, 0.25))
        view.see(EarlyFinished(record()))
        view.see(EarlyDiscarded(record(), "no plan needed this call"))
        view.see(StepStarted("s2", "look", {"what": "y"}, -0.5))
    assert stream.getvalue().splitlines() == [
        '   0.250s  early  s1  look(what="x")',
        "   1.250s  void   s1  look",
        '   0.000s  start  s2  look(what="y")',
    ]


def test_calls_before_the_run_and_in_it_are_told_by_one_clock() -> None:
    @tool(reads="x")
    def look_up(what: str) -> str:
        time.sleep(0.02)
        return what

    @tool(writes="y")
    def put(what: str) -> str:
        return what

    steps = [{"tool_name": "look_up", "arguments": {"what": "x"}}, {"tool_name": "put", "arguments": {"what": "y"}}]
    reply = {"text": json.dumps({"steps": steps, "answer": "ok"}), "delay_seconds": 0.4, "chunks": 20}
    stream = io.StringIO()
    with watching(stream) as view:
        agent = Agent(ScriptedModel([reply]), [look_up, put], policy="declared")
        assert agent.run_sync("Go.", watch=view.see).outcome == "succeeded"
    timed = re.findall(r"^ *(-?\d+\.\d+)s  (\w+) +(s\d)", stream.getvalue(), re.MULTILINE)
    at = {f"{word} {step}": float(when) for when, word, step in timed}
    assert list(at) == ["early s1", "start s1", "done s1", "start s2", "done s2"]
    assert 0 < at["early s1"] <= at["start s1"] + 0.01 < at["done s1"] + 0.01
    assert at["done s1"] < 0.4
    assert at["start s2"] >= 0.4


def test_the_times_of_further_plans_and_turns_go_on() -> None:
    @tool(reads="x")
    def look_up(what: str) -> str:
        time.sleep(0.03)
        if what == "no":
            raise ToolFailed("there is none")
        return what

    def shown(mode: Any, *replies: Any) -> list[float]:
        stream = io.StringIO()
        with watching(stream) as view:
            Agent(ScriptedModel(list(replies)), [look_up], mode=mode).run_sync("Go.", watch=view.see)
        return [float(at) for at in re.findall(r"^ *(-?\d+\.\d+)s  \w+ +s\d", stream.getvalue(), re.MULTILINE)]

    def plan(*what: str, **more: Any) -> dict[str, Any]:
        steps = [{"tool_name": "look_up", "arguments": {"what": each}} for each in what]
        return {"text": json.dumps({"steps": steps, "answer": "ok"}), **more}

    def turn(what: str) -> dict[str, Any]:
        return {"tool_calls": [{"name": "look_up", "arguments": {"what": what}}], "delay_seconds": 0.05}

    for times in (
        shown("plan", plan("no"), plan("yes", delay_seconds=0.1)),
        shown("loop", turn("a"), turn("b"), turn("c"), "done"),
    ):
        assert len(times) >= 4
        assert all(later >= earlier - 0.02 for earlier, later in itertools.pairwise(times)), times


def test_a_step_without_an_end_of_its_own_is_told_with_the_time_now() -> None:
    stream = io.StringIO()
    with watching(stream) as view:
        view.see(RunStarted("r"))
        time.sleep(0.05)
        view.see(StepFinished(StepRecord("s7", "look", (), {}, outcome="cancelled")))
    assert float(stream.getvalue().split("s ")[0]) >= 0.05
