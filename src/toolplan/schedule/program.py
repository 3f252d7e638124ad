"""A checked plan, prepared for the machine: what each step waits for, defines, touches, and how it may end.

Prepared once, never changed, so that the machine's work per step is small. Each `Node` answers:

    waits      the names whose values it needs before it can do anything
    captures   the names it or anything inside it may look up or assign
    assigns    the names that steps after it may see changed
    touches    the accesses of everything inside it, as far as they are known from the text
    leaves     whether it may end the plan, or the round of the loop around it
    effect     whether it must happen exactly when written order reaches it: effects, questions, notes, ends
    early      whether it may begin before it is known that written order reaches it (`speculate`)
    may_fail   whether it can fail what is around it
    rank       the length of the longest chain of calls that starts here
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolplan.effects import WORLD, Access
from toolplan.expressions import Fields, Literal, Reference, Template, names_of
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

if TYPE_CHECKING:
    from toolplan.check import CheckedPlan

__all__ = ["BREAK", "CONTINUE", "EXIT", "Collect", "Node", "NodeBlock", "Program"]

EXIT, BREAK, CONTINUE = 1, 2, 4

MAX_ACCESSES = 256
"""A summary of more accesses than this is that of the whole world, which holds back more."""


class Collect:
    """The last thing a round does: hand its value to the loop. Not part of the plan, so it has no id."""

    __slots__ = ("keep", "loop", "name", "value")

    def __init__(self, loop: ForEach) -> None:
        self.loop = loop
        self.value = loop.collect
        self.keep = loop.keep
        self.name = _name_itself(loop.collect) if loop.keep is None else None
        """The name whose value every round hands over as it is: nearly all that is ever collected."""


class Node:
    """One statement of the plan with what the machine must know about it."""

    __slots__ = (
        "accesses",
        "assigns",
        "blocks",
        "captures",
        "constant",
        "defines",
        "early",
        "effect",
        "id",
        "is_free",
        "kind",
        "leaves",
        "may_fail",
        "origins",
        "passes",
        "placeholders",
        "rank",
        "step",
        "timeout_seconds",
        "tool",
        "undeclared",
        "waits",
        "whole",
        "word",
    )

    def __init__(self, step: Step | Collect) -> None:
        self.step = step
        self.kind: type[Step] | type[Collect] = type(step)
        self.id = step.loop.id if isinstance(step, Collect) else step.id
        self.origins = frozenset((self.id,))
        """What its result comes from: itself."""
        self.waits: tuple[str, ...] = ()
        self.captures: tuple[str, ...] = ()
        self.defines: tuple[str, ...] = ()
        self.assigns: tuple[str, ...] = ()
        self.accesses: tuple[Access, ...] = ()
        self.undeclared = False
        self.effect = False
        self.early = False
        self.placeholders = False
        self.may_fail = True
        self.leaves = 0
        self.rank = 0
        self.blocks: tuple[NodeBlock, ...] = ()
        self.is_free = False
        """Whether it neither assigns names in bodies, nor touches anything, nor may leave."""
        self.word = ""
        """What its row in the result calls it, if it is a call or a question."""
        self.timeout_seconds: float | None = None
        self.tool: Tool | None = None
        self.whole: frozenset[str] = frozenset()
        """Names it assigns that later members of the same `parallel` use: they count when all of it has succeeded."""
        self.constant: dict[str, Json] | None = None
        """The arguments, when they are known from the text alone."""
        self.passes: tuple[tuple[str, str], ...] = ()
        """In a loop: the arguments and the names whose values they are, if all of them are values of names as they are.

        Nearly all that a round has to work out is like that. Elsewhere finding out costs more than it saves.
        """


class NodeBlock:
    """The nodes of one body, and what the rest of it from any place on may touch."""

    __slots__ = ("_rest", "collect", "leaves", "nodes")

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.collect: Node | None = None
        """What a round of a loop hands over at its end."""
        self.leaves = 0
        for node in nodes:
            self.leaves |= node.leaves
        self._rest: list[tuple[tuple[Access, ...], bool, bool, int]] | None = None

    def rest(self, index: int) -> tuple[tuple[Access, ...], bool, bool, int]:
        """Return (accesses, touches undeclared, may fail, leaves) of the nodes from `index` on."""
        if self._rest is None:
            accesses: tuple[Access, ...] = ()
            undeclared = may_fail = False
            leaves = 0
            rest: list[tuple[tuple[Access, ...], bool, bool, int]] = [(accesses, undeclared, may_fail, leaves)]
            for node in reversed(self.nodes):
                if node.accesses and not set(node.accesses) <= set(accesses):
                    accesses = tuple(dict.fromkeys(accesses + node.accesses))
                    if len(accesses) > MAX_ACCESSES:
                        accesses = (Access(WORLD, any(access.write for access in accesses)),)
                undeclared = undeclared or node.undeclared
                may_fail = may_fail or node.may_fail
                leaves |= node.leaves
                rest.append((accesses, undeclared, may_fail, leaves))
            rest.reverse()
            self._rest = rest
        return self._rest[index]


class Program:
    """A plan ready to run with these tools.

    With `keep_names` the results that the plan itself does not use are kept too, for the plan that goes on after it.
    """

    def __init__(self, plan: Plan, tools: ToolSet, *, keep_names: bool = False) -> None:
        self.plan = plan
        self.tools = tools
        self.keeps_names = keep_names
        self._known_names: dict[int, frozenset[str]] = {}
        self.used = self._used_names(plan) | (_results(plan.steps) if keep_names else set[str]())
        """Every name that something in the plan uses. Others are nobody's business."""
        steps: Block = plan.steps
        if plan.answer is not None:
            steps = (*steps, Answer("answer", plan.answer, plan.answer.place))
        self.root = self._block(steps)
        self.holds_back = any(self._needs_order(step) for step in walk(plan.steps))
        """Whether anything ever waits for the success of earlier steps. Most without effects need not keep track."""
        _rank(self.root, 0)

    @classmethod
    def of(cls, checked: CheckedPlan, *, keep_names: bool = False) -> Program:
        """Return the program of a checked plan, which is prepared the first time that it is asked for."""
        program = checked.programs.get(keep_names)
        if program is None:
            program = checked.programs[keep_names] = cls(checked.plan, checked.tools, keep_names=keep_names)
        return program

    def _block(self, steps: Block) -> NodeBlock:
        nodes: list[Node] = []
        for step in steps:
            if isinstance(step, Let) and len(step.values) > 1:
                nodes += [self._node(Let(step.id, (value,), step.place)) for value in step.values]
            else:
                nodes.append(self._node(step))
        return NodeBlock(nodes)

    def _repeated(self, steps: Block) -> NodeBlock:
        """Return the body of a loop."""
        block = self._block(steps)
        for node in block.nodes:
            if isinstance(node.step, Call) and node.constant is None:
                node.passes = _passed(node.step.arguments)
        return block

    def _needs_order(self, step: Step) -> bool:
        if isinstance(step, Call):
            return self.tools[step.tool].effects.has_effects or step.on_error.action == "do"
        if isinstance(step, ForEach | Parallel):  # one of the equals that fails does not come to its end of them all
            return any(isinstance(each, Break | Continue | Answer | Cannot | Replan) for each in walk((step,)))
        return isinstance(step, Try | AskUser | Note)

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
                node.word = "ask_user"
                node.waits = tuple(self._names_of(step.question))
                node.defines = self._kept(step.defines)
                node.leaves = EXIT  # the run may end here, waiting; nothing after it starts before the answer
                node.effect = True
            case AskModel():
                node.word = "ask_model"
                node.waits = tuple(self._names_of(step.question, step.data))
                if step.on_error.value is not None:
                    node.waits += tuple(self._names_of(step.on_error.value) - set(node.waits))
                node.defines = self._kept(step.defines)
                node.may_fail = _may_fail(step.on_error)
            case Answer() | Note():
                node.waits = tuple(self._names_of(step.text))
                node.leaves = EXIT if isinstance(step, Answer) else 0
                node.effect = True  # "paid" is not to be read before it is certain that nothing before it fails
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
                body = self._repeated(step.body)
                if step.collect is not None:
                    body.collect = self._collect(step)
                self._compose(node, [body], loop_name=step.name)
                node.leaves &= EXIT
            case While():
                node.waits = tuple(step.test.names)
                self._compose(node, [self._repeated(step.body)])
                node.leaves &= EXIT
            case Parallel():
                members = self._block(step.members)
                used: set[str] = set()
                for member in reversed(members.nodes):
                    member.whole = frozenset(used.intersection(member.assigns))
                    used.update(member.captures)
                self._compose(node, [members])
            case Try():
                return self._try(step)
        if not node.captures:
            node.captures = node.waits
        node.is_free = not (node.assigns or node.accesses or node.undeclared or node.leaves)
        return node

    def _call(self, node: Node, step: Call) -> None:
        tool = self.tools[step.tool]
        node.tool = tool
        node.word = step.tool
        node.timeout_seconds = tool.timeout_seconds if step.timeout_seconds is None else step.timeout_seconds
        needed = self._names_of(step.arguments, step.on_error.value)
        node.waits = tuple(needed.union(step.depends_on) if step.depends_on else needed)
        node.defines = self._kept(step.defines)
        effects = tool.effects
        node.effect = effects.has_effects
        node.early = not node.effect
        touches = bool(effects.reads or effects.writes)
        known = _known_fields(step.arguments) if touches or not needed else {}
        is_constant = not needed and len(known) == len(step.arguments.fields)  # else something has to be evaluated
        if touches:
            node.accesses = tool.accesses(known)
            node.placeholders = not is_constant and bool(effects.placeholders)
        node.undeclared = not (effects.declared or effects.independent)
        if not node.waits and is_constant:
            node.constant = known
        node.may_fail = _may_fail(step.on_error)

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
            if block.collect is not None:
                inside.update(block.collect.captures)
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


def _results(steps: Block) -> set[str]:
    """Return the names of results outside of loops, as far as the plan chose them, and the ids of the steps.

    A name that a loop's body gives to something as well is left out: keeping it would tie the rounds together.
    """
    found: set[str] = set()
    in_loops: set[str] = set()
    stack = list(steps)
    while stack:
        step = stack.pop()
        if isinstance(step, Let):
            found.update(name for name, _ in step.values)
        elif isinstance(step, Call | AskUser | AskModel | ForEach):
            found.update(name for name in step.defines if name in (step.id, step.result))
        if isinstance(step, ForEach | While):
            in_loops |= assigned_names(step.body)
        else:
            stack += _steps_inside(step)
            stack += step.on_error.do if isinstance(step, Call | AskModel) else ()
    return found - in_loops


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
            step.again,
        )
    return AskModel(step.id, step.question, step.data, step.returns, step.result, step.defines, OnError(), step.place)


def _may_fail(on_error: OnError) -> bool:
    """Return whether a step with this `on_error` can fail what is around it. Working out a value can fail too."""
    if on_error.action == "value":
        return not isinstance(on_error.value, Literal)
    return on_error.action in ("fail", "replan")


def _known_fields(arguments: Fields) -> dict[str, Json]:
    return {name: template.value for name, template in arguments.fields if isinstance(template, Literal)}


def _name_itself(template: Template | None) -> str | None:
    """Return the name, if the template is the value of a name and nothing else: `{city}`."""
    if not isinstance(template, Reference):
        return None
    tree = template.expression.tree
    return tree.id if isinstance(tree, ast.Name) and tree.id in template.expression.names else None


def _passed(arguments: Fields) -> tuple[tuple[str, str], ...]:
    """Return the arguments with the names that they are the values of; nothing if one of them is something else."""
    passed: list[tuple[str, str]] = []
    for argument, template in arguments.fields:
        name = _name_itself(template)
        if name is None:
            return ()
        passed.append((argument, name))
    return tuple(passed)


def _rank(block: NodeBlock, after: int, later: dict[str, int] | None = None) -> int:
    """Set each node's rank, walking backwards; return the longest chain that starts in the block."""
    longest = after
    users: dict[str, int] = dict(later or {})
    for node in reversed(block.nodes):
        tail = after
        for name in node.assigns if node.blocks else node.defines:
            if users.get(name, 0) > tail:
                tail = users[name]
        if node.blocks:
            node.rank = max([_rank(inner, tail, users) for inner in node.blocks])
        else:
            node.rank = tail + (1 if node.kind is Call or node.kind is AskModel else 0)
        rank = node.rank
        for name in node.waits if not node.blocks else node.captures:
            if users.get(name, 0) < rank:
                users[name] = rank
        if rank > longest:
            longest = rank
    return longest
