"""A key that the host puts into an argument: the same for every attempt at one call, another for every other."""

from __future__ import annotations

import pytest

from toolplan import Agent, Tool, ToolContext, UsageError, tool


@tool(writes="payments", idempotency="argument:key", retry=3)
def pay(to: str, key: str) -> str:
    """Pay.

    Args:
        to: who gets it
        key: the key
    """
    KEYS.append((to, key))
    if len(KEYS) == 1:
        raise ConnectionResetError("gone")
    return key


KEYS: list[tuple[str, str]] = []


def test_nobody_but_the_tool_sees_the_key() -> None:
    made = Tool.of(pay)
    assert "key" not in made.parameters["properties"]
    assert made.parameters["required"] == ["to"]
    assert "key" not in made.signature
    assert made.idempotent
    assert not made.accepts({"to": "a", "key": "mine"})


async def test_attempts_share_a_key_and_calls_do_not() -> None:
    KEYS.clear()
    plan = [
        {"for_each": '["a", "b"]', "as": "n", "do": [{"tool_name": "pay", "arguments": {"to": "{n}"}}]},
        {"tool_name": "pay", "arguments": {"to": "a"}},
    ]
    result = await Agent(tools=[pay], policy="declared", answer="none").run_plan(plan)
    assert result.outcome == "succeeded", result.error
    run = result.run_id
    assert len(KEYS) == 4
    assert {key for _, key in KEYS} == {f"{run}:s2[0]", f"{run}:s2[1]", f"{run}:s3"}


def test_declared_on_a_tool_with_given_schemas_and_taken_back() -> None:
    schema = {"properties": {"q": {"type": "string"}, "key": {"type": "string"}}, "required": ["q", "key"]}
    made = Tool.from_schema("send", "", schema, lambda q, key: key, idempotency="argument:key")
    assert list(made.parameters["properties"]) == ["q"]
    assert made.bind({"q": "x"})() == ""
    named = made.changed(name="other")
    assert named.idempotent
    assert not named.accepts({"q": "x", "key": "y"})


@pytest.mark.parametrize("wrong", ["key", "header:", "cookie:key", 3])
def test_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError, match="argument:NAME"):
        Tool.of(pay, idempotency=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["two words", "Key:", "Schlüssel", "a\nb", "key "])
def test_a_header_whose_name_cannot_be_sent_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="has no spaces, accents or colons"):

        @tool(writes="payments", idempotency=f"header:{wrong}")
        def charge(ctx: ToolContext, to: str) -> str:  # pyright: ignore[reportUnusedFunction]
            return to


def test_a_header_that_nobody_would_send_is_refused() -> None:
    @tool(writes="payments", idempotency="header:Idempotency-Key")
    def charge(to: str) -> str:
        return to

    with pytest.raises(UsageError, match=r"no parameter takes it; add `ctx: ToolContext` and send `ctx\.headers`"):
        Tool.of(charge)


def test_a_header_holds_the_key_of_the_call() -> None:
    @tool(writes="payments", idempotency="header:Idempotency-Key")
    def charge(ctx: ToolContext, to: str) -> dict[str, str]:
        return dict(ctx.headers)

    made = Tool.of(charge)
    assert made.idempotent
    assert made.to_json()["idempotency"] == "header:Idempotency-Key"
    assert made.bind({"to": "a"}, ToolContext(idempotency_key="r:s1"))() == {"Idempotency-Key": "r:s1"}
    assert made.bind({"to": "a"}, ToolContext())() == {}
    assert made.bind({"to": "a"})() == {}
    other = made.changed(idempotency="header:X-Request-Id")
    assert other.bind({"to": "a"}, ToolContext(idempotency_key="r:s1"))() == {"X-Request-Id": "r:s1"}
    assert made.changed(idempotency=None).bind({"to": "a"}, ToolContext(idempotency_key="r:s1"))() == {}


def test_a_name_that_is_no_parameter_is_refused() -> None:
    with pytest.raises(UsageError, match="names `token`, but the parameters are: `to`, `key`"):
        Tool.of(pay, idempotency="argument:token")
