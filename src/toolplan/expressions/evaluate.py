"""Tree -> value: each node becomes a Python closure once, and evaluating calls the closures.

`Program.run` is the compiled tree. Nothing is handed to Python's compiler; a closure does one node's work on JSON values
and nothing else, so there is no way to an attribute of a Python object: `a.b` looks up a key, a call finds its function
or method in the tables of `functions` and `methods`.

A closure takes the `Budget`, which holds the scope, the loop variables and what is left to spend. Loops pay for every
round what its nodes cost; whatever produces something large pays before it does (see `limits`).

Where Python and this language differ is listed in `docs/reference/expressions.md`.
"""

from __future__ import annotations

import ast
import operator
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from toolplan.diagnostics import nearest
from toolplan.errors import EvaluationError
from toolplan.expressions import functions as library
from toolplan.expressions.faults import ArgumentFault, Fault, Missing, shown
from toolplan.expressions.functions import FUNCTIONS, elements, number_fits, quote_key
from toolplan.expressions.limits import Budget, check_size, exhausted, size_of, weight
from toolplan.expressions.methods import METHODS
from toolplan.expressions.positions import span_of
from toolplan.expressions.rendering import convert, format_value, text_of
from toolplan.expressions.sets import both, distinct, either, one_only, within, without
from toolplan.values import Json

__all__ = ["Program"]

Closure: TypeAlias = "Callable[[Budget], Any]"
Scope: TypeAlias = "Mapping[str, Json]"


class Program:
    """A tree with its compiled form; `run(scope)` evaluates it. Compiled when first run, shared by equal texts."""

    __slots__ = ("column", "line", "run", "text", "tree")

    def __init__(self, tree: ast.expr, text: str, line: int = 1, column: int = 0) -> None:
        self.tree = tree
        self.text = text
        self.line = line
        self.column = column
        self.run: Callable[[Scope], Json] = self._first_run

    def _first_run(self, scope: Scope) -> Json:
        self.run = self._path() or self._general()
        return self.run(scope)

    def _path(self) -> Callable[[Scope], Json] | None:
        """Return a direct look-up for `name.field[index]...`, the commonest expression by far."""
        steps = _path_of(self.tree)
        if steps is None:
            return None
        name, keys = steps
        slow: list[Callable[[Scope], Json]] = []

        def carefully(scope: Scope) -> Json:
            if not slow:
                slow.append(self._general())
            return slow[0](scope)

        if not keys:

            def just_name(scope: Scope) -> Json:
                try:
                    return scope[name]
                except KeyError:
                    return carefully(scope)

            return just_name
        if len(keys) == 1:
            key: Any = keys[0]

            def one_step(scope: Scope) -> Json:
                try:
                    return scope[name][key]  # type: ignore[index, call-overload]
                except (KeyError, IndexError, TypeError):
                    return carefully(scope)

            return one_step

        def several_steps(scope: Scope) -> Json:
            try:
                value: Any = scope[name]
                for key in keys:
                    value = value[key]
                return value
            except (KeyError, IndexError, TypeError):
                return carefully(scope)

        return several_steps

    def _general(self) -> Callable[[Scope], Json]:
        compiler = _Compiler(self._source)
        compute = compiler.compile(self.tree)
        slots = compiler.slots
        makes = _makes_containers(self.tree)

        def evaluate(scope: Scope) -> Json:
            try:
                value = compute(Budget(scope, slots))
                if makes and (type(value) is list or type(value) is dict):
                    check_size(value)
                return value
            except Fault as fault:
                raise self._error(fault) from None
            except RecursionError:
                raise EvaluationError(
                    "a value is nested too deeply to compute with", start=0, end=len(self.text)
                ) from None

        return evaluate

    def _source(self, node: ast.AST) -> str:
        start, end = span_of(node, self.text, self.line, self.column)
        return _brief(self.text[start:end])

    def _error(self, fault: Fault) -> EvaluationError:
        start, end = span_of(fault.node or self.tree, self.text, self.line, self.column)
        return EvaluationError(fault.message, start=start, end=end, help=fault.help)


_NUMERIC = frozenset({int, float, bool})
_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}
_MAKERS = frozenset({"zip", "enumerate", "set_item", "dict", "sum", "items", "union"})
"""Calls that can put one value several times into another."""
_SET_METHODS = frozenset({"union", "intersection", "difference"})


class _Compiler:
    """Makes the closures of one tree. `source` gives the text of a node, for messages."""

    def __init__(self, source: Callable[[ast.AST], str]) -> None:
        self.source = source
        self.slots = 0
        self.bound: dict[str, int] = {}

    def compile(self, node: ast.expr) -> Closure:
        """Return the closure of `node`."""
        return _COMPILE[type(node)](self, node)

    # names and paths

    def constant(self, node: ast.Constant) -> Closure:
        value = node.value
        return lambda budget: value

    def name(self, node: ast.Name) -> Closure:
        name = node.id
        slot = self.bound.get(name)
        if slot is not None:
            return lambda budget: budget.slots[slot]

        def outer_name(budget: Budget) -> Any:
            try:
                return budget.scope[name]
            except KeyError:
                return self.folded(budget.scope, name, Fault(f"`{name}` has no value here", node=node))

        return outer_name

    @staticmethod
    def folded(values: Mapping[str, Any], key: str, fault: Fault) -> Any:
        """Return the value under the folded spelling of `key` (as Python folds identifiers), or raise `fault`."""
        plain = unicodedata.normalize("NFKC", key)
        if plain in values:
            return values[plain]
        raise fault

    def path(self, node: ast.Attribute | ast.Subscript) -> Closure:
        """Compile a chain of fields and constant indices as one closure."""
        steps: list[tuple[Any, ast.Attribute | ast.Subscript]] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute | ast.Subscript):
            key = base.attr if isinstance(base, ast.Attribute) else _constant_index(base.slice)
            if key is None:
                break
            steps.append((key, base))
            base = base.value
        if not steps:
            return self.subscript(cast("ast.Subscript", node))
        steps.reverse()
        start = self.compile(base)
        keys = [key for key, _ in steps]

        def carefully(value: Any) -> Any:
            for key, part in steps:
                value = self.field(value, key, part) if isinstance(part, ast.Attribute) else self.item(value, key, part)
            return value

        if len(keys) == 1:
            key = keys[0]

            def one_step(budget: Budget) -> Any:
                value = start(budget)
                try:
                    return value[key]
                except (KeyError, IndexError, TypeError):
                    return carefully(value)

            return one_step

        def several_steps(budget: Budget) -> Any:
            first = value = start(budget)
            try:
                for key in keys:
                    value = value[key]
                return value
            except (KeyError, IndexError, TypeError):
                return carefully(first)

        return several_steps

    def field(self, value: Any, name: str, node: ast.Attribute) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Json]", value)
            if name in fields:
                return fields[name]
            return self.folded(fields, name, self.no_field(node, node.value, fields, name))
        owner = self.source(node.value)
        if value is None:
            raise self.empty(node.value, f"it has no field `{name}`")
        if isinstance(value, list):
            help = f"take one element, `{owner}[0].{name}`, or all: `[x.{name} for x in {owner}]`"
            if name in ("length", "size", "count"):
                help = f"write `len({owner})`"
            raise Missing(f"`{owner}` is a {shown(cast('list[Json]', value))}, which has no field `{name}`", help=help, node=node)
        help = f"write `{owner}.{name}()` to call the method" if str in METHODS.get(name, ()) else None
        if isinstance(value, str) and name in ("length", "size"):
            help = f"write `len({owner})`"
        raise Missing(f"`{owner}` is {shown(value)}, which has no field `{name}`", help=help, node=node)

    def no_field(self, node: ast.expr, owner: ast.expr, fields: dict[str, Json], name: str) -> Fault:
        source = self.source(owner)
        known = list(fields)
        guess = nearest(name, known)
        listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
        help = f"did you mean `{guess}`?" if guess else None
        if help is None and dict in METHODS.get(name, ()):
            help = f"write `{source}.{name}()` to call the method"
        elif help is None and isinstance(node, ast.Subscript):
            help = f"a field that may be missing: `{source}.get({name!r})`" if len(name) <= 40 else None
        return Missing(
            f"`{self.source(node)}` does not exist: `{source}` has no field `{name}`; it has {listed or 'no fields at all'}",
            help=help,
            node=node,
        )

    def empty(self, node: ast.AST, so: str) -> Missing:
        """Return the fault of a null: `node` says what was empty."""
        source = self.source(node)
        return Missing(
            f"`{source}` is empty (null), so {so}",
            help=f"test it first (`{source} is not None`) or give a stand-in: `default({source}, ...)`",
            node=node,
        )

    def subscript(self, node: ast.Subscript) -> Closure:
        if isinstance(node.slice, ast.Slice):
            return self.slice(node, node.slice)
        owner, index = self.compile(node.value), self.compile(node.slice)

        def subscript(budget: Budget) -> Any:
            value, key = owner(budget), index(budget)
            try:
                if type(key) is str or type(key) is int:
                    return value[key]
            except (KeyError, IndexError, TypeError):
                pass
            return self.item(value, key, node)

        return subscript

    def item(self, value: Any, key: Any, node: ast.Subscript) -> Any:
        owner = self.source(node.value)
        if isinstance(value, dict):
            fields = cast("dict[str, Json]", value)
            if not isinstance(key, str):
                if key is None:
                    raise self.empty(node.slice, f"it names no field of `{owner}`")
                raise Fault(
                    f"the fields of `{owner}` have names, but {shown(key)} is not text",
                    help=f"`list({owner}.values())[0]` is the first value" if isinstance(key, int) else None,
                    node=node,
                )
            if key in fields:
                return fields[key]
            raise self.no_field(node, node.value, fields, key)
        if value is None:
            raise self.empty(node.value, f"it has no element {shown(key)}")
        if not isinstance(value, list | str):
            raise Fault(f"`{owner}` is {shown(value)}, which has no elements", node=node)
        if isinstance(key, int):
            try:
                return value[key]
            except IndexError:
                pass
            kind = "list" if isinstance(value, list) else "text"
            has = "is empty" if not value else f"has {len(value)} element" + ("s" if len(value) > 1 else "")
            raise Missing(
                f"`{self.source(node)}` does not exist: the {kind} `{owner}` {has}",
                help=f"test it first: `{self.source(node)} if {owner} else ...`" if not value else None,
                node=node,
            )
        if key is None:
            raise self.empty(node.slice, f"it is no index of `{owner}`")
        help = None
        if isinstance(key, str) and isinstance(value, list):
            help = f"take one element, `{owner}[0]`, or all: `[x[{key!r}] for x in {owner}]`" if len(key) < 40 else None
        elif isinstance(key, float):
            help = "round it: `int(...)`"
        raise Fault(
            f"the elements of `{owner}` are counted by whole numbers, but {shown(key)} is not one", help=help, node=node
        )

    def slice(self, node: ast.Subscript, cut: ast.Slice) -> Closure:
        owner = self.compile(node.value)
        bounds = [self.compile(bound) if bound is not None else None for bound in (cut.lower, cut.upper, cut.step)]
        parts = (cut.lower, cut.upper, cut.step)

        def slice_of(budget: Budget) -> Any:
            value = owner(budget)
            limits: list[Any] = []
            for bound, part in zip(bounds, parts, strict=True):
                limit = bound(budget) if bound is not None else None
                if limit is not None and not isinstance(limit, int):
                    raise Fault(f"a slice goes by whole numbers, but {shown(limit)} is not one", node=part)
                limits.append(limit)
            if limits[2] == 0:
                raise Fault("the step of a slice cannot be zero", node=node)
            if isinstance(value, str | list):
                cut_out = slice(*limits)
                count = len(range(*cut_out.indices(len(value))))
                budget.produce(8 * count if isinstance(value, list) else count if value.isascii() else 4 * count)
                return value[cut_out]
            if value is None:
                raise self.empty(node.value, "nothing can be cut out of it")
            raise Fault(f"`{self.source(node.value)}` is {shown(value)}, and only text and lists can be cut", node=node)

        return slice_of

    # operators

    def unary(self, node: ast.UnaryOp) -> Closure:
        operand = self.compile(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda budget: not operand(budget)
        negative = isinstance(node.op, ast.USub)

        def sign(budget: Budget) -> Any:
            value = operand(budget)
            if type(value) not in _NUMERIC:
                raise self.not_numeric(node, "-" if negative else "+", node.operand, value)
            return -value if negative else +value

        return sign

    def not_numeric(self, node: ast.AST, sign: str, part: ast.expr, value: Any) -> Fault:
        if value is None:
            return self.empty(part, f"`{sign}` cannot be computed")
        help = f"turn it into a number: `number({self.source(part)})`" if isinstance(value, str) else None
        return Fault(f"`{self.source(node)}`: `{sign}` needs a number, found {shown(value)}", help=help, node=node)

    def binary(self, node: ast.BinOp) -> Closure:
        left, right = self.compile(node.left), self.compile(node.right)
        compute = _BINARY[type(node.op)]

        def binary(budget: Budget) -> Any:
            one, other = left(budget), right(budget)
            try:
                return compute(budget, one, other)
            except Fault as fault:
                fault.node = node
                raise
            except OverflowError:
                raise Fault("the result is too large for a number", node=node) from None
            except ZeroDivisionError:
                raise Fault(f"`{self.source(node)}`: division by zero", node=node) from None
            except _NoOperationError:
                raise self.no_operation(node, one, other) from None

        return binary

    def no_operation(self, node: ast.BinOp, one: Any, other: Any) -> Fault:
        sign = _SIGNS[type(node.op)]
        for value, part in ((one, node.left), (other, node.right)):
            if value is None:
                return self.empty(part, f"`{sign}` cannot be computed")
        help = None
        if sign == "+" and isinstance(one, str) != isinstance(other, str):
            text = "f-string or `str(...)`"
            help = f"put it into text with an {text}, or turn the text into a number with `number(...)`"
            if isinstance(one, list) or isinstance(other, list):
                help = "add a list to a list, `xs + [x]`, or join its texts: `', '.join(xs)`"
        elif sign == "+" and (isinstance(one, list) or isinstance(other, list)):
            help = "add a list to a list: `xs + [x]`"
        elif sign == "%" and isinstance(one, str):
            help = "write an f-string: `f\"{x} items\"`"
        elif isinstance(one, str) or isinstance(other, str):
            help = "turn text into a number with `number(...)`; for dates there are `add` and `days_between`"
        return Fault(
            f"`{self.source(node)}`: `{sign}` cannot combine {shown(one)} and {shown(other)}", help=help, node=node
        )

    def logic(self, node: ast.BoolOp) -> Closure:
        values = [self.compile(value) for value in node.values]
        *first, last = values
        stops_at = isinstance(node.op, ast.Or)

        def logic(budget: Budget) -> Any:
            for compute in first:
                value = compute(budget)
                if bool(value) is stops_at:
                    return value
            return last(budget)

        return logic

    def condition(self, node: ast.IfExp) -> Closure:
        test, body, other = self.compile(node.test), self.compile(node.body), self.compile(node.orelse)
        return lambda budget: body(budget) if test(budget) else other(budget)

    def compare(self, node: ast.Compare) -> Closure:
        left = self.compile(node.left)
        nodes = [node.left, *node.comparators]
        links: list[tuple[Callable[[Budget, Any, Any], bool], Closure, ast.expr, ast.expr]] = []
        for index, test in enumerate(node.ops):
            one, other = nodes[index], nodes[index + 1]
            tests = _COMPARE
            if type(test) in _COMPARE_SETS and (_is_set(one) or _is_set(other)):
                tests = _COMPARE_SETS
            links.append((tests[type(test)], self.compile(other), one, other))

        def compare(budget: Budget) -> bool:
            one = left(budget)
            for test, right, one_node, other_node in links:
                other = right(budget)
                try:
                    if not test(budget, one, other):
                        return False
                except Fault as fault:
                    raise self.no_comparison(node, fault, one, other, one_node, other_node) from None
                one = other
            return True

        if len(links) > 1:
            return compare
        only_test, only_right, _, _ = links[0]

        def compare_two(budget: Budget) -> bool:
            one = left(budget)
            other = only_right(budget)
            try:
                return only_test(budget, one, other)
            except Fault as fault:
                raise self.no_comparison(node, fault, one, other, nodes[0], nodes[1]) from None

        return compare_two

    def no_comparison(self, node: ast.expr, fault: Fault, one: Any, other: Any, left: ast.expr, right: ast.expr) -> Fault:
        fault.node = node
        if not isinstance(fault, Missing):
            return fault
        for value, part, against in ((one, left, other), (other, right, one)):
            if value is None:
                return self.empty(part, f"it cannot be compared with {shown(against)}")
        return fault

    # displays

    def sequence(self, node: ast.List | ast.Tuple) -> Closure:
        size = 60 + 8 * len(node.elts)
        if any(isinstance(element, ast.Starred) for element in node.elts):
            return self.spread(node.elts)
        parts = [self.compile(element) for element in node.elts]

        def sequence(budget: Budget) -> list[Json]:
            budget.produce(size)
            return [part(budget) for part in parts]

        return sequence

    def spread(self, nodes: list[ast.expr]) -> Closure:
        """Compile displayed elements some of which are starred."""
        parts = [
            (self.iterable(node.value), True) if isinstance(node, ast.Starred) else (self.compile(node), False)
            for node in nodes
        ]

        def spread(budget: Budget) -> list[Json]:
            found: list[Json] = []
            for part, starred in parts:
                if starred:
                    more: list[Json] = list(part(budget))
                    budget.produce(60 + 8 * len(more))
                    found += more
                else:
                    found.append(part(budget))
            budget.produce(60 + 8 * len(found))
            return found

        return spread

    def set(self, node: ast.Set) -> Closure:
        elements_of = self.spread(node.elts)
        return lambda budget: distinct(budget, elements_of(budget))

    def fields(self, node: ast.Dict) -> Closure:
        size = 64 + 100 * len(node.keys)
        parts = [
            (self.compile(key) if key is not None else None, key, self.compile(value), value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]

        def fields(budget: Budget) -> dict[str, Json]:
            budget.produce(size)
            made: dict[str, Json] = {}
            for key, key_node, value, value_node in parts:
                if key is not None:
                    made[self.key(key(budget), key_node)] = value(budget)
                    continue
                more = value(budget)
                if more is None:
                    raise self.empty(value_node, "its fields cannot be taken over")
                if not isinstance(more, dict):
                    raise Fault(f"`**` takes over the fields of an object, not of {shown(more)}", node=value_node)
                budget.produce(100 * len(cast("dict[str, Json]", more)))
                made |= more
            return made

        return fields

    @staticmethod
    def key(value: Any, node: ast.AST | None) -> str:
        if type(value) is str:
            return value
        try:
            return quote_key(value)
        except Fault as fault:
            fault.node = node
            raise

    def text_with_holes(self, node: ast.JoinedStr) -> Closure:
        parts = [self.hole(part) if isinstance(part, ast.FormattedValue) else self.compile(part) for part in node.values]

        def text_with_holes(budget: Budget) -> str:
            texts = [part(budget) for part in parts]
            budget.produce(50 + size_of(*texts))
            return "".join(texts)

        return text_with_holes

    def hole(self, node: ast.FormattedValue) -> Closure:
        compute = self.compile(node.value)
        spec = self.compile(node.format_spec) if node.format_spec is not None else None
        conversion = chr(node.conversion) if node.conversion > 0 else ""

        def hole(budget: Budget) -> str:
            value = compute(budget)
            if conversion:
                value = convert(value, conversion, budget)
            if spec is None:
                return value if type(value) is str else text_of(value, budget)
            if value is None:
                raise self.empty(node.value, "it cannot be formatted")
            try:
                return format_value(value, spec(budget), budget)
            except Fault as fault:
                if fault.node is None:
                    fault.node = node.value
                raise

        return hole

    # loops

    def iterable(self, node: ast.expr) -> Callable[[Budget], Iterable[Any]]:
        """Compile what a loop goes through; a `range(...)` is gone through without making its list."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            return self.call_of(node, "range", library.spread)
        compute = self.compile(node)

        def iterable(budget: Budget) -> Iterable[Any]:
            value = compute(budget)
            if type(value) is list or type(value) is str:
                return value
            if isinstance(value, dict):
                return elements(budget, value)
            if value is None:
                raise self.empty(node, "there is nothing to go through")
            raise Fault(
                f"`{self.source(node)}` is {shown(value)}, and a loop goes through a list",
                help="go through `range(...)` of it" if isinstance(value, int) else None,
                node=node,
            )

        return iterable

    def target(self, node: ast.expr) -> Callable[[Budget, Any], None]:
        """Compile what takes the value of a round: a name, or several names for a list of as many."""
        if isinstance(node, ast.Name):
            slot = self.bind(node.id)

            def one_name(budget: Budget, value: Any) -> None:
                budget.slots[slot] = value

            return one_name
        targets = [self.target(element) for element in cast("ast.Tuple", node).elts]

        def several_names(budget: Budget, value: Any) -> None:
            if isinstance(value, dict | str):
                value = elements(budget, value)
            if not isinstance(value, list):
                raise Fault(f"`{self.source(node)}` takes a list of {len(targets)}, found {shown(value)}", node=node)
            if len(cast("list[Json]", value)) != len(targets):
                raise Fault(f"`{self.source(node)}` takes {len(targets)} values, found {len(value)}", node=node)
            for assign, item in zip(targets, cast("list[Json]", value), strict=True):
                assign(budget, item)

        return several_names

    def bind(self, name: str) -> int:
        slot = self.slots
        self.slots += 1
        self.bound[name] = slot
        return slot

    def rounds(self, generators: list[ast.comprehension], inside: list[ast.expr]) -> Callable[[Budget], Iterator[None]]:
        """Compile the clauses of a comprehension; each value of the iterator is one round, its names set."""
        rounds: Callable[[Budget], Iterator[None]] | None = None
        body = sum(1 for part in inside for _ in ast.walk(part))
        for generator in generators:
            iterable = self.iterable(generator.iter)
            assign = self.target(generator.target)
            tests = [self.compile(test) for test in generator.ifs]
            cost = 1 + body + sum(1 for test in generator.ifs for _ in ast.walk(test))
            rounds = _rounds(rounds, iterable, assign, tests, cost)
        assert rounds is not None
        return rounds

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Closure:
        kept = dict(self.bound)
        rounds = self.rounds(node.generators, [node.elt])
        element = self.compile(node.elt)
        self.bound = kept

        def comprehension(budget: Budget) -> list[Json]:
            return [element(budget) for _ in rounds(budget)]

        return comprehension

    def lazily(self, node: ast.GeneratorExp) -> Callable[[Budget], Iterator[Json]]:
        """Compile a generator expression whose reader may stop early."""
        kept = dict(self.bound)
        rounds = self.rounds(node.generators, [node.elt])
        element = self.compile(node.elt)
        self.bound = kept
        return lambda budget: (element(budget) for _ in rounds(budget))

    def set_comprehension(self, node: ast.SetComp) -> Closure:
        kept = dict(self.bound)
        rounds = self.rounds(node.generators, [node.elt])
        element = self.compile(node.elt)
        self.bound = kept
        return lambda budget: distinct(budget, (element(budget) for _ in rounds(budget)))

    def dict_comprehension(self, node: ast.DictComp) -> Closure:
        kept = dict(self.bound)
        rounds = self.rounds(node.generators, [node.key, node.value])
        key, value = self.compile(node.key), self.compile(node.value)
        self.bound = kept

        def dict_comprehension(budget: Budget) -> dict[str, Json]:
            made: dict[str, Json] = {}
            for _ in rounds(budget):
                budget.steps -= 2
                made[self.key(key(budget), node.key)] = value(budget)
            return made

        return dict_comprehension

    # calls

    def call(self, node: ast.Call) -> Closure:
        function = node.func
        if isinstance(function, ast.Attribute):
            return self.method_call(node, function)
        name = cast("ast.Name", function).id
        if name == "default":
            return self.default(node)
        if name == "isinstance":
            return self.isinstance(node)
        return self.call_of(node, name, None)

    def call_of(self, node: ast.Call, name: str, instead: Callable[..., Any] | None) -> Closure:
        function = FUNCTIONS[name]
        compute: Callable[..., Any] = function.compute if instead is None else lambda budget, *values: instead(*values)
        arguments = [
            self.lazily(argument) if function.lazy and isinstance(argument, ast.GeneratorExp) else self.compile(argument)
            for argument in node.args
            if not isinstance(argument, ast.Starred)
        ]
        if len(arguments) < len(node.args):
            return self.starred_call(node, name, compute)
        keywords = {
            cast("str", keyword.arg): self.order_key(keyword.value) if keyword.arg == "key" and "key" in function.keyword_only
            else self.compile(keyword.value)
            for keyword in node.keywords
        }  # fmt: skip
        if not keywords and len(arguments) == 1:
            only = arguments[0]

            def call_one(budget: Budget) -> Any:
                value = only(budget)
                try:
                    return compute(budget, value)
                except Fault as fault:
                    raise self.refused(node, name, fault) from None

            return call_one

        def call(budget: Budget) -> Any:
            values = [argument(budget) for argument in arguments]
            named = {key: argument(budget) for key, argument in keywords.items()}
            try:
                return compute(budget, *values, **named)
            except Fault as fault:
                raise self.refused(node, name, fault) from None

        return call

    def starred_call(self, node: ast.Call, name: str, compute: Callable[..., Any]) -> Closure:
        arguments = self.spread(node.args)
        keywords = {cast("str", k.arg): self.order_key(k.value) if k.arg == "key" else self.compile(k.value) for k in node.keywords}
        function = FUNCTIONS[name]

        def starred_call(budget: Budget) -> Any:
            values = arguments(budget)
            named = {key: argument(budget) for key, argument in keywords.items()}
            taken = len(values) + sum(1 for parameter in function.parameters if parameter in named)
            fits = function.required <= taken and (function.variadic or len(values) <= len(function.parameters))
            if not fits or (function.variadic and not values and name != "zip"):
                raise Fault(f"`{name}` is given {len(values)} values", help=f"it is `{function.signature}`", node=node)
            try:
                return compute(budget, *values, **named)
            except Fault as fault:
                raise self.refused(node, name, fault) from None

        return starred_call

    def refused(self, node: ast.Call, name: str, fault: Fault) -> Fault:
        """Return `fault` with a place, and with the words of the plan's author for an argument that does not fit."""
        if not isinstance(fault, ArgumentFault):
            if fault.node is None:
                fault.node = node
            return fault
        part: ast.expr = node
        if isinstance(fault.position, str):
            part = next((k.value for k in node.keywords if k.arg == fault.position), node)
        elif fault.position < 0:
            part = cast("ast.Attribute", node.func).value
        elif fault.position < len(node.args):
            part = node.args[fault.position]
        elif node.keywords:
            part = node.keywords[0].value
        source = self.source(part)
        if fault.value is None and not isinstance(part, ast.Starred) and part is not node:
            return Missing(
                f"`{source}` is empty (null), but `{name}` takes {fault.wanted}",
                help=f"test it first (`{source} is not None`) or give a stand-in: `default({source}, ...)`",
                node=part,
            )
        found = shown(fault.value) if isinstance(part, ast.Constant) or part is node else f"`{source}` is {shown(fault.value)}"
        return Fault(f"`{name}` takes {fault.wanted}, but {found}", help=fault.help, node=part)

    def order_key(self, node: ast.expr) -> Closure:
        """Compile the `key` of `min`, `max` and `sorted`: a lambda, a function's name, or a field's name."""
        if isinstance(node, ast.Lambda):
            kept = dict(self.bound)
            slot = self.bind((node.args.posonlyargs + node.args.args)[0].arg)
            body = self.compile(node.body)
            self.bound = kept
            cost = 2 + sum(1 for _ in ast.walk(node.body))

            def key_of(budget: Budget) -> Callable[[Any], Any]:
                def key(value: Any) -> Any:
                    budget.spend(cost)
                    budget.slots[slot] = value
                    return body(budget)

                return key

            return key_of
        if isinstance(node, ast.Name) and node.id in FUNCTIONS and node.id not in self.bound:
            compute, name = FUNCTIONS[node.id].compute, node.id

            def function_of(budget: Budget) -> Callable[[Any], Any]:
                def key(value: Any) -> Any:
                    budget.spend(3)
                    try:
                        return compute(budget, value)
                    except ArgumentFault as fault:
                        kind = Missing if value is None else Fault
                        raise kind(f"`{name}` takes {fault.wanted}, but an element is {shown(value)}", node=node) from None

                return key

            return function_of
        return self.compile(node)

    def default(self, node: ast.Call) -> Closure:
        given = dict(zip(("value", "fallback"), node.args, strict=False))
        given |= {cast("str", keyword.arg): keyword.value for keyword in node.keywords}
        value, fallback = self.compile(given["value"]), self.compile(given["fallback"])

        def default(budget: Budget) -> Any:
            try:
                found = value(budget)
            except Missing:
                return fallback(budget)
            return fallback(budget) if found is None else found

        return default

    def isinstance(self, node: ast.Call) -> Closure:
        value = self.compile(node.args[0])
        names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
        kinds = tuple(_TYPES[name] for name in names)
        if any(isinstance(part, ast.Constant) for part in ast.walk(node.args[1])):
            kinds += (type(None),)
        return lambda budget: isinstance(value(budget), kinds)

    def method_call(self, node: ast.Call, function: ast.Attribute) -> Closure:
        name = function.attr
        owner = self.compile(function.value)
        by_kind = METHODS[name]
        arguments = [self.compile(argument) for argument in node.args]
        keywords = {cast("str", keyword.arg): self.compile(keyword.value) for keyword in node.keywords}

        def method_call(budget: Budget) -> Any:
            value = owner(budget)
            method = by_kind.get(type(value))
            if method is None:
                raise self.no_method(node, function, value)
            values = [argument(budget) for argument in arguments]
            named = {key: argument(budget) for key, argument in keywords.items()}
            try:
                return method.compute(budget, value, *values, **named)
            except Fault as fault:
                raise self.refused(node, name, fault) from None
            except TypeError:
                raise Fault(f"`{name}` is not called like this", help=f"it is `{method.signature}`", node=node) from None

        return method_call

    def no_method(self, node: ast.Call, function: ast.Attribute, value: Any) -> Fault:
        name, owner = function.attr, self.source(function.value)
        if value is None:
            return self.empty(function.value, f"it has no `{name}()`")
        kinds = " and ".join(_KIND_NAMES[kind] for kind in METHODS[name])
        help = None
        if isinstance(value, dict) and name in value:
            help = f"the field is `{owner}.{name}`, without the brackets"
        elif isinstance(value, list) and str in METHODS[name]:
            help = f"do it for each: `[x.{name}(...) for x in {owner}]`"
        elif isinstance(value, int | float) and str in METHODS[name]:
            help = f"turn it into text first: `str({owner}).{name}(...)`"
        return Fault(f"`{owner}` is {shown(value)}, and `{name}` is a method of {kinds}", help=help, node=node)


_KIND_NAMES: dict[type, str] = {str: "text", list: "lists", dict: "objects"}


def _rounds(
    outer: Callable[[Budget], Iterator[None]] | None,
    iterable: Callable[[Budget], Iterable[Any]],
    assign: Callable[[Budget, Any], None],
    tests: list[Closure],
    cost: int,
) -> Callable[[Budget], Iterator[None]]:
    """Return the rounds of one `for ... in ... if ...` clause inside those of the clauses before it."""

    def passes(budget: Budget) -> bool:
        return all(test(budget) for test in tests)

    def rounds(budget: Budget) -> Iterator[None]:
        for item in iterable(budget):
            budget.steps -= cost
            if budget.steps < 0:
                raise exhausted()
            assign(budget, item)
            if not tests or passes(budget):
                yield

    if outer is None:
        return rounds

    def nested(budget: Budget) -> Iterator[None]:
        for _ in outer(budget):
            budget.steps -= 1
            yield from rounds(budget)

    return nested


# --- operators on values ---------------------------------------------------------------------------------------------


class _NoOperationError(Exception):
    """Two values that an operator cannot combine."""


def _both(one: Any, other: Any, kind: type) -> bool:
    return type(one) is kind and type(other) is kind


def _numbers(one: Any, other: Any) -> bool:
    return type(one) in _NUMERIC and type(other) in _NUMERIC


def _add(budget: Budget, one: Any, other: Any) -> Any:
    if _numbers(one, other):
        return number_fits(one + other)
    if _both(one, other, str):
        budget.produce(50 + size_of(one, other))
        return one + other
    if _both(one, other, list):
        budget.produce(60 + 8 * (len(one) + len(other)))
        return one + other
    raise _NoOperationError


def _subtract(budget: Budget, one: Any, other: Any) -> Any:
    if _numbers(one, other):
        return number_fits(one - other)
    if _both(one, other, list):
        return without(budget, one, other)
    raise _NoOperationError


def _multiply(budget: Budget, one: Any, other: Any) -> Any:
    if _numbers(one, other):
        if type(one) is not float and type(other) is not float and one.bit_length() + other.bit_length() > 11_000:
            raise Fault("the result is a whole number of more than 3,000 digits")
        return number_fits(one * other)
    if isinstance(one, int) and isinstance(other, str | list):
        one, other = other, one
    if isinstance(one, str | list) and isinstance(other, int):
        times = max(0, int(other))
        budget.produce(60 + times * (8 * len(one) if isinstance(one, list) else size_of(one)))
        return one * times
    raise _NoOperationError


def _divide(budget: Budget, one: Any, other: Any) -> Any:
    if _numbers(one, other):
        return number_fits(one / other)
    raise _NoOperationError


def _floor_divide(budget: Budget, one: Any, other: Any) -> Any:
    if _numbers(one, other):
        return number_fits(one // other)
    raise _NoOperationError


def _modulo(budget: Budget, one: Any, other: Any) -> Any:
    if _numbers(one, other):
        return number_fits(one % other)
    raise _NoOperationError


def _power(budget: Budget, one: Any, other: Any) -> Any:
    if _numbers(one, other):
        return library.power(one, other)
    raise _NoOperationError


def _or(budget: Budget, one: Any, other: Any) -> Any:
    if isinstance(one, int) and isinstance(other, int):
        return one | other
    if _both(one, other, list):
        return either(budget, one, other)
    if _both(one, other, dict):
        budget.produce(100 * (len(one) + len(other)))
        return one | other
    raise _NoOperationError


def _and(budget: Budget, one: Any, other: Any) -> Any:
    if isinstance(one, int) and isinstance(other, int):
        return one & other
    if _both(one, other, list):
        return both(budget, one, other)
    raise _NoOperationError


def _xor(budget: Budget, one: Any, other: Any) -> Any:
    if isinstance(one, int) and isinstance(other, int):
        return one ^ other
    if _both(one, other, list):
        return one_only(budget, one, other)
    raise _NoOperationError


_BINARY: dict[type[ast.operator], Callable[[Budget, Any, Any], Any]] = {
    ast.Add: _add,
    ast.Sub: _subtract,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: _modulo,
    ast.Pow: _power,
    ast.BitOr: _or,
    ast.BitAnd: _and,
    ast.BitXor: _xor,
}
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
}


def _equal(budget: Budget, one: Any, other: Any) -> bool:
    kind = type(one)
    if (kind is list or kind is dict) and kind is type(other):
        budget.spend(min(weight(one, budget.steps), weight(other, budget.steps)))
    elif kind is str and len(one) > 1_000:
        budget.spend(len(one) // 1_000)
    return one == other


def _unequal(budget: Budget, one: Any, other: Any) -> bool:
    return not _equal(budget, one, other)


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Budget, Any, Any], bool]:
    def order(budget: Budget, one: Any, other: Any) -> bool:
        kind = type(one)
        if kind is list:
            budget.spend(min(weight(one, budget.steps), weight(other, budget.steps)))
        elif kind is str and len(one) > 1_000:
            budget.spend(len(one) // 1_000)
        try:
            return compare(one, other)
        except TypeError:
            raise library.no_order(one, other) from None

    return order


def _contains(budget: Budget, one: Any, other: Any) -> bool:
    kind = type(other)
    if kind is str:
        if type(one) is not str:
            if one is None:
                raise Missing("null is looked for in text")
            raise Fault(
                f"in text only text can be looked for, not {shown(one)}", help="turn it into text: `str(...)`"
            )
        budget.spend(len(other) // 200)
        return one in other
    if kind is list:
        if type(one) is list or type(one) is dict:
            budget.spend(weight(other, budget.steps))
        else:
            budget.spend(len(other) // 4)
        return one in other
    if kind is dict:
        if isinstance(one, list | dict):
            raise Fault(f"the keys of an object are text, so {shown(one)} cannot be one")
        return one in other
    if other is None:
        raise Missing("nothing can be looked for in null")
    raise Fault(f"nothing can be looked for in {shown(other)}", help="`in` takes text, a list or an object on its right")


def _lacks(budget: Budget, one: Any, other: Any) -> bool:
    return not _contains(budget, one, other)


_COMPARE: dict[type[ast.cmpop], Callable[[Budget, Any, Any], bool]] = {
    ast.Eq: _equal,
    ast.NotEq: _unequal,
    ast.Lt: _ordering(operator.lt),
    ast.LtE: _ordering(operator.le),
    ast.Gt: _ordering(operator.gt),
    ast.GtE: _ordering(operator.ge),
    ast.In: _contains,
    ast.NotIn: _lacks,
    ast.Is: lambda budget, one, other: one is other,
    ast.IsNot: lambda budget, one, other: one is not other,
}


def _on_sets(compare: Callable[[Budget, list[Json], list[Json]], bool]) -> Callable[[Budget, Any, Any], bool]:
    def on_sets(budget: Budget, one: Any, other: Any) -> bool:
        if not (isinstance(one, list) and isinstance(other, list)):
            raise Fault(f"a set cannot be compared with {shown(other if isinstance(one, list) else one)}")
        return compare(budget, cast("list[Json]", one), cast("list[Json]", other))

    return on_sets


def _same(budget: Budget, one: list[Json], other: list[Json]) -> bool:
    return within(budget, one, other) and within(budget, other, one)


_COMPARE_SETS: dict[type[ast.cmpop], Callable[[Budget, Any, Any], bool]] = {
    ast.Eq: _on_sets(_same),
    ast.NotEq: _on_sets(lambda budget, one, other: not _same(budget, one, other)),
    ast.LtE: _on_sets(within),
    ast.GtE: _on_sets(lambda budget, one, other: within(budget, other, one)),
    ast.Lt: _on_sets(lambda budget, one, other: within(budget, one, other) and not within(budget, other, one)),
    ast.Gt: _on_sets(lambda budget, one, other: within(budget, other, one) and not within(budget, one, other)),
}


def _is_set(node: ast.expr) -> bool:
    """Return whether the expression is written as a set, so that comparing it means comparing sets."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id == "set"
        return isinstance(node.func, ast.Attribute) and node.func.attr in _SET_METHODS
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor | ast.Sub):
        return _is_set(node.left) or _is_set(node.right)
    return False


# --- what kind of tree this is ---------------------------------------------------------------------------------------


def _constant_index(node: ast.expr) -> str | int | None:
    if isinstance(node, ast.Constant) and type(node.value) in (str, int):
        return cast("str | int", node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if type(value) is int else None
    return None


def _path_of(tree: ast.expr) -> tuple[str, list[str | int]] | None:
    keys: list[str | int] = []
    while isinstance(tree, ast.Attribute | ast.Subscript):
        key = tree.attr if isinstance(tree, ast.Attribute) else _constant_index(tree.slice)
        if key is None:
            return None
        keys.append(key)
        tree = tree.value
    return (tree.id, keys[::-1]) if isinstance(tree, ast.Name) else None


def _makes_containers(tree: ast.expr) -> bool:
    """Return whether the expression can put values together into something heavier than its parts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            if node.elts if not isinstance(node, ast.Dict) else node.keys:
                return True
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return True
        elif isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Add | ast.Mult | ast.BitOr):
                return True
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else cast("ast.Attribute", node.func).attr
            if name in _MAKERS:
                return True
    return False


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


_COMPILE: dict[type[ast.AST], Callable[[_Compiler, Any], Closure]] = {
    ast.Constant: _Compiler.constant,
    ast.Name: _Compiler.name,
    ast.Attribute: _Compiler.path,
    ast.Subscript: _Compiler.path,
    ast.UnaryOp: _Compiler.unary,
    ast.BinOp: _Compiler.binary,
    ast.BoolOp: _Compiler.logic,
    ast.IfExp: _Compiler.condition,
    ast.Compare: _Compiler.compare,
    ast.List: _Compiler.sequence,
    ast.Tuple: _Compiler.sequence,
    ast.Set: _Compiler.set,
    ast.Dict: _Compiler.fields,
    ast.JoinedStr: _Compiler.text_with_holes,
    ast.ListComp: _Compiler.comprehension,
    ast.GeneratorExp: _Compiler.comprehension,
    ast.SetComp: _Compiler.set_comprehension,
    ast.DictComp: _Compiler.dict_comprehension,
    ast.Call: _Compiler.call,
}
