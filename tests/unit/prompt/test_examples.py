"""The examples in the prompts are plans that the product accepts and runs."""

import dataclasses
import json
import re
from typing import Any

import jsonschema_rs
import pytest

from toolplan.check import check
from toolplan.diagnostics import Source
from toolplan.expressions.functions import FUNCTIONS
from toolplan.parse import CannotPlan, Reading, parse
from toolplan.parse.python_notation import read_program
from toolplan.plan import Call, Plan
from toolplan.prompt import Notation
from toolplan.prompt.chinese import CHINESE
from toolplan.prompt.english import ENGLISH
from toolplan.prompt.wording import Wording
from toolplan.run import run_plan
from toolplan.small_plan_schema import small_plan_schema
from toolplan.tools import ToolSet, signatures, tool


@dataclasses.dataclass
class Tank:
    id: str
    species: str
    salinity: str
    keeper: str | None
    cleaned_on: str


DESCRIPTIONS = {
    "en": {
        "inspect_tank": 'Measures one tank; salinity is text such as "34.5 ppt".',
        "book_cleaning": "Books a cleaning; returns the slot.",
    },
    "zh": {
        "inspect_tank": '测量一个水族缸；salinity 是文字，如 "34.5 ppt"',
        "book_cleaning": "预约清洗，返回时段",
    },
}


def aquarium(language: str) -> ToolSet:
    """The tools of the examples."""
    told = DESCRIPTIONS[language]

    @tool(reads="tanks", description=told["inspect_tank"])
    def inspect_tank(tank: str) -> Tank:
        return Tank(tank, "clownfish", "36.1 ppt", "Bo", "2026-01-01")

    @tool(reads="tanks")
    def list_tanks(hall: str) -> list[Tank]:
        return [Tank(hall, "clownfish", "36.1 ppt", "Bo", "2026-01-01")]

    @tool(writes="tanks")
    def add_fresh_water(tank: str, litres: float) -> str:
        return f"{tank}: {litres}"

    @tool(writes="pager")
    def page_keeper(name: str, text: str) -> str:
        return f"{name}: {text}"

    @tool(writes="cleanings", description=told["book_cleaning"])
    def book_cleaning(tank: str, day: str) -> str:
        return f"{tank}: {day}"

    return ToolSet.of([inspect_tank, list_tanks, add_fresh_water, page_keeper, book_cleaning])


WORDS: list[Any] = [pytest.param("en", ENGLISH, id="en"), pytest.param("zh", CHINESE, id="zh")]


NOTATIONS: list[Notation] = ["json", "python"]


def read(reply: str, notation: Notation, tools: ToolSet) -> Reading:
    return read_program(Source(reply), tools.names) if notation == "python" else parse(reply, tools=tools)


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize(("language", "words"), WORDS)
def test_every_example_parses_and_checks_clean(language: str, words: Wording, notation: Notation) -> None:
    for request, reply in words.example_plans[notation]:
        reading = read(reply, notation, aquarium(language))
        if isinstance(reading, CannotPlan):
            assert "cannot" in reply
            continue
        assert isinstance(reading, Plan), request
        assert reading.notation == notation
        assert reading.repairs == (), request
        assert check(reading, aquarium(language)).warnings == (), request


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize(("language", "words"), WORDS)
async def test_every_example_runs_and_answers(language: str, words: Wording, notation: Notation) -> None:
    tools = aquarium(language)
    ended: list[tuple[str, str | None]] = []
    for _, reply in words.example_plans[notation]:
        reading = read(reply, notation, tools)
        if isinstance(reading, CannotPlan):
            ended.append(("cannot", reading.reason))
            continue
        assert isinstance(reading, Plan)
        run = await run_plan(check(reading, tools), now="2026-03-18T09:00")
        ended.append((run.outcome, run.text))
    assert [outcome for outcome, _ in ended] == ["succeeded", "succeeded", "cannot"]
    assert "36.1 ppt" in str(ended[0][1])
    assert "Bo" in str(ended[0][1])
    assert str(ended[1][1]).count("2026-04-01") == 2
    assert str(ended[1][1]).count("\n") == 1


@pytest.mark.parametrize(("language", "words"), WORDS)
def test_the_examples_tools_are_written_as_tools_are(language: str, words: Wording) -> None:
    written = signatures(aquarium(language)).strip()
    assert (words.example_tools["json"].strip(), words.example_tools["python"].strip()) == (written, written)
    assert words.example_tools["small"].strip() == signatures(small_aquarium(language)).strip()


def small_aquarium(language: str) -> ToolSet:
    """The tools of the example of a short plan."""

    @dataclasses.dataclass
    class Tank:
        id: str
        salinity: str

    @tool(reads="tanks", description={"en": "Measures one tank.", "zh": "测量一个水族缸"}[language])
    def inspect_tank(tank: str) -> Tank:
        return Tank(tank, "36.1 ppt")

    return ToolSet.of([inspect_tank, aquarium(language)["page_keeper"]])


@pytest.mark.parametrize(("language", "words"), WORDS)
async def test_the_example_of_a_short_plan_is_one_and_runs(language: str, words: Wording) -> None:
    tools = small_aquarium(language)
    ((_, reply),) = words.example_plans["small"]
    jsonschema_rs.validator_for(small_plan_schema(tools)).validate(json.loads(reply))
    reading = parse(reply, tools=tools)
    assert isinstance(reading, Plan)
    assert (reading.repairs, check(reading, tools).warnings) == ((), ())
    run = await run_plan(check(reading, tools), now="2026-03-18T09:00")
    assert run.outcome == "succeeded"
    assert "36.1 ppt" in str(run.text)
    assert [step.arguments and step.arguments.get("text") for step in run.steps][1] in ("K7: 36.1 ppt", "K7：36.1 ppt")


RARE = {"ceil", "chr", "divmod", "floor", "format", "isinstance", "next", "ord", "pow", "repr", "set_item", "tuple"}
"""Functions that models use unasked or hardly need, left out of the rules for brevity."""


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("words", [ENGLISH, CHINESE])
def test_the_rules_name_every_function_of_the_language(words: Wording, notation: Notation) -> None:
    spoken = set(re.findall(r"[a-z_]+", words.rules[notation]))
    assert set(FUNCTIONS) - spoken == RARE - spoken
    assert set(FUNCTIONS) >= RARE


CONSTRUCTS = {
    "no tools needed": {"steps": [], "answer": "Good morning."},
    "let of a text": {"steps": [{"let": {"city": "'Rome'"}}], "answer": "{city}"},
    "structures hold templates": {"steps": [{"let": {"x": ["{1 + 1}", {"a": "b{2}"}]}}], "answer": "{x}"},
    "while": {
        "steps": [{"let": {"n": "0"}}, {"while": "n < 3", "do": [{"let": {"n": "n + 1"}}], "max_iterations": 10}]
    },
    "parallel": {"steps": [{"parallel": [{"tool_name": "list_tanks", "arguments": {"hall": "a"}}]}]},
    "ask_model": {
        "steps": [
            {
                "ask_model": "Which day does the letter of {now} name?",
                "data": "['a letter', now]",
                "returns": {"type": ["string", "null"]},
                "result_variable": "day",
            },
        ],
        "answer": "It is {default(day, 'not named')}.",
    },
    "ask_user": {"steps": [{"ask_user": "Which of {[1, 2]}?", "result_variable": "which"}], "answer": "{which}"},
    "replan": {"steps": [{"replan": "Only the results of {now} tell."}]},
    "answer within": {"steps": [{"if": "now > '2026'", "then": [{"answer": "Now: {now}"}]}], "answer": "Before."},
    "literal": {
        "steps": [{"tool_name": "page_keeper", "arguments": {"name": "Bo", "text": {"$literal": "{now}"}}}],
        "answer": "{{now}} is written",
    },
}


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_what_the_rules_describe_is_accepted(construct: str) -> None:
    tools = aquarium("en")
    reading = parse(json.dumps(CONSTRUCTS[construct]), tools=tools)
    assert isinstance(reading, Plan)
    assert reading.repairs == ()
    assert check(reading, tools).plan.steps or construct == "no tools needed"


@pytest.mark.parametrize(
    "on_error", ["skip", "replan", {"value": "none"}, {"do": [{"answer": "The pager is broken."}]}]
)
def test_the_ways_to_go_on_after_a_failure_are_accepted(on_error: object) -> None:
    call = {"tool_name": "page_keeper", "arguments": {"name": "Bo", "text": "Hi"}, "on_error": on_error}
    reading = parse(json.dumps({"steps": [call], "answer": "Done."}), tools=aquarium("en"))
    assert isinstance(reading, Plan)
    assert check(reading, aquarium("en")).warnings == ()
    [step] = reading.steps
    assert isinstance(step, Call)
    assert step.on_error.action == (on_error if isinstance(on_error, str) else next(iter(on_error)))  # type: ignore[call-overload]


def test_a_request_that_cannot_be_met_is_recognised() -> None:
    reading = parse('{"cannot": "No tool sells.", "missing": ["a shop"]}', tools=aquarium("en"))
    assert isinstance(reading, CannotPlan)
    assert (reading.reason, list(reading.missing)) == ("No tool sells.", ["a shop"])
