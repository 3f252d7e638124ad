"""Tools: what a plan can call.

A function, declared with `@tool` (`decorator.py`) or not, becomes a `Tool` (`tool.py`). `callee.py` looks at the
callable; `schema.py` turns its hints into JSON Schema and JSON into what it expects, `results.py` does the same for
what it returns, both with pydantic (`adapters.py`) where hints are not plain; `docstrings.py` reads its texts,
`declaration.py` checks what is declared beside it, `faults.py` says why a value does not fit, and `signature.py` writes
tools as a model sees them. A `ToolSet` (`toolset.py`) holds them by name.
"""

from toolplan.tools.context import IS_CANCELLED, ToolContext
from toolplan.tools.declaration import Declaration, RateLimit
from toolplan.tools.decorator import tool
from toolplan.tools.faults import ArgumentFault, FaultKind
from toolplan.tools.happened import Happened
from toolplan.tools.marks import is_marked
from toolplan.tools.signature import signatures
from toolplan.tools.tool import Tool
from toolplan.tools.toolset import ToolSet, ToolSource

__all__ = [
    "IS_CANCELLED",
    "ArgumentFault",
    "Declaration",
    "FaultKind",
    "Happened",
    "RateLimit",
    "Tool",
    "ToolContext",
    "ToolSet",
    "ToolSource",
    "is_marked",
    "signatures",
    "tool",
]
