"""Where tools come from, other than the application's own code: so far, Python files and modules."""

from toolplan.toolsources.local import load_tools

__all__ = ["load_tools"]
