"""Random plans in the JSON notation, for the tools of a `World`: all that the language has, in odd places too."""

from __future__ import annotations

from random import Random
from typing import Any

from order_trials.world import Kind

Step = dict[str, Any]
Names = frozenset[str]


def random_plan(rng: Random, kinds: list[Kind], size: int = 14) -> dict[str, Any]:
    """Return a plan of up to about `size` statements. All variables hold whole numbers."""
    return _Writer(rng, kinds, rng.randint(3, size)).plan()


class _Writer:
    def __init__(self, rng: Random, kinds: list[Kind], budget: int) -> None:
        self.rng = rng
        self.kinds = kinds
        self.budget = budget
        self.count = 0
        self.is_calm = rng.random() < 0.4
        """Most calls cannot fail the run, so that only their effects keep their order."""
        self.in_group = 0
        """How many `parallel`s are around: what may change anything must not stand there, for that would be a lie."""

    def plan(self) -> dict[str, Any]:
        steps, names = self.block(frozenset(), 3, False)
        plan: dict[str, Any] = {"steps": steps}
        if self.rng.random() < 0.6:
            plan["answer"] = f"end {{{self.expression(names)}}}"
        return plan

    # Expressions --------------------------------------------------------------------------------------------------

    def fresh(self, letter: str = "r") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def target(self, names: Names) -> str:
        """Return a name to assign: mostly a new one, sometimes one that is there."""
        old = sorted(name for name in names if name[0] == "r")
        return self.rng.choice(old) if old and self.rng.random() < 0.35 else self.fresh()

    def expression(self, names: Names) -> str:
        rng = self.rng
        if not names or rng.random() < 0.2:
            return str(rng.randint(0, 9))
        name = rng.choice(sorted(names))
        other = rng.choice(sorted(names))
        forms = [name, name, f"{name} + {rng.randint(0, 5)}", f"({name} * 3) % 11", f"({name} + {other}) % 101"]
        return rng.choice([*forms, f"60 // ({name} % 4)"])  # fails for every fourth number

    def value(self, names: Names) -> Any:
        """Return a template for a number."""
        text = self.expression(names)
        return int(text) if text.isdigit() else f"{{{text}}}"

    def test(self, names: Names) -> str:
        return f"({self.expression(names)}) % {self.rng.choice([2, 2, 3])} == 0"

    # Statements ---------------------------------------------------------------------------------------------------

    def block(self, names: Names, depth: int, in_loop: bool) -> tuple[list[Step], Names]:
        steps: list[Step] = []
        for _ in range(self.rng.randint(1, 4 if depth > 1 else 3)):
            step, names = self.statement(names, depth, in_loop)
            steps += step if isinstance(step, list) else [step]
        return steps, names

    def statement(self, names: Names, depth: int, in_loop: bool) -> tuple[Step | list[Step], Names]:
        self.budget -= 1
        kinds = ["call"] * 8 + ["let"] * 2 + ["end", "question", "reading", "note"]
        if depth and self.budget > 0:
            kinds += ["branch"] * 3 + ["each"] * 3 + ["group"] * 2 + ["trial"] * 2 + ["bounded"]
        if in_loop:
            kinds += ["leave"] * 2
        kind = self.rng.choice(kinds)
        if kind in ("call", "let", "question", "reading", "note"):
            return getattr(self, kind)(names, depth)
        return getattr(self, kind)(names, depth, in_loop)

    def call(self, names: Names, depth: int) -> tuple[Step, Names]:
        rng = self.rng
        fitting = [kind for kind in self.kinds if not (self.in_group and kind.declared == "undeclared")]
        kind = rng.choice(fitting)
        arguments: dict[str, Any] = {}
        if rng.random() < 0.8:
            arguments["v"] = self.value(names)
        if kind.reads or kind.writes:
            arguments["k"] = self.key(names)
            arguments["s"] = rng.choice("xy") if rng.random() < 0.6 or not names else self.letter(names)
        variable = self.target(names)
        step: Step = {"tool_name": kind.name, "arguments": arguments, "result_variable": variable}
        if names and rng.random() < 0.15:
            step["depends_on"] = [rng.choice(sorted(names))]
        if rng.random() < 0.1:
            step["retry"] = rng.randint(1, 3)
        calm = ["skip"] * 12 if self.is_calm else []
        on_error = rng.choice(["fail", "fail", "fail", "skip", "value", "do", "replan", *calm])
        if on_error in ("skip", "replan"):
            step["on_error"] = on_error
        elif on_error == "value":
            step["on_error"] = {"value": self.value(names)}
        elif on_error == "do":
            inner, _ = self.block(names, min(depth, 1), False)
            step["on_error"] = {"do": [*inner, {"let": {variable: self.expression(names)}}]}
        return step, names | {variable}

    def key(self, names: Names) -> Any:
        rng = self.rng
        chance = rng.random()
        if chance < 0.5 or not names:
            return rng.choice(["1", "2", "1", "2", ["1", "2"], ["2"], None])
        if chance < 0.85:
            return f"{{['1', '2'][({rng.choice(sorted(names))}) % 2]}}"
        return f"{{['1', '2'][:{rng.choice(sorted(names))} % 3]}}"

    def letter(self, names: Names) -> str:
        return f"{{['x', 'y'][({self.rng.choice(sorted(names))}) % 2]}}"

    def let(self, names: Names, depth: int) -> tuple[Step, Names]:
        values: dict[str, str] = {}
        for _ in range(self.rng.choice([1, 1, 2])):
            values[self.target(names)] = self.expression(names | values.keys())
        return {"let": values}, names | values.keys()

    def note(self, names: Names, depth: int) -> tuple[Step, Names]:
        return {"note": f"so far {{{self.expression(names)}}}"}, names

    def question(self, names: Names, depth: int) -> tuple[list[Step], Names]:
        asked, variable = self.fresh("q"), self.target(names)
        step = {"ask_user": f"what of {{{self.expression(names)}}}?", "result_variable": asked}
        return [step, {"let": {variable: f"number({asked})"}}], names | {variable}

    def reading(self, names: Names, depth: int) -> tuple[Step, Names]:
        variable = self.target(names)
        step: Step = {
            "ask_model": "how much?",
            "data": self.expression(names),
            "returns": {"type": "integer"},
            "result_variable": variable,
        }
        on_error = self.rng.choice([None, "skip", {"value": self.value(names)}, "do"])
        if on_error == "do":
            inner, _ = self.block(names, min(depth, 1), False)
            on_error = {"do": [*inner, {"let": {variable: "7"}}]}
        return step | ({"on_error": on_error} if on_error else {}), names | {variable}

    def end(self, names: Names, depth: int, in_loop: bool) -> tuple[Step, Names]:
        """An end of the plan that may come, with or without something before it."""
        text = f"left with {{{self.expression(names)}}}"
        last = self.rng.choice([{"answer": text}, {"answer": text}, {"cannot": text}, {"replan": text}])
        before = [self.call(names, 0)[0]] if self.rng.random() < 0.3 else []
        return {"if": self.test(names), "then": [*before, last]}, names

    def leave(self, names: Names, depth: int, in_loop: bool) -> tuple[Step, Names]:
        last = self.rng.choice([{"break": True}, {"continue": True}])
        before = [self.call(names, 0)[0]] if self.rng.random() < 0.3 else []
        return {"if": self.test(names), "then": [*before, last]}, names

    def branch(self, names: Names, depth: int, in_loop: bool) -> tuple[Step, Names]:
        then, in_then = self.block(names, depth - 1, in_loop)
        if self.rng.random() < 0.4:
            return {"if": self.test(names), "then": then}, names
        other, in_other = self.block(names, depth - 1, in_loop)
        return {"if": self.test(names), "then": then, "else": other}, names | (in_then & in_other)

    def trial(self, names: Names, depth: int, in_loop: bool) -> tuple[Step, Names]:
        body, in_body = self.block(names, depth - 1, in_loop)
        step: Step = {"try": body}
        inner = names
        if self.rng.random() < 0.5:
            step["as"] = self.fresh("e")
        handler, in_handler = self.block(inner, depth - 1, in_loop)
        if "as" in step:
            handler.append({"note": f"{{{step['as']}}}"})
        return {**step, "except": handler}, names | (in_body & in_handler)

    def group(self, names: Names, depth: int, in_loop: bool) -> tuple[Step, Names]:
        self.in_group += 1
        members: list[Step] = []
        for _ in range(self.rng.randint(2, 4)):
            step, names = self.statement(names, depth - 1, in_loop)
            members += step if isinstance(step, list) else [step]
        self.in_group -= 1
        return {"parallel": members}, names

    def bounded(self, names: Names, depth: int, in_loop: bool) -> tuple[list[Step], Names]:
        counter = self.fresh("n")
        body, _ = self.block(names | {counter}, depth - 1, True)
        test = f"{counter} < {self.rng.randint(1, 3)}"
        if names and self.rng.random() < 0.3:
            test = f"{test} and ({self.rng.choice(sorted(names))}) % 5 != 0"
        count: list[Step] = [{"let": {counter: f"{counter} + 1"}}]
        if self.rng.random() < 0.4:  # the next round is known only when a call is over
            slow, tool = self.fresh("w"), self.rng.choice([kind.name for kind in self.kinds if kind.is_free])
            asked = {"tool_name": tool, "arguments": {"v": f"{{{counter}}}"}, "result_variable": slow}
            count = [asked | {"on_error": {"value": 1}}, {"let": {counter: f"{counter} + 1 + {slow} * 0"}}]
        do = [*body, *count] if self.rng.random() < 0.4 else [*count, *body]
        loop = {"while": test, "max_iterations": self.rng.choice([2, 4, 4]), "do": do}
        return [{"let": {counter: "0"}}, loop], names | {counter}

    def each(self, names: Names, depth: int, in_loop: bool) -> tuple[Step, Names]:
        rng = self.rng
        item = self.fresh("i")
        body, inside = self.block(names | {item}, depth - 1, True)
        items: Any = [rng.randint(0, 9) for _ in range(rng.randint(0, 4))]
        if names and rng.random() < 0.4:
            items = f"range(({rng.choice(sorted(names))}) % 4)"
        step: Step = {"for_each": items, "as": item, "do": body}
        if rng.random() < 0.5:
            variable = self.fresh("l")
            step |= {"collect": self.expression(inside), "result_variable": variable}
            if rng.random() < 0.3:
                step["collect_if"] = self.test(inside)
            return step, names
        return step, names
