"""Restricted Python -> Plan: for models that plan best in code. The program is read, never executed.

    text         `fstrings`, `text`: Python's own grammar, f-strings as in 3.12, every node with its place
    survey       one walk: which names there are, which expressions hold calls
    lowering     `statements`, `values`, `calls`, `comprehensions`, `changes`, `trying`, `bounds`, `schemas`:
                 each statement becomes steps; a call inside an expression becomes a step before it
    sharing      refuses changes that Python would show under a second name
    numbering    ids in written order

What a program means is what Python would do, with these differences: values are never shared; a call that is nested in
an expression runs before the rest of its statement is computed; a loop's own variable ends with the loop, and so does a
name that is first assigned inside it; `a, b = xs` does not mind further elements.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from toolplan.diagnostics import Source
from toolplan.parse.reading import CannotPlan
from toolplan.plan import Plan

__all__ = ["read_program"]


def read_program(
    source: Source,
    tool_names: Collection[str] | None = None,
    parameters: Mapping[str, Sequence[str]] | None = None,
    *,
    repairs: Sequence[str] = (),
    first_step: int = 1,
) -> Plan | CannotPlan:
    """Return the plan that the program in `source.text` is, or its word that there can be none.

    Without `tool_names`, a call of a name that is nothing else is a call of a tool. `parameters` gives each tool's
    parameter names in the order of its signature; arguments without a name are accepted for these tools. `repairs` is
    what was mended before, `first_step` the number of the first step.

    Raises `PlanRejected` with every problem of reading, in source order. Whether the tools exist and fit is for the
    checker to say.
    """
    from toolplan.parse.python_notation.program import read_whole  # 10 ms to import, and most replies are no programs
    from toolplan.parse.python_notation.vocabulary import Vocabulary

    return read_whole(source, Vocabulary(tool_names, parameters), repairs, first_step)
