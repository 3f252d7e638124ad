"""Whether an argument is carried out rather than read: a shell command, SQL, code.

Prose does nothing by itself, so a policy may let it pass. What a shell, a database or an interpreter is given does
something however it is worded. A tool says so by naming the argument as `guarded`. Where it names none, this is read
from what it declares and what its parameters are called, in English and Chinese:

- a resource it writes is a `shell`, `process`, `code`, `sql`, `terminal`, or it writes a `database` and the parameter
  is a `query`, a `where`, a `pipeline`;
- its own name has such a word in it (`run_shell`, `psql`, `执行命令`), or says that code, a query or a command is
  run (`run_query`, `execute_command_line`, `执行SQL`), or is an interpreter's (`sh`, `node`, `git`): then all its
  arguments;
- the parameter is called `command`, `cmd`, `sql`, `script`, `code`, `argv`, `命令`, `脚本`, `语句`, ..., or its schema
  says so (`contentMediaType`, `format`).

A word too many asks once too often, so words that mostly mean something else (`query`, `run`, `country_code`) do not
count by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from toolplan.patterns import late_pattern
from toolplan.tools import Tool

__all__ = ["is_obeyed"]


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


_SHELLS = _words(
    "shell bash zsh ksh powershell pwsh terminal cmd subprocess exec eval repl sql ssh python javascript osascript "
    "applescript psql mysql sqlite sqlite3 mongosh plpgsql cypher graphql sparql"
)
_INTERPRETERS = _words(
    "sh fish node deno perl ruby lua php awk sed redis mongo git kubectl docker terraform ansible cron crontab make "
    "os_system system_call code_interpreter interpreter execute 执行 运行"
)
"""As the whole name of a tool, or after a word that says that it is run: `run_lua`."""
_RUNS = _words("run runs execute exec eval evaluate invoke start launch spawn submit 执行 运行")
_RUN = _words(
    "code command commands cmd cmdline commandline script scripts query queries statement statements program programs "
    "process sql js expression snippet instruction instructions shell cli"
)
"""What is run, in the name of a tool that has one of `_RUNS` too."""
_COMMANDS = _SHELLS | _words("command commands cmds cmdline commandline script scripts argv")
"""In the name of a parameter."""
_ALONE = _words(
    "code source_code statement statements stmt expression expr formula program snippet playbook js 代码 源代码 程序"
)
"""As the whole name of a parameter: in a longer one they mostly mean something else."""
_DATABASES = _words("db database databases table tables 数据库")
_QUERIES = _words("query q where filter pipeline aggregate 查询 条件")
"""The parameters of what writes a database that are carried out there."""
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
    words = _parts(tool)
    if not _SHELLS.isdisjoint(words) or _HAN_TOOL.search(tool) or _runs_what_it_is_given(words):
        return True
    parts = _parts(name)
    whole = "_".join(parts)
    written = {re.split(r"[:/]", resource, maxsplit=1)[0].casefold() for resource in writes}
    if not _RESOURCES.isdisjoint(written) or (whole in _QUERIES and not _DATABASES.isdisjoint(written)):
        return True
    return not _COMMANDS.isdisjoint(parts) or whole in _ALONE or _HAN_PARAMETER.search(name) is not None


def _runs_what_it_is_given(words: list[str]) -> bool:
    """Return whether a tool's name is an interpreter's, or says that it runs code, queries or commands."""
    if "_".join(words) in _INTERPRETERS:
        return True
    rest = set(words) - _RUNS
    return len(rest) < len(set(words)) and (not _RUN.isdisjoint(rest) or "_".join(words[1:]) in _INTERPRETERS)


def _parts(name: str) -> list[str]:
    """Return the words of a name: `run`, `shell`, `command` of `runShell_command`; `执行`, `sql` of `执行SQL`."""
    spaced = re.sub(
        r"(?<=[a-z0-9])(?=[A-Z])|(?<=[\u3400-\u9fff])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u3400-\u9fff])", "_", name
    )
    return [part for part in re.split(r"[_\-.\s]+", spaced.casefold()) if part]
