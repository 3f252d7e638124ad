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
        ("ms = letter()\nsend(to=max(ms, key=lambda m, /: m.body).sender)", True),
        ("ms = letter()\nsend(to=max(ms, key=lambda m, /: m.date).sender)", False),
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


def test_a_condition_counts_for_what_follows_a_handler_that_may_end_the_plan() -> None:
    plan = [
        {"tool_name": "mail", "result_variable": "m"},
        {
            "if": "m.urgent",
            "then": [{"tool_name": "contact", "arguments": {}, "on_error": {"do": [{"answer": "no"}]}}],
        },
        {"tool_name": "send", "arguments": {"to": "a"}},
    ]
    checked = check(parse(plan, "json", TOOLS), TOOLS)
    (call,) = [call for call in trace(checked.plan, TOOLS).calls.values() if "to" in call.arguments]
    assert call.condition


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
        ("m = letter()\nfor k in ['sender', 'body']:\n    send(to=m[k].text)", True),
        ("m = letter()\nk = 'body'\nsend(to=m[k]['text'])", True),
        ("ms = letter()\nfor i in range(len(ms)):\n    send(to=ms[i].sender)", False),
        ("ms = letter()\nc = contact()\nsend(to=ms[c.count - 1].sender)", False),
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
    found = Sources(untrusted=frozenset(["s1", "s2"]), length=frozenset(["s2"]))
    assert Sources.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # Whether there is anything, and how much, is not what stands in it.
        ("ms = letter()\nif not ms:\n    return 'none'\nm = ms[0]\nsend(to=m.sender)", False),
        ("ms = letter()\nto = 'a'\nif ms:\n    to = 'b'\nsend(to=to)", False),
        ("ms = letter()\nsend(to='a', n=len(ms))", False),
        ("ms = letter()\nbodies = [m.body for m in ms]\nsend(to='a', n=len(bodies))", False),
        ("ms = letter()\nbodies = [m.body for m in ms if m.date == 'x']\nsend(to='a', n=len(bodies))", False),
        ("ms = letter()\nbodies = [m.body for m in ms if m.body == 'x']\nsend(to='a', n=len(bodies))", True),
        (
            "ms = letter()\nxs = []\nfor m in ms:\n    if m.date == 'x':\n        xs = xs + [m.body]\n"
            "send(to='a', n=len(xs))",
            False,
        ),
        (
            "ms = letter()\nxs = []\nfor m in ms:\n    if m.body == 'x':\n        xs = xs + [m.sender]\n"
            "send(to='a', n=len(xs))",
            True,
        ),
        ("ms = letter()\nxs = []\nfor m in ms:\n    xs = xs + [m.body]\nsend(to='a', n=xs)", True),
        ("ms = letter()\nsend(to='a', n=len(ms[0].body))", True),
        ("ms = mail()\nsend(to='a', n=len(ms))", True),
        ("ms = mail()\nsend(to='a', n=len([1 for m in ms]))", True),
        ("ms = letter()\nsend(to='a', n=1 if ms[0].body else 2)", True),
        ("ms = letter()\nsend(to='a', n=1 if ms == [] else 2)", False),
        ("m = letter()\nsend(to='a', n=1 if m is None else 2)", False),
        ("m = letter()\nsend(to='a', n=1 if m.body is None else 2)", True),
        ("ms = letter()\nsend(to='a', n=len(set([m.body for m in ms])))", True),
        ("ms = letter()\nsend(to='a', n=(ms or [])[0].sender)", False),
        ("ms = letter()\nsend(to='a', n=(ms[0].body or 'x'))", True),
        ("ms = letter()\nc = contact()\nsend(to='a', n=(ms[0].body and c.x))", True),
        ("ms = letter()\nsend(to='a', n=next((m for m in ms if m.date == 'x'), None).sender)", False),
        ("ms = letter()\nsend(to='a', n=next((m for m in ms if m.body == 'x'), None).sender)", True),
        ("ms = letter()\nsend(to='a', n=[m.sender for i, m in enumerate(ms)])", False),
        # A value that is there in any case is not chosen by what leads past it.
        ("m = mail()\nc = contact()\nif m.x:\n    return 'no'\nto = c.email\nsend(to='a', n=to)", False),
        # The best of all, by what is not other people's text.
        (
            "ms = letter()\nbest = ms[0]\nfor m in ms:\n    if m.size > best.size:\n        best = m\n"
            "send(to='a', n=best.sender)",
            False,
        ),
        (
            "ms = letter()\nbest = ms[0]\nfor m in ms:\n    if m.body > best.body:\n        best = m\n"
            "send(to='a', n=best.sender)",
            True,
        ),
    ],
)
def test_how_many_there_are_is_kept_apart_from_what_they_say(program: str, expected: bool) -> None:
    assert untrusted(program, "n" if "n=" in program else "to") == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("ms = letter()\nfor m in ms:\n    send(to=m.sender)", False),
        ("ms = letter()\nfor m in ms:\n    if m.date == 'x':\n        send(to=m.sender)", False),
        ("ms = letter()\nfor m in ms:\n    if m.body == 'x':\n        send(to=m.sender)", True),
        ("ms = letter()\nfor m in ms:\n    if m.body != 'x':\n        continue\n    send(to=m.sender)", True),
        ("ms = letter()\nfor m in ms:\n    send(to=m.sender)\n    if m.body == 'x':\n        break", True),
        ("ms = letter()\nfor m in ms:\n    who = m.sender\n    if m.body == 'x':\n        send(to=who)", True),
        ("ms = letter()\nfor m in ms:\n    if m.body == 'x':\n        send(to='ann')", False),
        ("ms = letter()\nfor m in ms:\n    for w in m.body.split():\n        send(to=m.sender)", True),
        ("ms = letter()\nfor m in ms:\n    if m.body == 'x':\n        n = 1\n    send(to=m.sender)", False),
        (
            "ms = letter()\nc = contact()\ni = 0\nwhile i < 9 and ms[i].body != 'x':\n    send(to=c.rows[i])\n"
            "    i += 1",
            True,
        ),
        (
            "ms = letter()\nc = contact()\ni = 0\nwhile i < 9 and ms[i].date != 'x':\n    send(to=c.rows[i])\n"
            "    i += 1",
            False,
        ),
        # Two values of one source are two values.
        ("m = mail()\nc = contact()\nto = c.rows[0].email\nif m.urgent:\n    to = c.rows[1].email\nsend(to=to)", True),
        ("m = mail()\nc = contact()\nto = c.a\nif m.urgent:\n    to = c.b\nelse:\n    to = c.c\nsend(to=to)", True),
        ("ms = mail()\nc = contact()\nto = c.rows[0]\nfor m in ms:\n    to = c.rows[1]\nsend(to=to)", True),
    ],
)
def test_text_that_decides_for_which_elements_a_call_is_made_chooses_them(program: str, expected: bool) -> None:
    assert untrusted(program) == expected


FILE = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "name": {"type": "string"}, "shared": {"type": "object"}},
}
OPEN = {"type": "object", "additionalProperties": True}


@pytest.mark.parametrize(
    ("declared", "text", "expected"),
    [
        ({}, "f.id", True),
        ({"assigns": "id"}, "f.id", False),
        ({"assigns": "id"}, "f.name", True),
        ({"assigns": "id"}, "f", True),
        ({"assigns": "id"}, "f.shared", True),
        ({"assigns": "id"}, "f.shared.other", True),
        ({"assigns": "id", "untrusted": ("name",)}, "f.id", False),
        ({"assigns": "id", "untrusted": True}, "f.id", False),
        ({"assigns": "id", "untrusted": True}, "f.name", True),
        ({"assigns": True}, "f", False),
    ],
)
def test_what_a_tool_assigns_itself_no_argument_chooses(declared: dict[str, Any], text: str, expected: bool) -> None:
    made = Tool.from_schema("create", "", OPEN, lambda **_: None, FILE, writes="files", **declared)
    tools = ToolSet.of([*TOOLS, made])
    plan = check(parse(f"m = mail()\nf = create(content=m.text)\nsend(to={text})", "python", tools), tools).plan
    assert trace(plan, tools).calls["s3"].arguments["to"].is_untrusted == expected


def test_of_two_things_made_the_one_that_text_chose_is_chosen_by_it() -> None:
    made = Tool.from_schema("create", "", OPEN, lambda **_: None, FILE, writes="files", assigns="id")
    tools = ToolSet.of([*TOOLS, made])
    program = "m = mail()\na = create(n=1)\nb = create(n=2)\nsend(to=a.id if m.x else b.id)"
    plan = check(parse(program, "python", tools), tools).plan
    assert trace(plan, tools).calls["s4"].arguments["to"].is_untrusted


def test_what_a_tool_assigns_has_to_be_known() -> None:
    from toolplan import UsageError

    def declare(returns: Any = FILE, **declared: Any) -> None:
        ToolSet.of([Tool.from_schema("create", "", OPEN, lambda **_: None, returns, **declared)])

    with pytest.raises(UsageError, match="give the result a type"):
        declare(OPEN, writes="f", assigns="id")
    with pytest.raises(UsageError, match="`assigns` names `ident`, which is no field"):
        declare(writes="f", assigns="ident")
    with pytest.raises(UsageError, match="declared to change nothing"):
        declare(reads="f", assigns="id")
    with pytest.raises(UsageError, match="is not `untrusted`"):
        declare(writes="f", assigns=True, untrusted=True)
