"""Anything callable can be a tool: methods, partials, objects, wrappers, whatever its annotations look like."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import typing
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Annotated, Any, Optional

import pytest
from pydantic import BaseModel

from toolplan.errors import UsageError
from toolplan.tools import Tool, ToolContext, ToolSet, tool

if typing.TYPE_CHECKING:
    from fractions import Fraction as Hidden


class Account:
    """An account."""

    class Money(BaseModel):
        amount: int

    def __init__(self, base: int) -> None:
        self.base = base

    @tool(writes="account")
    def deposit(self, amount: int) -> int:
        """Put money in."""
        return self.base + amount

    def pay(self, money: Money) -> int:
        return self.base - money.amount

    @classmethod
    @tool
    def open(cls, name: str) -> str:
        return cls.__name__ + name

    @tool(pure=True)
    @staticmethod
    def add(a: int, b: int = 1) -> int:
        return a + b

    @tool(reads="bank")
    @classmethod
    def bank(cls) -> str:
        return "bank"


class Greeter:
    """Greets people."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def __call__(self, name: str) -> str:
        return f"{self.word} {name}"


def result(made: Tool, arguments: dict[str, Any], context: ToolContext | None = None) -> Any:
    raw = made.bind(arguments, context)()
    return asyncio.run(raw) if inspect.isawaitable(raw) else raw


def test_methods():
    tools = ToolSet.of([Account(3).deposit, Account(9).pay, Account.open, Account.add, Account.bank])
    assert tools.names == ("deposit", "pay", "open", "add", "bank")
    assert result(tools["deposit"], {"amount": 2}) == 5
    assert result(tools["pay"], {"money": {"amount": 2}}) == 7
    assert result(tools["open"], {"name": "x"}) == "Accountx"
    assert result(tools["add"], {"a": 2}) == 3
    assert tools["deposit"].effects.writes == ("account",)
    assert tools["add"].effects.declared
    assert tools["bank"].effects.reads == ("bank",)
    assert not tools["pay"].effects.declared
    assert tools["deposit"].description == "Put money in."
    assert "self" not in tools["deposit"].parameters["properties"]


def test_a_method_without_its_object_is_refused():
    with pytest.raises(UsageError, match=r"`Account.pay` .* is a method without its object; pass `instance.pay`"):
        Tool.of(Account.pay)


def test_decorated_functions_stay_functions():
    @tool(reads="x")
    def double(n: int) -> int:
        return 2 * n

    assert inspect.isfunction(double)
    assert double(2) == 4
    assert Account(1).deposit(1) == 2
    assert Account.add(1, 2) == 3


def test_callable_objects():
    made = Tool.of(Greeter("hello"))
    assert (made.name, made.description, made.is_async) == ("Greeter", "Greets people.", True)
    assert result(made, {"name": "Ann"}) == "hello Ann"
    named = tool(Greeter("hi"), name="greet", pure=True)
    assert Tool.of(named).name == "greet"
    with pytest.raises(UsageError, match="`Greeter` is a class"):
        Tool.of(Greeter)


def test_partials():
    def send(token: str, to: str, body: str = "-", *, urgent: bool = False) -> str:
        """Send it."""
        return f"{token} {to} {body} {urgent}"

    once = functools.partial(send, "secret")
    twice = functools.partial(once, urgent=True)
    odd = functools.partial(send, to="me")
    assert list(Tool.of(once).parameters["properties"]) == ["to", "body", "urgent"]
    assert list(Tool.of(twice).parameters["properties"]) == ["to", "body"]
    assert list(Tool.of(odd).parameters["properties"]) == ["token", "body", "urgent"]
    assert Tool.of(twice).name == "send"
    assert Tool.of(twice).description == "Send it."
    assert result(Tool.of(twice), {"to": "you"}) == "secret you - True"
    assert result(Tool.of(odd), {"token": "t"}) == "t me - False"


def test_partial_of_a_decorated_function_keeps_its_declaration():
    @tool(writes="mail:{to}", approval="ask")
    def send(token: str, to: str) -> None: ...

    made = Tool.of(functools.partial(send, "secret"))
    assert (made.effects.writes, made.approval) == (("mail:{to}",), "ask")


def test_lambdas_need_a_name():
    with pytest.raises(UsageError, match=r"a lambda has no name .*`tool\(function, name=...\)`"):
        Tool.of(lambda x: x)
    made = Tool.of(lambda x: x, name="same")
    assert result(made, {"x": [1]}) == [1]


def logged(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


def careless(function):
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


def test_wrapped_functions():
    @logged
    @tool(reads="a")
    def under(n: int) -> int:
        """Under."""
        return n

    @tool(reads="b")
    @logged
    def over(n: int) -> int:
        return n

    @careless
    def lost(n: int) -> int:
        return n

    tools = ToolSet.of([under, over])
    assert (tools["under"].effects.reads, tools["over"].effects.reads) == (("a",), ("b",))
    assert result(tools["under"], {"n": 2.0}) == 2
    with pytest.raises(UsageError, match=r"only `\*args, \*\*kwargs`.*functools.wraps"):
        Tool.of(lost)


def test_cached_functions_and_builtins():
    @functools.lru_cache
    def square(n: int) -> int:
        """Square."""
        return n * n

    assert result(Tool.of(square), {"n": 3}) == 9
    assert result(Tool.of(len), {"obj": [1, 2]}) == 2
    with pytest.raises(UsageError, match=r"the parameters of `type` cannot be read|is a class"):
        Tool.of(type)
    with pytest.raises(UsageError, match="must be a function or another callable, but found 'nope'"):
        Tool.of("nope")  # type: ignore[arg-type]


def local_tools():
    class Local(BaseModel):
        n: int

    @tool
    def marked(q: Local) -> Local:
        return q

    def bare(q: Local) -> Local:
        return q

    assert Tool.of(bare).parameters["required"] == ["q"]  # while its classes can still be found
    return marked, bare


def test_postponed_annotations_with_local_classes():
    marked, bare = local_tools()
    made = Tool.of(marked)
    assert result(made, {"q": {"n": 1}}).n == 1
    assert made.returns is not None
    assert made.returns["required"] == ["n"]
    with pytest.raises(UsageError, match=r"parameter `q` of `bare` \(.*\) has the annotation `Local`, which cannot"):
        Tool.of(bare)


def test_names_the_body_uses_are_found_in_the_closure():
    def make():
        class Box(BaseModel):
            n: int

        def boxed(q: Box):
            assert isinstance(q, Box)
            return q.n

        return boxed

    assert result(Tool.of(make()), {"q": {"n": 2}}) == 2


def test_unresolvable_annotations():
    def hidden(x: Hidden): ...

    def described(x: "the city's name"): ...  # type: ignore[valid-type] # noqa: F722

    def returns_hidden(x: int) -> Hidden: ...

    with pytest.raises(UsageError, match=r"parameter `x` of `hidden` .*`Hidden`.*TYPE_CHECKING"):
        Tool.of(hidden)
    with pytest.raises(UsageError, match=r"Annotated\[str, "):
        Tool.of(described)
    assert Tool.of(returns_hidden).returns is None


@pytest.mark.parametrize(
    "hint", ["ToolContext", "Optional[ToolContext]", "ToolContext | None", "Annotated[ToolContext, 1]"]
)
def test_context_is_hidden_and_filled(hint):
    def f(a: int, whatever, b: int = 2, /, *, c: int = 3):
        return a, whatever, b, c

    f.__annotations__["whatever"] = hint
    made = Tool.of(f)
    assert list(made.parameters["properties"]) == ["a", "b", "c"]
    assert made.takes_context
    context = ToolContext(run_id="r", step_id="s1", idempotency_key="r:s1")
    assert result(made, {"a": 1, "c": 4}, context) == (1, context, 2, 4)
    empty = result(made, {"a": 1})[1]
    assert empty.run_id == ""
    empty.progress("nobody hears this")


def test_context_only_imported_for_type_checkers():
    space: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef f(ctx: ToolContext, n: int): return n", space)
    assert list(Tool.of(space["f"]).parameters["properties"]) == ["n"]


async def numbers(n: int) -> AsyncIterator[int]:
    for i in range(n):
        yield i


def counted(n: int) -> Iterator[int]:
    yield from range(n)


def test_what_is_iterated_over_becomes_a_list():
    assert result(Tool.of(numbers), {"n": 3}) == [0, 1, 2]
    assert Tool.of(numbers).is_async
    assert result(Tool.of(counted), {"n": 3}) == [0, 1, 2]
    for function in (numbers, counted):
        assert Tool.of(function).returns == {"type": "array", "items": {"type": "integer"}}


def test_async_in_disguise():
    async def real(n: int) -> int:
        return n

    def promised(n: int) -> Awaitable[int]:
        return real(n)

    @logged
    async def wrapped(n: int) -> int:
        return n

    assert Tool.of(real).is_async
    assert Tool.of(promised).is_async
    assert Tool.of(promised).returns == {"type": "integer"}
    assert Tool.of(functools.partial(real)).is_async
    assert result(Tool.of(wrapped), {"n": 4}) == 4


def heavy(n: int, tags: list[str] | None = None) -> int:
    return n


def heavy_numbers(n: int) -> Iterator[int]:
    yield n


def test_calls_can_go_to_another_process():
    made = Tool.of(heavy, runs_in="process")
    assert pickle.loads(pickle.dumps(made.bind({"n": 2.0, "tags": ["a"]})))() == 2
    assert pickle.loads(pickle.dumps(Tool.of(heavy_numbers, runs_in="process").bind({"n": 2})))() == [2]

    def contextual(ctx: ToolContext): ...

    with pytest.raises(UsageError, match="takes a ToolContext, which cannot go to another process"):
        Tool.of(contextual, runs_in="process")
    with pytest.raises(UsageError, match="is async, so it runs in the loop"):
        Tool.of(numbers, runs_in="thread")


_ = (Optional, Annotated)  # named by text annotations above
