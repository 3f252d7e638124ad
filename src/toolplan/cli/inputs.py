"""What the commands read: plans from files or standard input, tools, models, answers from a person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolplan.errors import UsageError

if TYPE_CHECKING:
    from toolplan.models import Model
    from toolplan.tools import ToolSet

__all__ = ["can_ask", "load_toolset", "model_for", "read_plan"]


def read_plan(plan: str) -> tuple[str, str]:
    """Return the text of a plan and its name: a file, or standard input for `-`. Raises `UsageError`."""
    if plan == "-":
        if sys.stdin.isatty():
            print("reading the plan from standard input; end with Ctrl-D", file=sys.stderr)
        data, name = sys.stdin.buffer.read(), "<stdin>"
    else:
        path = Path(plan)
        try:
            data, name = path.read_bytes(), path.name
        except FileNotFoundError:
            raise UsageError(f"there is no file {plan}; give a file with a plan, or `-` for standard input") from None
        except OSError as error:
            raise UsageError(f"{plan} cannot be read: {error.strerror or error}") from None
    try:
        return data.decode("utf-8-sig"), name
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None


def load_toolset(references: Sequence[str]) -> ToolSet:
    """Return the tools of all the files and modules named. Raises `UsageError`."""
    from toolplan.tools import ToolSet
    from toolplan.toolsources.local import load_tools

    return ToolSet.of(tool for reference in references for tool in load_tools(reference))


def model_for(name: str | None, base_url: str | None) -> Model | None:
    """Return the model named, or the one the environment names, or None. Raises `UsageError`."""
    from toolplan.models import model_from_environment, model_from_name

    if name is None:
        return model_from_environment(base_url=base_url)
    return model_from_name(name, base_url=base_url)


def can_ask(as_json: bool) -> bool:
    """Return whether there is a person to ask."""
    return not as_json and sys.stdin.isatty() and sys.stderr.isatty()
