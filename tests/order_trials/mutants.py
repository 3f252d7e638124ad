"""Rules of the order, each with an edit of the source that removes it. Some test must notice every one of them.

`scripts/mutate_order.py` makes the edits in a copy and tries them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MUTANTS", "Mutant"]

EFFECTS, ORDER = "effects.py", "schedule/order.py"
TICKETS, FLOW, BODIES = "schedule/tickets.py", "schedule/flow.py", "schedule/bodies.py"
PROGRAM, MACHINE, STATE = "schedule/program.py", "schedule/machine.py", "schedule/state.py"
ATTEMPTS = "schedule/attempts.py"


@dataclass(frozen=True)
class Mutant:
    """One rule, and the edit that removes it."""

    rule: str
    file: str
    old: str
    new: str


MUTANTS = [
    # Conflicts
    Mutant("a write conflicts with an earlier read of the same", ORDER,
           "found = node.reads.last_before(path) or node.below_reads.last_before(path)",
           "found = node.below_reads.last_before(path)"),
    Mutant("a write conflicts with an earlier read of what is below it", ORDER,
           "found = node.reads.last_before(path) or node.below_reads.last_before(path)",
           "found = node.reads.last_before(path)"),
    Mutant("a write conflicts with an earlier read of what is above it", ORDER,
           "found = above.reads.last_before(path)", "found = None"),
    Mutant("an access conflicts with an earlier write of the same", ORDER,
           "found = node.writes.last_before(path) or node.below_writes.last_before(path)",
           "found = node.below_writes.last_before(path)"),
    Mutant("an access conflicts with an earlier write of what is below it", ORDER,
           "found = node.writes.last_before(path) or node.below_writes.last_before(path)",
           "found = node.writes.last_before(path)"),
    Mutant("an access conflicts with an earlier write of what is above it", ORDER,
           "found = above.writes.last_before(path)", "found = None"),
    Mutant("a read conflicts with no earlier read", ORDER,
           "if found is None and access.write:\n            found = node.reads",
           "if found is None:\n            found = node.reads"),
    Mutant("all accesses of a call count, not only the first", ORDER,
           "for access in ticket.accesses:\n            if found := self._conflicting",
           "for access in ticket.accesses[:1]:\n            if found := self._conflicting"),
    Mutant("a declared call waits for an earlier undeclared one", ORDER,
           "if (ticket.accesses or ticket.undeclared) and (found",
           "if ticket.undeclared and (found"),
    Mutant("an undeclared call waits for an earlier undeclared one", ORDER,
           "if (ticket.accesses or ticket.undeclared) and (found",
           "if ticket.accesses and (found"),
    Mutant("an undeclared call waits for an earlier write", ORDER,
           "(world.writes, world.below_writes, world.reads, world.below_reads)", "(world.reads, world.below_reads)"),
    Mutant("an undeclared call waits for an earlier read", ORDER,
           "(world.writes, world.below_writes, world.reads, world.below_reads)", "(world.writes, world.below_writes)"),
    Mutant("a call that touches nothing waits for no undeclared one", ORDER,
           "if (ticket.accesses or ticket.undeclared) and (found", "if (found"),
    # `parallel`
    Mutant("undeclared calls of different members do not wait for each other", ORDER,
           "(found := self._undeclared.last_before(path, claimed))", "(found := self._undeclared.last_before(path))"),
    Mutant("an undeclared call does not wait for declared ones of other members", ORDER,
           "if found := tickets.last_before(path, claimed):", "if found := tickets.last_before(path):"),
    Mutant("declared conflicts keep their order in a group", TICKETS,
           "blocker = self._order.blocker(inst.ticket, claimed)",
           "blocker = None if claimed else self._order.blocker(inst.ticket, claimed)"),
    Mutant("a group exempts only its own other members", ORDER,
           "            end = group\n        index = bisect_left(paths, end)",
           "            end = ()\n        index = bisect_left(paths, end)"),
    Mutant("a member waits for earlier steps of the same member", ORDER,
           "if index and paths[index - 1] >= (*group, member):", "if False:"),
    # What is known, what is not yet
    Mutant("a resource that is not known stands for its family", EFFECTS,
           "            if value is None or isinstance(value, dict):\n                return prefixes",
           "            if value is None or isinstance(value, dict):\n                return []"),
    Mutant("a list of arguments names one resource for each", EFFECTS,
           "elements = value if isinstance(value, list) else [value]",
           "elements = value[:1] if isinstance(value, list) else [value]"),
    Mutant("text behind a placeholder is part of the name", EFFECTS,
           "(*prefix, *_filled(element), *tail)", "(*prefix, *_filled(element), 'x')"),
    Mutant("a resource narrows when its argument is known", TICKETS,
           "if ticket is None or ticket.accesses == accesses:", "if True:"),
    Mutant("what waits looks again when a resource has narrowed", TICKETS,
           "        ticket.accesses = accesses\n        self._order.add(ticket)\n        self._wake(ticket)",
           "        ticket.accesses = accesses\n        self._order.add(ticket)"),
    Mutant("a state that is ensured goes before those that require it", EFFECTS,
           "found += [Access((STATE, *r), write) for p, write in self._states for r in p.resources(arguments)]",
           "pass"),
    # What is not unfolded yet
    Mutant("a branch or loop holds what it may touch until it is decided", PROGRAM,
           "        node.accesses = tuple(accesses)\n", ""),
    Mutant("a branch or loop counts as undeclared when something in it is", PROGRAM,
           "node.undeclared = node.undeclared or child.undeclared", "pass"),
    Mutant("what a body has not issued yet keeps its place", FLOW,
           "frame.rest = self._take_ticket((*frame.path, index), accesses, undeclared, scope, gates)",
           "frame.rest = None"),
    Mutant("the rounds that have not begun keep their place", BODIES,
           "loop.rest = self._take_ticket((*inst.path, loop.rounds), accesses, undeclared, scope, gates)",
           "loop.rest = None"),
    Mutant("a branch gives its place up only when its body has its own", BODIES,
           "        self._advance(frame)\n        self._return_ticket(ticket)\n\n    def _body_issued",
           "        self._return_ticket(ticket)\n        self._work()\n        self._advance(frame)\n\n"
           "    def _body_issued"),
    Mutant("the handler of a `try` keeps its place until the body is over", BODIES,
           "inst.ticket = self._take_ticket((*inst.path, 1), accesses, undeclared, outer, gates)",
           "inst.ticket = None"),
    # Failures
    Mutant("an effect waits for what may fail before it", TICKETS,
           "if blocker is None and inst.node.effect and self._holds_back and frame.scope is not None:", "if False:"),
    Mutant("an effect in a `try` waits for what may fail before the `try`", ORDER,
           "            scope = scope.parent\n", "            scope = None\n"),
    Mutant("a failure in a `try` holds back nothing outside of it", BODIES,
           "frame.scope = FailScope(frame.scope)", "pass"),
    Mutant("members of a group do not hold each other back", STATE,
           '            if frame.parallel:\n                groups.append',
           '            if False:\n                groups.append'),
    Mutant("rounds of a `for_each` do not hold each other back", STATE,
           'if inst is not None and inst.loop is not None and inst.has_equal_rounds:',
           'if False:'),
    Mutant("rounds that hand values on hold each other back", STATE,
           'return self.node.kind is ForEach and not self.joins',
           'return self.node.kind is ForEach'),
    Mutant("rounds of a `while` hold each other back", STATE,
           'return self.node.kind is ForEach and not self.joins',
           'return not self.joins'),
    Mutant("what stands behind a failure is given up", FLOW,
           "        elif not frame.parallel:\n            self._cut(frame, inst.index)\n"
           "        self._abandon_after(frame)",
           "        self._abandon_after(frame)"),
    Mutant("what stands behind a failed body is given up", FLOW,
           "            if not frame.parallel:\n                self._cut(frame, owner.index)", "            pass"),
    Mutant("the other members of a group go on when one fails", FLOW,
           "        elif not frame.parallel:\n            self._cut", "        else:\n            self._cut"),
    Mutant("the first failure in written order counts", FLOW,
           "if frame.failure is None or failure.path < frame.failure.path:", "if frame.failure is None:"),
    Mutant("a step whose `on_error` value can fail may fail", PROGRAM,
           "return not isinstance(on_error.value, Literal)", "return False"),
    Mutant("a step with `on_error: skip` holds nothing back", PROGRAM,
           'return on_error.action in ("fail", "replan")', 'return on_error.action in ("fail", "replan", "skip")'),
    Mutant("independent failures do not reach what does not use them", FLOW,
           'if on_error.action == "skip" or inst.frame.scope is None:', 'if on_error.action == "skip":'),
    Mutant("a `try` catches failures where they are independent, too", BODIES,
           "frame.scope = FailScope(frame.scope)", "frame.scope = frame.scope and FailScope(frame.scope)"),
    Mutant("a failed call leaves its names without a value", FLOW,
           "        self._fill(inst.defined, None)\n        for cell", "        for cell"),
    Mutant("a name that a later member uses counts when its member is over", PROGRAM,
           "member.whole = frozenset(used.intersection(member.assigns))", "pass"),
    # Control
    Mutant("nothing begins behind an end that is not decided", PROGRAM,
           "node.leaves = EXIT if isinstance(step, Answer) else 0", "node.leaves = 0"),
    Mutant("nothing begins behind a question to a person", PROGRAM,
           "node.leaves = EXIT  # the run may end here", "node.leaves = 0  # the run may end here"),
    Mutant("a branch may leave when something in it may", PROGRAM, "node.leaves |= child.leaves", "pass"),
    Mutant("a note waits for what may fail before it", PROGRAM,
           'node.effect = True  # "paid"', 'node.effect = isinstance(step, Answer)  # "paid"'),
    Mutant("`break` and `continue` wait for what may fail before them", PROGRAM,
           "node.leaves = BREAK if isinstance(step, Break) else CONTINUE\n                node.effect = True",
           "node.leaves = BREAK if isinstance(step, Break) else CONTINUE"),
    Mutant("a round waits for the one before when that may leave the loop", BODIES,
           'at_once = not inst.joins and (self._speculate or not inst.node.blocks[0].leaves & (EXIT | BREAK))',
           'at_once = not inst.joins'),
    Mutant("a round waits for the one before when that hands values on", BODIES,
           'at_once = not inst.joins and (',
           'at_once = ('),
    Mutant("no further round begins after a `break`", BODIES,
           'if frame.ended in ("exit", "break"):', 'if frame.ended == "exit":'),
    Mutant("no further round begins after an end of the plan", BODIES,
           'if frame.ended in ("exit", "break"):', 'if frame.ended == "break":'),
    # Values
    Mutant("a step that uses a missing value is skipped", MACHINE,
           "inst.arguments is None and self._is_absent(inst)", "False"),
    Mutant("a handler sees names as they were where the failure stands", FLOW,
           'kept = {name: cell for index, name, cell in versions if index < failing}',
           'kept = {name: cell for index, name, cell in versions}'),
    Mutant("a `while` whose test has lost a value goes no further", BODIES,
           "if any(name not in cells or cells[name].value is None for name in step.test.names):", "if False:"),
    Mutant("a round that may still be left does not hand over its value yet", BODIES,
           "is_certain = len(frame.gates) == len(owner.frame.gates)", "is_certain = True"),
    Mutant("a statement waits for the values that it uses", FLOW,
           "is_filled = is_filled and cell.filled", "pass"),
    # Calls
    Mutant("an effect is not tried again unless that is safe", ATTEMPTS,
           'is_safe = not tool.effects.has_effects or tool.idempotent or event.effect == "none"', "is_safe = True"),
    Mutant("nothing is called beside a call that could not be stopped", MACHINE,
           "if self._left_behind and (other := self._still_touched(inst)) is not None:", "if False:"),
    Mutant("a call that could not be stopped is not tried again beside itself", ATTEMPTS,
           "        if event.still_running and tool.effects.has_effects:\n            return None",
           "        if False:\n            return None"),
    Mutant("a call that is dropped lets the next of its tool come forward", ATTEMPTS,
           "self._bring_forward(tool.name)  # it stood for whoever is held behind it", "pass"),
]  # fmt: skip
