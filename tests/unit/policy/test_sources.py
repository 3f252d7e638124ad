"""Where the arguments of calls come from."""

from __future__ import annotations

from typing import Any

import pytest

from toolplan import Tool, ToolSet, check, parse
from toolplan.policy.trace import CallSources, trace


def make(name: str, **declared: Any) -> Tool:
    return Tool.from_schema(name, "", {"type": "object", "additionalProperties": True}, lambda **_: None, **declared)


TOOLS = ToolSet.of(
    [
        make("contact", reads="contacts"),
        make("mail", reads="mailbox", untrusted=True),
        make("letter", reads="letters", untrusted=("body", "subject")),
        make("send", writes="mailbox"),
        make("pure", pure=True),
    ]
)


def traced(program: str) -> dict[str, CallSources]:
    plan = parse(program, "python", TOOLS)
    return dict(trace(check(plan, TOOLS).plan, TOOLS).calls)


def untrusted(program: str, argument: str = "to", tool: str = "send") -> bool:
    plan = check(parse(program, "python", TOOLS), TOOLS).plan
    calls = trace(plan, TOOLS).calls
    from toolplan.plan import Call, walk

    (step,) = [s for s in walk(plan.steps) if isinstance(s, Call) and s.tool == tool]
    return calls[step.id].arguments[argument].is_untrusted


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('send(to="ann")', False),
        ("m = mail()\nsend(to=m.sender)", True),
        ('c = contact(name="Ann")\nsend(to=c.email)', False),
        ("m = mail()\nc = contact(name=m.sender)\nsend(to=c.email)", True),
        ('m = mail()\nsend(to="x", body=m.text)', False),
        ('m = mail()\nsend(to=f"{m.a}@b.org")', True),
        ("m = mail()\nxs = [m.a, 'b']\nsend(to=xs[1])", True),
        ("m = mail()\nn = len(m.items)\nsend(to=str(n))", True),
        ("m = letter()\nsend(to=m.sender)", False),
        ("m = letter()\nsend(to=m.body)", True),
        ("m = letter()\nsend(to=m)", True),
        ("ms = letter()\nsend(to=ms[0].sender)", False),
        ("ms = letter()\nsend(to=[m.sender for m in ms])", False),
        ("ms = letter()\nsend(to=[m.sender for m in ms if 'x' in m.body])", True),
        ("ms = letter()\nsend(to=sorted(ms, key=lambda m: m.body)[0].sender)", True),
        ("ms = letter()\nsend(to=sorted(ms, key=lambda m: m.date)[0].sender)", False),
        ('ms = letter()\nsend(to=ms.get("sender"))', False),
        ('ms = letter()\nsend(to=ms.get("body"))', True),
        ("m = mail()\nto = 'a'\nif m.urgent:\n    to = 'b'\nsend(to=to)", True),
        ("m = letter()\nto = 'a'\nif m.sender == 'x':\n    to = 'b'\nsend(to=to)", False),
        ("ms = mail()\nto = 'a'\nfor m in ms:\n    to = 'b'\nsend(to=to)", True),
        ("ms = mail()\nc = contact()\nto = 'a'\nfor x in c.rows:\n    send(to=to)\n    to = ms.sender", True),
        ("m = pure(x=1)\nsend(to=m)", False),
        ("x = mail()\nm = pure(x=x)\nsend(to=m)", True),
        ("m = mail()\nx = ask_model('who?', m, {'type': 'string'})\nsend(to=x)", True),
        ("c = contact()\nx = ask_model('who?', c, {'type': 'string'})\nsend(to=x)", False),
    ],
)
def test_untrusted_text_is_followed(program: str, expected: bool) -> None:
    assert untrusted(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("m = mail()\nsend(to='a')", False),
        ("m = mail()\nif m.urgent:\n    send(to='a')", True),
        ("c = contact()\nif c.urgent:\n    send(to='a')", False),
        ("m = mail()\nif m.urgent:\n    return 'no'\nsend(to='a')", True),
        ("ms = mail()\nfor m in ms:\n    send(to='a')", True),
        ("ms = mail()\ncs = contact()\nfor c in cs:\n    if ms.full:\n        break\n    send(to='a')", True),
        ("ms = mail()\ncs = contact()\nfor c in cs:\n    send(to='a')\n    if ms.full:\n        break", True),
        ("ms = mail()\ncs = contact()\nfor c in cs:\n    if ms.full:\n        break\nsend(to='a')", False),
    ],
)
def test_the_condition_that_led_there_is_known(program: str, expected: bool) -> None:
    (call,) = [call for call in traced(program).values() if "to" in call.arguments]
    assert bool(call.condition) == expected


def test_words_of_the_plan_are_kept_and_results_are_not_words() -> None:
    program = "c = contact(name='Ann')\nsend(to=c.email, subject=f'Hello {c.name}', n=3 + 4, flag=True)"
    calls = traced(program)
    send = next(call for call in calls.values() if "to" in call.arguments)
    assert send.arguments["to"].words == ()
    assert send.arguments["to"].steps == {"s1"}
    assert send.arguments["subject"].words == ("Hello ",)
    assert send.arguments["n"].words == (3, 4)
    assert send.arguments["flag"].words == ()


def test_deep_nesting_takes_no_time() -> None:
    depth = 15
    lines = ["m = mail()", "to = 'a'"]
    for level in range(depth):
        lines.append("    " * level + f"for x{level} in [1, 2]:")
    lines.append("    " * depth + "send(to=to)")
    lines.append("    " * depth + "to = m.sender")
    assert untrusted("\n".join(lines))


def test_the_plans_own_inputs_are_its_words() -> None:
    text = '{"inputs": {"to": "eve"}, "steps": [{"tool_name": "send", "arguments": {"to": "{to}"}}]}'
    plan = check(parse(text, tools=TOOLS), TOOLS).plan  # type: ignore[arg-type]
    assert trace(plan, TOOLS).calls["s1"].arguments["to"].words == ("eve",)


def test_what_a_reader_words_is_known_to_be() -> None:
    found = traced('x = ask_model("Who?", data="-", returns={"type": "string"})\nsend(to=x, body="b")')
    assert (found["s2"].arguments["to"].written, found["s2"].arguments["body"].written) == ({"s1"}, frozenset())


@pytest.mark.parametrize(
    ("value", "words"),
    [("+500", (500,)), ("-500", (-500,)), ("-(-5000)", (5000,)), ("abs(-5000)", (-5000,)), ("not 5", ())],
)
def test_a_sign_keeps_the_word(value: str, words: tuple[object, ...]) -> None:
    assert traced(f"send(to='a', n={value})")["s1"].arguments["n"].words == words
    assert traced("total = 5000\nsend(to='a', n=-total)")["s2"].arguments["n"].words == (5000,)


def test_the_keys_of_an_object_are_words_of_whoever_wrote_it() -> None:
    from toolplan.policy.said import unsaid

    def missing(program: str) -> list[str]:
        found = next(call for call in traced(program).values() if "to" in call.arguments)
        return unsaid(found.arguments["to"].words, "to ann")

    assert missing("send(to={'eve@evil.net': True})") == ["eve@evil.net"]
    assert missing("m = contact()\nsend(to={'eve@evil.net': m.x})") == ["eve@evil.net"]
    assert missing("m = contact()\nx = {'a': {'eve@evil.net': m.x}}\nsend(to=x.a)") == ["eve@evil.net"]
    assert missing("x = {'who': 'ann', 'amount': True}\nsend(to=x.who)") == []


def test_the_error_of_a_call_anywhere_in_a_try_holds_what_the_call_holds() -> None:
    loop = "try:\n    for a in ['x']:\n        mail(about=a)\nexcept Exception as e:\n    send(to=str(e))"
    assert untrusted(loop)
    assert not untrusted(loop.replace("mail(", "contact("))


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("m = letter()\nsend(to=m.mails[0].body)", True),
        ("m = letter()\nsend(to=m.message.body)", True),
        ("m = letter()\nsend(to=m.message.body.text)", True),
        ("m = letter()\nsend(to=m.message.sender)", False),
        ("m = letter()\nfor k in m['mails']:\n    send(to=k['body'])", True),
        ("m = letter()\nx = m.get('message')\nsend(to=x['body'])", True),
    ],
)
def test_an_untrusted_field_is_so_at_any_depth(program: str, expected: bool) -> None:
    assert untrusted(program) == expected


def test_an_object_that_holds_an_untrusted_field_is_untrusted_as_its_schema_says() -> None:
    message = {"type": "object", "properties": {"sender": {}, "body": {"type": "string"}}}
    returns = {
        "type": "object",
        "properties": {"n": {}, "message": {"$ref": "#/$defs/M"}, "mails": {"type": "array", "items": message}},
        "$defs": {"M": message},
    }
    open_ = {"type": "object", "additionalProperties": True}
    tools = ToolSet.of(
        [
            Tool.from_schema("letter", "", open_, lambda **_: None, returns, reads="l", untrusted=("body",)),
            make("send", writes="mailbox"),
        ]
    )
    for text, expected in [("m.message", True), ("m.mails", True), ("m.mails[0]", True), ("m.n", False),
                           ("m.message.sender", False), ("m.mails[0].body", True)]:  # fmt: skip
        plan = check(parse(f"m = letter()\nsend(to={text})", "python", tools), tools).plan
        assert trace(plan, tools).calls["s2"].arguments["to"].is_untrusted == expected, text


def test_sources_survive_being_written_down() -> None:
    from toolplan.policy.sources import Sources

    found = Sources(fields={"body": frozenset(["s1"])}, containers=frozenset(["message"]), is_inside=True)
    assert Sources.from_json(found.to_json()) == found
