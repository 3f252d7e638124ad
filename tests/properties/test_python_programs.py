"""Random programs: read as plans they make the calls that CPython makes, in its order, and give its answer."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolplan.diagnostics import Source
from toolplan.errors import ToolFailed
from toolplan.parse import parse
from toolplan.parse.python_notation import read_program
from toolplan.plan import Plan
from toolplan.show import canonical
from unit.parse.python_oracle import run_as_plan, run_by_python


def _checked(x: int) -> int:
    if x % 5 == 0:
        raise ToolFailed(f"{x} is refused")
    return x + 1


TOOLS = {
    "double": lambda x: (x * 2) % 23,
    "even": lambda x: 1 - x % 2,
    "checked": _checked,
    "split": lambda x: [x % 3, x % 7],
    "note": lambda x: None,
}


class Writer:
    """Writes a program of integers, one list and one object, at random."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names = ["a", "b", "c"]
        self.loops = 0
        self.count = 0

    def program(self) -> str:
        lines = ["a, b, c = 1, 2, 3", "xs = [4, 5]", 'd = {"k": 6}']
        lines += self.block(3, 0)
        lines.append("return [a, b, c, xs, d]")
        return "\n".join(lines)

    def block(self, depth: int, indent: int) -> list[str]:
        lines = [line for _ in range(self.chance.randint(1, 3)) for line in self.statement(depth)]
        return ["    " * indent + line for line in lines]

    def statement(self, depth: int) -> list[str]:
        kinds = [self.assignment, self.assignment, self.change, self.call]
        if depth:
            kinds += [self.branch, self.loop, self.bounded, self.attempt]
        if self.loops:
            kinds.append(self.leave)
        return self.chance.choice(kinds)(depth)

    def inside(self, depth: int) -> list[str]:
        return ["    " + line for line in self.block(depth - 1, 0)]

    def assignment(self, depth: int) -> list[str]:
        name = self.chance.choice(["a", "b", "c"])
        forms = [
            f"{name} = {self.number(2)}",
            f"{name} += {self.number(2)}",
            f"a, b = {self.number(1)}, {self.number(1)}",
            f"{name}, c = split(x={self.number(1)})",
            f"{name} = xs[{self.number(1)} % len(xs)] if xs else {self.number(1)}",
        ]
        return [self.chance.choice(forms)]

    def change(self, depth: int) -> list[str]:
        forms = [
            f"xs.append({self.number(2)})",
            f"xs.extend(split(x={self.number(1)}))",
            f"xs.insert(1, {self.number(1)})",
            "xs.reverse()",
            "xs.sort()",
            f"d[str({self.number(1)})] = {self.number(1)}",
            f'd["k"] += {self.number(1)}',
            f"d.setdefault(str({self.number(1)}), {self.number(1)})",
            "xs = xs[:6]",
        ]
        return [self.chance.choice(forms)]

    def call(self, depth: int) -> list[str]:
        forms = [
            f"note(x={self.number(2)})",
            f"{self.test(1)} and note(x={self.number(1)})",
            f"note(x=a) if {self.test(1)} else note(x=b)",
            f"[note(x=z) for z in {self.list(1)} if z > 2]",
        ]
        return [self.chance.choice(forms)]

    def branch(self, depth: int) -> list[str]:
        lines = [f"if {self.test(2)}:", *self.inside(depth)]
        if self.chance.random() < 0.3:
            lines += [f"elif {self.test(2)}:", *self.inside(depth)]
        return lines + (["else:", *self.inside(depth)] if self.chance.random() < 0.5 else [])

    def loop(self, depth: int) -> list[str]:
        heads = ["for a in {}:", "for i in {}:", "for b, i in enumerate({}):", "for i, j in enumerate({}):"]
        head = self.chance.choice(heads).format(self.list(2))
        self.loops += 1
        lines = [head, *self.inside(depth)]
        self.loops -= 1
        return lines

    def bounded(self, depth: int) -> list[str]:
        self.count += 1
        counter = f"n{self.count}"
        self.loops += 1
        lines = [
            f"{counter} = 0",
            f"while {counter} < 3 and {self.test(1)}:",
            f"    {counter} += 1",
            *self.inside(depth),
        ]
        self.loops -= 1
        return lines

    def attempt(self, depth: int) -> list[str]:
        lines = ["try:", f"    b = checked(x={self.number(1)})", *self.inside(depth), "except ToolError as e:"]
        lines += [f"    c = {self.number(1)}"]
        return lines + (["else:", *self.inside(depth)] if self.chance.random() < 0.3 else [])

    def leave(self, depth: int) -> list[str]:
        word = self.chance.choice(["break", "continue", "return a", "break", "continue"])
        return [f"if {self.test(1)}:", f"    {word}"]

    def number(self, depth: int) -> str:
        if depth == 0:
            return self.chance.choice([*self.names, str(self.chance.randint(0, 9))])
        forms = [
            lambda: f"double(x={self.number(depth - 1)})",
            lambda: f"({self.number(depth - 1)} + {self.number(depth - 1)}) % 50",
            lambda: f"({self.number(depth - 1)} if {self.test(depth - 1)} else {self.number(depth - 1)})",
            lambda: f"({self.number(depth - 1)} or {self.number(depth - 1)})",
            lambda: f"({self.number(depth - 1)} and {self.number(depth - 1)})",
            lambda: f"sum({self.list(depth - 1)}) % 50",
            lambda: f"sum(double(x=z) for z in {self.list(depth - 1)}) % 50",
            lambda: f"split(x={self.number(depth - 1)})[even(x={self.number(depth - 1)})]",
            lambda: f"len(f'{{{self.number(0)}}}-{{double(x={self.number(0)})}}')",
            lambda: f"next((z for z in {self.list(depth - 1)} if even(x=z)), {self.number(depth - 1)})",
            lambda: self.number(0),
        ]
        return self.chance.choice(forms)()

    def test(self, depth: int) -> str:
        forms = [
            lambda: f"{self.number(depth)} < {self.number(depth)}",
            lambda: f"{self.number(depth)} < {self.number(depth)} <= {self.number(depth)}",
            lambda: f"(not even(x={self.number(depth)}) or {self.number(0)} > 4)",
            lambda: f"({self.number(depth)} and {self.number(depth)} > 2)",
            lambda: f"any(even(x=z) for z in {self.list(depth)})",
            lambda: f"all(double(x=z) > 3 for z in {self.list(depth)} if even(x=z))",
            lambda: f"{self.number(0)} in {self.list(depth)}",
        ]
        return self.chance.choice(forms)()

    def list(self, depth: int) -> str:
        forms = [
            lambda: "xs[:4]",
            lambda: "range(3)",
            lambda: f"[{self.number(max(depth - 1, 0))}, {self.number(0)}]",
            lambda: f"split(x={self.number(0)})",
            lambda: f"[double(x=y) for y in xs[:3] if y != {self.number(0)}]",
            lambda: "[y + v for y, v in enumerate(xs[:3]) if even(x=v)]",
            lambda: "[y * v for y in range(2) for v in split(x=y + 4)]",
            lambda: "[even(x=y) for y in [double(x=v) for v in xs[:2]]]",
        ]
        return self.chance.choice(forms)()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_a_random_program_means_what_cpython_does(chance):
    text = Writer(chance).program()
    plan = read_program(Source(text), set(TOOLS))
    assert isinstance(plan, Plan)
    expected = run_by_python(text, TOOLS)
    assert run_as_plan(plan, TOOLS) == expected, text
    as_json = parse(canonical(plan), notation="json")
    assert isinstance(as_json, Plan)
    assert run_as_plan(as_json, TOOLS) == expected, text
