"""`route`, and `--route` of `ask` and `prompt`."""

from __future__ import annotations

import pytest

from toolplan.cli.routing import intents_of
from toolplan.errors import UsageError

TOOLS_FILE = ("--tools", "office.py")


def test_scores_and_reasons(office) -> None:
    done = office("route", "what is the weather?", *TOOLS_FILE, "--top", "1", "--always", "get_weather")
    assert done.code == 0
    assert "chosen, 1 of 4 tools:" in done.out
    assert "always; words weather" in done.out
    assert "3 more left out" in done.out
    assert "saved in every prompt" in done.out


def test_what_is_left_out_comes_with_its_reasons(office) -> None:
    done = office(
        "route", "weather, email, pay", *TOOLS_FILE, "--top", "1", "--intent", "pay=pay", "--intent", "天=pay"
    )
    assert "keyword pay" in done.out
    assert "left out, the likeliest first:" in done.out


def test_the_document(office) -> None:
    document = office("route", "the weather", *TOOLS_FILE, "--top", "1", "--max-tokens", "500", "--json").document
    assert document["tools"] == ["get_weather"]
    assert document["matches"][0]["words"] == ["weather"]
    assert set(document) == {
        "request",
        "tools",
        "matches",
        "left_out",
        "tokens",
        "blind",
        "tokens_of_all",
        "tokens_saved",
    }


def test_tools_for_which_nothing_speaks_are_not_called_related_where_all_are_chosen(office) -> None:
    out = office("route", "what is the weather?", *TOOLS_FILE, "--top", "9").out
    assert "chosen, 4 of 4 tools:" in out
    assert "room for all" in out
    assert "related" not in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--top", "0"), "`top` is 0"),
        (("--always", "get_wether"), "did you mean `get_weather`?"),
        (("--intent", "天气"), "`--intent 天气` names no word or no tool"),
        (("--intent", "=pay"), "names no word or no tool"),
        (("--intent", "天气=nobody"), "`intents` names `nobody`"),
    ],
)
def test_what_cannot_be(office, options: tuple[str, ...], message: str) -> None:
    done = office("route", "hello", *TOOLS_FILE, *options)
    assert done.code == 2
    assert message in done.err


def test_prompt_with_fewer_tools(office) -> None:
    all_of_it = office("prompt", "the weather", *TOOLS_FILE, "--json").document
    routed = office("prompt", "the weather", *TOOLS_FILE, "--route", "1", "--json").document
    assert routed["tokens"]["tools"] < all_of_it["tokens"]["tools"]
    system = routed["messages"][0]["content"]
    assert "get_weather(" in system
    assert "pay(" not in system
    assert "shown by name only" in system


def test_ask_with_fewer_tools(office) -> None:
    call = {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}
    model = ("--model", office.model({"steps": [call], "answer": "{w.city}"}))
    done = office("ask", "the weather in Oslo", *TOOLS_FILE, *model, "--route", "1", "--json")
    assert (done.document["outcome"], done.document["shown_tools"]) == ("succeeded", ["get_weather"])


def test_intents() -> None:
    assert intents_of(["天气=a, b", "天气=c", "mail=d,"]) == {"天气": ["a", "b", "c"], "mail": ["d"]}
    with pytest.raises(UsageError):
        intents_of(["x="])
