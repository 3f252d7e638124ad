"""What counts as trusted does not depend on other people's text (noninterference, Goguen and Meseguer 1982).

A random program is run twice, in two worlds that differ in nothing but the untrusted fields. Every argument that the
trace calls trusted is then the same in both: for a call in a loop, the calls that are made have the same values.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from toolplan import Agent, PlanRejected, Tool, check, parse
from toolplan.policy.trace import trace
from toolplan.tools import ToolSet

LETTER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "size": {"type": "integer"}, "body": {"type": "string"}},
}
OPEN = {"type": "object", "additionalProperties": True}
SIZES = (3, 1, 2)


def tools_of(bodies: list[str], letter: str, calls: dict[str, list[Any]]) -> ToolSet:
    def letters() -> Any:
        return [{"id": n, "size": size, "body": body} for n, (size, body) in enumerate(zip(SIZES, bodies, strict=True))]

    def send(**arguments: Any) -> Any:
        calls[arguments.pop("place")].append(arguments)
        return {"id": 7, "size": len(str(arguments)), "body": str(arguments)}

    listed = {"type": "array", "items": LETTER}
    return ToolSet.of(
        [
            Tool.from_schema("letters", "", OPEN, letters, listed, reads="l", untrusted="body"),
            Tool.from_schema("mail", "", OPEN, lambda: letter, {"type": "string"}, reads="m", untrusted=True),
            Tool.from_schema("rows", "", OPEN, lambda: [4, 5, 6], {"type": "array", "items": {"type": "integer"}},
                             reads="r"),
            Tool.from_schema("send", "", OPEN, send, LETTER, writes="s", assigns="id"),
        ]
    )  # fmt: skip


NAMES = ("a", "b", "c")
ATOMS = (*NAMES, "ls", "m", "rs", "1", "'x'", "[]", "None")


@st.composite
def expressions(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> str:
    atoms = (*ATOMS, *names)
    fields = [f"{name}.{field}" for name in names if name.startswith("e") for field in ("id", "size", "body")]
    if depth == 0 or (fields and draw(st.integers(0, 2)) == 0):
        return draw(st.sampled_from([*atoms, *fields, *fields]))
    inner = expressions(names, depth - 1)
    one = draw(inner)
    return draw(
        st.one_of(
            st.sampled_from(atoms),
            st.sampled_from(
                [
                    f"default({one}[0], 0)", f"default({one}[-1], 0)", f"default({one}.id, 0)",
                    f"default({one}.body, '')", f"default(len({one}), 0)", f"str({one})", f"not {one}", f"[{one}]",
                    f"default([e.id for e in {one}], [])", f"default([e.body for e in {one}], [])",
                    f"default([e for e in {one} if e.size > 1], [])",
                    f"default([e for e in {one} if e.body > 'b'], [])",
                    f"default(next((e for e in {one} if e.body > 'b'), None), 0)",
                    f"default(sorted({one}, key=lambda e: e.size), [])",
                    f"default(sorted({one}, key=lambda e: e.body), [])",
                    f"default(max({one}, key=lambda e: e.size), 0)",
                    f"default([i for i, e in enumerate({one})], [])",
                    f"default(set({one}), [])", f"default(rs[len({one})], 0)", f"[*default({one}[:2], [])]",
                    f"[x for x in rs if {one}]",
                ]
            ),
            inner.map(lambda other: f"({one} == {other})"),
            inner.map(lambda other: f"({one} and {other})"),
            inner.map(lambda other: f"({one} or {other})"),
            inner.map(lambda other: f"({one} if {other} else {other})"),
            inner.map(lambda other: f"({other} if {one} else rs)"),
            inner.map(lambda other: f"[{one}, {other}]"),
            inner.map(lambda other: f"default({one} + {other}, rs)"),
            inner.map(lambda other: f"f'{{{one}}}'" if "'" not in one else other),
        )
    )  # fmt: skip


@st.composite
def blocks(draw: st.DrawFn, names: tuple[str, ...] = (), depth: int = 2, in_loop: bool = False) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = ["let", "let", "send", "send"] + (["if", "for", "for"] if depth else [])
        if in_loop:
            kinds += ["leave"]
        kind = draw(st.sampled_from(kinds))
        value = draw(expressions(names))
        if kind == "let":
            grown = draw(st.sampled_from(["", "", "default(c + [{}], [])"]))
            lines.append(f"c = {grown.format(value)}" if grown else f"{draw(st.sampled_from(NAMES))} = {value}")
        elif kind == "send":
            made = draw(st.sampled_from(["", f"{draw(st.sampled_from(NAMES))} = "]))
            lines.append(f"{made}send(place='PLACE', x={value}, y={draw(expressions(names, 1))})")
        elif kind == "leave":
            way_out = draw(st.sampled_from(["break", "continue", "return 'end'"]))
            lines += [f"if {draw(questions(names))}:", f"    {way_out}"]
        elif kind == "if":
            lines += [f"if {draw(questions(names))}:", *indented(draw(blocks(names, depth - 1, in_loop)))]
            if draw(st.booleans()):
                lines += ["else:", *indented(draw(blocks(names, depth - 1, in_loop)))]
        else:
            over = draw(st.sampled_from(["ls", "ls", "rs", "any"]))
            each = f"e{depth}" if over == "ls" else f"x{depth}"
            items = over if over != "any" else f"default([x for x in {value}], [])"
            lines += [f"for {each} in {items}:", *indented(draw(blocks((*names, each), depth - 1, True)))]
    return lines


@st.composite
def questions(draw: st.DrawFn, names: tuple[str, ...]) -> str:
    plain = ["m > 'b'", "ls[0].body > 'b'", "ls[1].size > 1", "c", "not c", "a == 0", "len(c) > 1"]
    plain += [f"{name}.{test}" for name in names if name[0] == "e" for test in ("body > 'b'", "size > 1")] * 2
    return draw(st.one_of(st.sampled_from(plain), expressions(names, 1)))


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


TEXT = st.text(alphabet="ac", min_size=1, max_size=2)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(blocks(depth=2), st.lists(TEXT, min_size=6, max_size=6), TEXT, TEXT)
def test_trusted_arguments_do_not_depend_on_untrusted_text(
    lines: list[str], bodies: list[str], one: str, other: str
) -> None:
    program = "\n".join(["ls = letters()", "m = mail()", "rs = rows()", "a = 0", "b = ls[0]", "c = []", *lines])
    for number in range(program.count("PLACE")):
        program = program.replace("PLACE", f"p{number}", 1)
    made: list[dict[str, list[Any]]] = []
    for texts, letter in ((bodies[:3], one), (bodies[3:], other)):
        calls: dict[str, list[Any]] = defaultdict(list)
        tools = tools_of(texts, letter, calls)
        try:
            plan = check(parse(program, "python", tools), tools).plan
        except PlanRejected:
            assume(False)
        result = Agent(tools=tools, policy="declared").run_plan_sync(plan)
        assume(result.outcome == "succeeded")  # that a call failed is left out of the trace
        made.append(calls)
    found = trace(plan, tools).calls  # pyright: ignore[reportPossiblyUnboundVariable]
    first, second = made
    from toolplan.plan import Call, walk

    for step in walk(plan.steps):  # pyright: ignore[reportPossiblyUnboundVariable]
        if not isinstance(step, Call) or step.tool != "send":
            continue
        place = str(dict(step.arguments.fields)["place"].value)  # type: ignore[union-attr]
        for name in ("x", "y"):
            if found[step.id].arguments[name].is_untrusted or not (first[place] and second[place]):
                continue
            values = [{repr(call[name]) for call in calls[place]} for calls in (first, second)]
            assert values[0] == values[1], (place, name, program)
