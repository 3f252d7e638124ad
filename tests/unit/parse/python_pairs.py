"""The same plans in both notations."""

from __future__ import annotations

from typing import Any

PAIRS: dict[str, tuple[str, Any]] = {
    "a call": (
        'w = get_weather(city="Oslo", days=3)\nreturn w.condition',
        [
            {"tool_name": "get_weather", "arguments": {"city": "Oslo", "days": 3}, "result_variable": "w"},
            {"answer": "{w.condition}"},
        ],
    ),
    "a call without a result": ('send(to="a")', [{"tool_name": "send", "arguments": {"to": "a"}}]),
    "arguments of all kinds": (
        'f(a=None, b=True, c=-1.5, d=[1, "x"], e={"k": [y.z]}, g=y)',
        [
            {
                "tool_name": "f",
                "arguments": {
                    "a": None,
                    "b": True,
                    "c": -1.5,
                    "d": [1, "x"],
                    "e": {"k": ["{y.z}"]},
                    "g": "{y}",
                },
            }
        ],
    ),
    "text with values": (
        "send(text=f\"Dear {c.name}, {total:.2f} and {x['k']!r} {{}}\")",
        [{"tool_name": "send", "arguments": {"text": "Dear {c.name}, {total:.2f} and {x['k']!r} {{}}"}}],
    ),
    "text with braces": ('send(text="{x} {}")', [{"tool_name": "send", "arguments": {"text": {"$literal": "{x} {}"}}}]),
    "text beside text": ('send(text="a" f"{b}" "c")', [{"tool_name": "send", "arguments": {"text": "a{b}c"}}]),
    "a number computed": ("x = a.price * 2 + 1", [{"let": {"x": "a.price * 2 + 1"}}]),
    "a constant": ("x = 5", [{"let": {"x": 5}}]),
    "a list": ("x = [a, 2]", [{"let": {"x": ["{a}", 2]}}]),
    "an object": ('x = {"a": b, "c": "d"}', [{"let": {"x": {"a": "{b}", "c": "d"}}}]),
    "a comprehension": (
        'x = [r.name for r in rows if r.city == "Oslo"]',
        [{"let": {"x": '[r.name for r in rows if r.city == "Oslo"]'}}],
    ),
    "a branch": (
        'if a > 1:\n    send(to="x")\nelse:\n    send(to="y")',
        [
            {
                "if": "a > 1",
                "then": [{"tool_name": "send", "arguments": {"to": "x"}}],
                "else": [{"tool_name": "send", "arguments": {"to": "y"}}],
            }
        ],
    ),
    "a branch with one side": (
        'if not a:\n    answer("no")',
        [{"if": "not a", "then": [{"answer": "no"}]}],
    ),
    "elif": (
        "if a == 1:\n    f()\nelif a == 2:\n    g()\nelse:\n    h()",
        [
            {
                "if": "a == 1",
                "then": [{"tool_name": "f"}],
                "else": [{"if": "a == 2", "then": [{"tool_name": "g"}], "else": [{"tool_name": "h"}]}],
            }
        ],
    ),
    "a loop": (
        "for r in rows:\n    send(to=r.email)",
        [{"for_each": "rows", "as": "r", "do": [{"tool_name": "send", "arguments": {"to": "{r.email}"}}]}],
    ),
    "a loop over a list that is written out": (
        'for c in ["Oslo", x]:\n    get(city=c)',
        [{"for_each": ["Oslo", "{x}"], "as": "c", "do": [{"tool_name": "get", "arguments": {"city": "{c}"}}]}],
    ),
    "a loop that collects": (
        "ws = [get(city=c) for c in cities]",
        [
            {
                "for_each": "cities",
                "as": "c",
                "do": [{"tool_name": "get", "arguments": {"city": "{c}"}, "result_variable": "_1"}],
                "collect": "_1",
                "result_variable": "ws",
            }
        ],
    ),
    "a loop that collects a part": (
        'ws = [f"{c}: {get(city=c).temp}" for c in cities]',
        [
            {
                "for_each": "cities",
                "as": "c",
                "do": [{"tool_name": "get", "arguments": {"city": "{c}"}, "result_variable": "_1"}],
                "collect": {"$text": "{c}: {_1.temp}"},
                "result_variable": "ws",
            }
        ],
    ),
    "a loop over what fits": (
        "ws = [get(city=c.name) for c in cities if c.big]",
        [
            {
                "for_each": "[c for c in cities if c.big]",
                "as": "c",
                "do": [{"tool_name": "get", "arguments": {"city": "{c.name}"}, "result_variable": "_1"}],
                "collect": "_1",
                "result_variable": "ws",
            }
        ],
    ),
    "a loop that collects some": (
        "ok = [u for u in urls if check(url=u).ok]",
        [
            {
                "for_each": "urls",
                "as": "u",
                "do": [{"tool_name": "check", "arguments": {"url": "{u}"}, "result_variable": "_1"}],
                "collect": "u",
                "collect_if": "_1.ok",
                "result_variable": "ok",
            }
        ],
    ),
    "break and continue": (
        "for r in rows:\n    if r.bad:\n        continue\n    if r.last:\n        break\n    f(x=r.id)",
        [
            {
                "for_each": "rows",
                "as": "r",
                "do": [
                    {"if": "r.bad", "then": [{"continue": True}]},
                    {"if": "r.last", "then": [{"break": True}]},
                    {"tool_name": "f", "arguments": {"x": "{r.id}"}},
                ],
            }
        ],
    ),
    "a bounded while": (
        "n = 0\nwhile n < 5:\n    f(x=n)\n    n += 1",
        [
            {"let": {"n": 0}},
            {
                "while": "n < 5",
                "do": [{"tool_name": "f", "arguments": {"x": "{n}"}}, {"let": {"n": "n + 1"}}],
                "max_iterations": 5,
            },
        ],
    ),
    "a while with a stated bound": (
        "while not job.done:  # max_iterations: 20\n    job = get(id=job.id)",
        [
            {
                "while": "not job.done",
                "do": [{"tool_name": "get", "arguments": {"id": "{job.id}"}, "result_variable": "job"}],
                "max_iterations": 20,
            }
        ],
    ),
    "an accumulator": (
        'xs = []\nfor r in rows:\n    xs.append(r.id)\nreturn f"{len(xs)} rows"',
        [
            {"let": {"xs": []}},
            {"for_each": "rows", "as": "r", "do": [{"let": {"xs": "xs + [r.id]"}}]},
            {"answer": "{len(xs)} rows"},
        ],
    ),
    "item assignment": (
        'd = {}\nd["a"] = b.c',
        [{"let": {"d": {}}}, {"let": {"d": 'set_item(d, "a", b.c)'}}],
    ),
    "nested calls": (
        "send(to=get(id=1).email)",
        [
            {"tool_name": "get", "arguments": {"id": 1}, "result_variable": "_1"},
            {"tool_name": "send", "arguments": {"to": "{_1.email}"}},
        ],
    ),
    "a call in a condition": (
        "if check(x=1).ok:\n    f()",
        [
            {"tool_name": "check", "arguments": {"x": 1}, "result_variable": "_1"},
            {"if": "_1.ok", "then": [{"tool_name": "f"}]},
        ],
    ),
    "a call on one side only": (
        "x = get(id=1) if a else None",
        [
            {
                "if": "a",
                "then": [{"tool_name": "get", "arguments": {"id": 1}, "result_variable": "x"}],
                "else": [{"let": {"x": None}}],
            }
        ],
    ),
    "a call only if needed": (
        "x = a or get(id=1)",
        [
            {"let": {"_1": "a"}},
            {"if": "not _1", "then": [{"tool_name": "get", "arguments": {"id": 1}, "result_variable": "_1"}]},
            {"let": {"x": "_1"}},
        ],
    ),
    "several targets": (
        "a, b = pair()",
        [{"tool_name": "pair", "result_variable": "_1"}, {"let": {"a": "_1[0]", "b": "_1[1]"}}],
    ),
    "gather": (
        "a, b = await asyncio.gather(f(), g(x=1))",
        [
            {"tool_name": "f", "result_variable": "a"},
            {"tool_name": "g", "arguments": {"x": 1}, "result_variable": "b"},
        ],
    ),
    "gather in a loop": (
        "rs = await asyncio.gather(*[f(x=c) for c in cs])",
        [
            {
                "for_each": "cs",
                "as": "c",
                "do": [{"tool_name": "f", "arguments": {"x": "{c}"}, "result_variable": "_1"}],
                "collect": "_1",
                "result_variable": "rs",
            }
        ],
    ),
    "a timeout": (
        "x = await asyncio.wait_for(f(a=1), timeout=5)",
        [{"tool_name": "f", "arguments": {"a": 1}, "result_variable": "x", "timeout_seconds": 5}],
    ),
    "try": (
        'try:\n    x = f()\nexcept ToolError as e:\n    answer(f"failed: {e}")',
        [
            {
                "try": [{"tool_name": "f", "result_variable": "x"}],
                "catch": [{"answer": "failed: {e}"}],
                "error": "e",
            }
        ],
    ),
    "ask the user": (
        'reply = ask_user(f"Send to {a}?")\nif reply == "yes":\n    send(to=a)',
        [
            {"ask_user": "Send to {a}?", "result_variable": "reply"},
            {"if": 'reply == "yes"', "then": [{"tool_name": "send", "arguments": {"to": "{a}"}}]},
        ],
    ),
    "ask the user at the end": (
        'return ask_user("Which one?")',
        [{"ask_user": "Which one?", "result_variable": "_1"}, {"answer": "{_1}"}],
    ),
    "ask a model": (
        'x = ask_model(f"What is {q}?", [a, b.c], returns={"type": ["string", "null"]})',
        [
            {
                "ask_model": "What is {q}?",
                "data": ["{a}", "{b.c}"],
                "returns": {"type": ["string", "null"]},
                "result_variable": "x",
            }
        ],
    ),
    "ask a model with shorthand": (
        'x = ask_model("Who?", a, returns={"name": str, "age": int | None, "tags": list[str]})',
        [
            {
                "ask_model": "Who?",
                "data": "a",
                "returns": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "age": {"type": ["integer", "null"]},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["name", "age", "tags"],
                },
                "result_variable": "x",
            }
        ],
    ),
    "answer in the middle": (
        'if not rows:\n    return "none"\nreturn f"{len(rows)} found"',
        [{"if": "not rows", "then": [{"answer": "none"}]}, {"answer": "{len(rows)} found"}],
    ),
    "cannot, on one side": (
        'if not rows:\n    return cannot(f"no {x}", missing=["a tool", y])\nsend()',
        [
            {"if": "not rows", "then": [{"cannot": "no {x}", "missing": ["a tool", "{y}"]}]},
            {"tool_name": "send"},
        ],
    ),
    "replan": ('f()\nreplan(f"look at {x}")', [{"tool_name": "f"}, {"replan": "look at {x}"}]),
    "a note": ('print("found", n, f"of {m}")\nf()', [{"note": "found {n} of {m}"}, {"tool_name": "f"}]),
    "a lambda": (
        "x = sorted(rows, key=lambda r: r.price, reverse=True)[:3]",
        [{"let": {"x": "sorted(rows, key=lambda r: r.price, reverse=True)[:3]"}}],
    ),
    "a dictionary comprehension with calls": (
        "d = {c: get(city=c) for c in cs}",
        [
            {
                "for_each": "cs",
                "as": "c",
                "do": [{"tool_name": "get", "arguments": {"city": "{c}"}, "result_variable": "_2"}],
                "collect": ["{c}", "{_2}"],
                "result_variable": "_1",
            },
            {"let": {"d": "dict(_1)"}},
        ],
    ),
    "Chinese": (
        '天气 = get_weather(城市="北京")\nif number(天气.气温) < 5:\n    send(正文=f"气温{天气.气温}，多穿点。")',
        [
            {"tool_name": "get_weather", "arguments": {"城市": "北京"}, "result_variable": "天气"},
            {
                "if": "number(天气.气温) < 5",
                "then": [{"tool_name": "send", "arguments": {"正文": "气温{天气.气温}，多穿点。"}}],
            },
        ],
    ),
    "tuple targets in a loop": (
        "for i, r in enumerate(rows):\n    f(n=i, x=r.id)",
        [
            {
                "for_each": "enumerate(rows)",
                "as": "_1",
                "do": [
                    {"let": {"i": "_1[0]", "r": "_1[1]"}},
                    {"tool_name": "f", "arguments": {"n": "{i}", "x": "{r.id}"}},
                ],
            }
        ],
    ),
    "a main function": (
        "import asyncio\n\nasync def main():\n    a = await f()\n    return a.b\n\nasyncio.run(main())",
        [{"tool_name": "f", "result_variable": "a"}, {"answer": "{a.b}"}],
    ),
}
