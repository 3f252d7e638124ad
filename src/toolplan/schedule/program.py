"""A checked plan, prepared for the machine: what each step waits for, defines, touches, and how it may end.

Prepared once, never changed, so that the machine's work per step is small. Each `Node` answers:

    waits      the names whose values it needs before it can do anything
    captures   the names it or anything inside it may look up or assign
    assigns    the names that steps after it may see changed
    touches    the accesses of everything inside it, as far as they are known from the text
    leaves     whether it may end the plan, or the round of the loop around it
    may_fail   whether it can fail what is around it
    rank       the length of the longest chain of calls that starts here
"""

from __future__ import annotations

from collections.abc import Iterable

from toolplan.effects import Access
from toolplan.expressions import Fields, Literal, Template, names_of
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Block,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    OnError,
    Parallel,
    Plan,
    Replan,
    Step,
    Try,
    While,
    assigned_names,
    walk,
)
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

__all__ = ["BREAK", "CONTINUE", "EXIT", "Collect", "Node", "NodeBlock", "Program"]

EXIT, BREAK, CONTINUE = 1, 2, 4


class Collect:
    """The last thing a round does: hand its value to the loop. Not part of the plan, so it has no id."""

    __slots__ = ("keep", "loop", "value")

    def __init__(self, loop: ForEach) -> None:
        self.loop = loop
        self.value = loop.collect
        self.keep = loop.keep


class Node:
    """One statement of the plan with what the machine must know about it."""

    __slots__ = (
        "accesses",
        "assigns",
        "blocks",
        "captures",
        "constant",
        "defines",
        "effect",
        "id",
        "kind",
        "leaves",
        "may_fail",
        "placeholders",
        "rank",
        "step",
        "tool",
        "undeclared",
        "waits",
    )

    def __init__(self, step: Step | Collect) -> None:
        self.step = step
        self.kind: type[Step] | type[Collect] = type(step)
        self.id = "" if isinstance(step, Collect) else step.id
        self.waits: tuple[str, ...] = ()
        self.captures: tuple[str, ...] = ()
        self.defines: tuple[str, ...] = ()
        self.assigns: tuple[str, ...] = ()
        self.accesses: tuple[Access, ...] = ()
        self.undeclared = False
        self.effect = False
        self.placeholders = False
        self.may_fail = True
        self.leaves = 0
        self.rank = 0
        self.blocks: tuple[NodeBlock, ...] = ()
        self.tool: Tool | None = None
        self.constant: dict[str, Json] | None = None
        """The arguments, when they are known from the text alone."""


class NodeBlock:
    """The nodes of one body, and what the rest of it from any place on may touch."""

    __slots__ = ("_rest", "leaves", "nodes")

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.leaves = 0
        for node in nodes:
            self.leaves |= node.leaves
        self._rest: list[tuple[tuple[Access, ...], bool, bool]] | None = None

    def rest(self, index: int) -> tuple[tuple[Access, ...], bool, bool]:
        """Return (accesses, touches undeclared, may fail) of the nodes from `index` on."""
        if self._rest is None:
            accesses: tuple[Access, ...] = ()
            undeclared = may_fail = False
            rest: list[tuple[tuple[Access, ...], bool, bool]] = [(accesses, undeclared, may_fail)]
            for node in reversed(self.nodes):
                if not set(node.accesses) <= set(accesses):
                    accesses = tuple(dict.fromkeys(accesses + node.accesses))
                undeclared = undeclared or node.undeclared
                may_fail = may_fail or node.may_fail
                rest.append((accesses, undeclared, may_fail))
            rest.reverse()
            self._rest = rest
        return self._rest[index]


class Program:
    """A plan ready to run with these tools."""

    def __init__(self, plan: Plan, tools: ToolSet) -> None:
        self.plan = plan
        self.tools = tools
        self._known_names: dict[int, frozenset[str]] = {}
        self.used = self._used_names(plan)
        """Every name that something in the plan uses. Others are nobody's business."""
        steps: Block = plan.steps
        if plan.answer is not None:
            steps = (*steps, Answer("answer", plan.answer, plan.answer.place))
        self.root = self._block(steps)
        self.holds_back = any(self._needs_order(step) for step in walk(plan.steps))
        """Whether anything ever waits for the success of earlier steps. A plan without effects need not keep track."""
        _rank(self.root, 0)

    def _block(self, steps: Block) -> NodeBlock:
        nodes: list[Node] = []
        for step in steps:
            if isinstance(step, Let) and len(step.values) > 1:
                nodes += [self._node(Let(step.id, (value,), step.place)) for value in step.values]
            else:
                nodes.append(self._node(step))
        return NodeBlock(nodes)

    def _needs_order(self, step: Step) -> bool:
        if isinstance(step, Call):
            return self.tools[step.tool].effects.has_effects or step.on_error.action == "do"
        return isinstance(step, Try | AskUser)

    def _node(self, step: Step) -> Node:
        if isinstance(step, Call | AskModel) and step.on_error.action == "do":
            return self._try(Try(step.id, (_without_on_error(step),), step.on_error.do, None, step.place))
        node = Node(step)
        match step:
            case Call():
                self._call(node, step)
            case Let():
                self._let(node, step)
            case AskUser():
                node.waits = tuple(self._names_of(step.question))
                node.defines = self._kept(step.defines)
                node.leaves = EXIT  # the run may end here, waiting; nothing after it starts before the answer
                node.effect = True
            case AskModel():
                node.waits = tuple(self._names_of(step.question, step.data))
                if step.on_error.value is not None:
                    node.waits += tuple(self._names_of(step.on_error.value) - set(node.waits))
                node.defines = self._kept(step.defines)
                node.may_fail = step.on_error.action in ("fail", "replan")
            case Answer() | Note():
                node.waits = tuple(self._names_of(step.text))
                node.leaves = EXIT if isinstance(step, Answer) else 0
                node.effect = isinstance(step, Answer)
            case Cannot():
                node.waits = tuple(self._names_of(step.reason, *step.missing))
                node.leaves = EXIT
                node.effect = True
            case Replan():
                node.waits = tuple(self._names_of(step.reason))
                node.leaves = EXIT
                node.effect = True
            case Break() | Continue():
                node.leaves = BREAK if isinstance(step, Break) else CONTINUE
                node.effect = True
                node.may_fail = False
            case If():
                node.waits = tuple(step.test.names)
                self._compose(node, [self._block(step.then), self._block(step.otherwise)])
            case ForEach():
                node.waits = tuple(self._names_of(step.items))
                node.defines = self._kept(step.defines)
                body = self._block(step.body)
                if step.collect is not None:
                    body.nodes.append(self._collect(step))
                self._compose(node, [body], loop_name=step.name)
                node.leaves &= EXIT
            case While():
                node.waits = tuple(step.test.names)
                self._compose(node, [self._block(step.body)])
                node.leaves &= EXIT
            case Parallel():
                self._compose(node, [self._block(step.members)])
            case Try():
                return self._try(step)
        if not node.captures:
            node.captures = node.waits
        return node

    def _call(self, node: Node, step: Call) -> None:
        tool = self.tools[step.tool]
        node.tool = tool
        needed = self._names_of(step.arguments, step.on_error.value)
        node.waits = tuple(needed.union(step.depends_on) if step.depends_on else needed)
        node.defines = self._kept(step.defines)
        constant = None if needed else _known_fields(step.arguments)
        if constant is not None and len(constant) < len(step.arguments.fields):
            constant = None  # something in it has to be evaluated, although it depends on no name
        known = constant if constant is not None else _known_fields(step.arguments)
        effects = tool.effects
        node.effect = effects.has_effects
        if effects.declared:
            node.accesses = effects.accesses(known)
            node.placeholders = constant is None and bool(effects.placeholders)
        else:
            node.undeclared = not effects.independent
        if not node.waits and constant is not None:
            node.constant = constant
        node.may_fail = step.on_error.action in ("fail", "replan")

    def _let(self, node: Node, step: Let) -> None:
        ((name, template),) = step.values
        node.waits = tuple(self._names_of(template))
        node.defines = (name,)
        node.may_fail = not isinstance(template, Literal)

    def _collect(self, loop: ForEach) -> Node:
        node = Node(Collect(loop))
        names = self._names_of(loop.collect) if loop.collect is not None else frozenset[str]()
        node.waits = tuple(names | (loop.keep.names if loop.keep else frozenset[str]()))
        node.captures = node.waits
        return node

    def _try(self, step: Try) -> Node:
        node = Node(step)
        self._compose(node, [self._block(step.body), self._block(step.handler)])
        node.may_fail = node.blocks[1].rest(0)[2]
        return node

    def _compose(self, node: Node, blocks: list[NodeBlock], loop_name: str | None = None) -> None:
        node.blocks = tuple(blocks)
        step = node.step
        assert not isinstance(step, Collect)
        inside: set[str] = set(node.waits)
        accesses: dict[Access, None] = {}
        for block in blocks:
            for child in block.nodes:
                inside.update(child.captures)
                inside.update(child.assigns)
                accesses.update(dict.fromkeys(child.accesses))
                node.undeclared = node.undeclared or child.undeclared
                node.leaves |= child.leaves
                node.effect = node.effect or child.effect
        node.accesses = tuple(accesses)
        assigned = set(assigned_names(_steps_inside(step))) & self.used
        if loop_name is not None:
            assigned.discard(loop_name)
        node.assigns = tuple(sorted(assigned))
        node.captures = tuple(sorted(inside | assigned))

    def _names_of(self, *templates: Template | None) -> frozenset[str]:
        """Return the names in the templates. Each template of the plan is walked once; it lives as long as this."""
        found: frozenset[str] = frozenset()
        for template in templates:
            if template is None:
                continue
            names = self._known_names.get(id(template))
            if names is None:
                names = self._known_names[id(template)] = names_of(template)
            found = found | names if found else names
        return found

    def _used_names(self, plan: Plan) -> set[str]:
        used: set[str] = set()
        for step in walk(plan.steps):
            match step:
                case Call():
                    used |= self._names_of(step.arguments, step.on_error.value)
                    used.update(step.depends_on)
                case If() | While():
                    used |= step.test.names
                case ForEach():
                    used |= self._names_of(step.items, step.collect)
                    used |= step.keep.names if step.keep else frozenset[str]()
                case Let():
                    used |= self._names_of(*(template for _, template in step.values))
                case AskUser():
                    used |= self._names_of(step.question)
                case AskModel():
                    used |= self._names_of(step.question, step.data, step.on_error.value)
                case Answer() | Note():
                    used |= self._names_of(step.text)
                case Cannot():
                    used |= self._names_of(step.reason, *step.missing)
                case Replan():
                    used |= self._names_of(step.reason)
                case _:
                    pass
        return used | self._names_of(plan.answer)

    def _kept(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name in self.used)


def _steps_inside(step: Step) -> list[Step]:
    if isinstance(step, Try):
        return [*step.body, *step.handler]
    if isinstance(step, If):
        return [*step.then, *step.otherwise]
    if isinstance(step, ForEach | While):
        return list(step.body)
    if isinstance(step, Parallel):
        return list(step.members)
    return []


def _without_on_error(step: Call | AskModel) -> Call | AskModel:
    if isinstance(step, Call):
        return Call(
            step.id,
            step.tool,
            step.arguments,
            step.result,
            step.defines,
            step.depends_on,
            OnError(),
            step.retry,
            step.timeout_seconds,
            step.place,
            step.tool_place,
        )
    return AskModel(step.id, step.question, step.data, step.returns, step.result, step.defines, OnError(), step.place)


def _known_fields(arguments: Fields) -> dict[str, Json]:
    return {name: template.value for name, template in arguments.fields if isinstance(template, Literal)}


def _rank(block: NodeBlock, after: int, later: dict[str, int] | None = None) -> int:
    """Set each node's rank, walking backwards; return the longest chain that starts in the block."""
    longest = after
    users: dict[str, int] = dict(later or {})
    for node in reversed(block.nodes):
        names = node.assigns if node.blocks else node.defines
        tail = max((users.get(name, 0) for name in names), default=0)
        tail = max(tail, after)
        if node.blocks:
            node.rank = max([_rank(inner, tail, users) for inner in node.blocks])
        else:
            node.rank = tail + (1 if node.kind is Call or node.kind is AskModel else 0)
        for name in node.waits if not node.blocks else node.captures:
            if users.get(name, 0) < node.rank:
                users[name] = node.rank
        longest = max(longest, node.rank)
    return longest
