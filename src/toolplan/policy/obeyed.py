"""Whether an argument is carried out rather than read: a shell command, SQL, code.

Prose does nothing by itself, so a policy may let it pass. What a shell, a database or an interpreter is given does
something however it is worded. A tool says so by naming the argument as `guarded`. Where it names none, this is read
from what it declares and what its parameters are called, in English and Chinese:

- a resource it writes is a `shell`, `process`, `code`, `sql`, `terminal`;
- its own name has such a word in it (`run_shell`, `执行命令`), which is about all its arguments;
- the parameter is called `command`, `cmd`, `sql`, `script`, `code`, `命令`, `脚本`, `语句`, ..., or its schema says so
  (`contentMediaType`, `format`).

A word too many asks once too often, so words that mostly mean something else (`query`, `run`, `country_code`) do not
count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from toolplan.patterns import late_pattern
from toolplan.tools import Tool

__all__ = ["is_obeyed"]

_SHELLS = frozenset(
    {
        "shell", "bash", "zsh", "powershell", "terminal", "cmd", "subprocess", "exec", "eval", "repl", "sql", "ssh",
        "python", "javascript",
    }
)  # fmt: skip
_COMMANDS = _SHELLS | {"command", "commands", "cmds", "cmdline", "script", "scripts", "graphql", "cypher"}
"""In the name of a parameter."""
_ALONE = frozenset(
    {
        "code",
        "source_code",
        "statement",
        "statements",
        "expression",
        "expr",
        "program",
        "snippet",
        "代码",
        "源代码",
        "程序",
    }
)
"""As the whole name of a parameter: in a longer one they mostly mean something else."""
_HAN_TOOL = late_pattern("命令|终端|脚本|执行代码|运行代码|执行程序")
_HAN_PARAMETER = late_pattern("命令|指令|脚本|语句|表达式")
_RESOURCES = _SHELLS | {"process", "processes", "code", "command", "commands", "终端", "命令行", "进程"}
_MEDIA = late_pattern(r"text/x-|text/javascript|application/(?:sql|javascript|x-sh|x-python|x-httpd-php|graphql)")
_FORMATS = frozenset({"sql", "shell", "bash", "command", "code", "python", "javascript"})


def is_obeyed(tool: Tool, name: str) -> bool:
    """Return whether what this argument holds is a command to the tool, so that its wording matters."""
    if _is_named_so(tool.name, tool.effects.writes, name):
        return True
    found: Any = tool.parameters["properties"].get(name)
    schema = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else dict[str, Any]()
    return _MEDIA.match(str(schema.get("contentMediaType", ""))) is not None or schema.get("format") in _FORMATS


@lru_cache(maxsize=4096)
def _is_named_so(tool: str, writes: tuple[str, ...], name: str) -> bool:
    if not _SHELLS.isdisjoint(_parts(tool)) or _HAN_TOOL.search(tool):
        return True
    if any(re.split(r"[:/]", resource, maxsplit=1)[0].casefold() in _RESOURCES for resource in writes):
        return True
    parts = _parts(name)
    return not _COMMANDS.isdisjoint(parts) or "_".join(parts) in _ALONE or _HAN_PARAMETER.search(name) is not None


def _parts(name: str) -> list[str]:
    """Return the words of a name: those of `runShell_command` are `run`, `shell`, `command`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).casefold().replace("-", "_").replace(".", "_").split("_")
