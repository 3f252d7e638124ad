"""The commands of `toolplan`, in the order in which `--help` lists them, each with an example.

With `--json` a command prints exactly one JSON document on standard output; what is meant for a person goes to standard
error.
"""

from __future__ import annotations

from cyclopts import App

from toolplan.cli.commands import plans, requests, runs, tools
from toolplan.cli.outputs import EXIT_CODES

__all__ = ["COMMANDS", "app"]

COMMANDS = {
    "demo": (requests.demo, "toolplan demo ten-cities --language zh"),
    "ask": (requests.ask, 'toolplan ask "Will it rain in Oslo tomorrow?" --tools tools.py --model ollama:qwen3:8b'),
    "run": (requests.run, "toolplan run plan.json --tools tools.py --tools my.package:more_tools"),
    "runs": (runs.runs, "toolplan runs 3f2a"),
    "resume": (runs.resume, "toolplan resume 3f2a --tools tools.py"),
    "approve": (runs.approve, 'toolplan approve 3f2a --deny "not this customer"'),
    "answer": (runs.answer, 'toolplan answer 3f2a "the second one"'),
    "resolve": (runs.resolve, "toolplan resolve 3f2a s2 happened --result '{\"id\": 7}'"),
    "check": (plans.check, "toolplan check plan.json --tools tools.py"),
    "show": (plans.show, "toolplan show plan.json --mermaid > plan.mmd"),
    "explain-order": (plans.explain_order, "toolplan explain-order plan.json --tools tools.py"),
    "fmt": (plans.fmt, "toolplan fmt plan.json --write"),
    "tools": (tools.tools, "toolplan tools --tools tools.py --json"),
    "prompt": (tools.prompt, 'toolplan prompt "Will it rain in Oslo tomorrow?" --tools tools.py'),
    "route": (
        tools.choose,
        'toolplan route "明天奥斯陆会下雨吗？" --tools tools.py --top 3 --intent 下雨=get_weather',
    ),
    "schema": (tools.schema, "toolplan schema --tools tools.py > plan.schema.json"),
    "policy": (
        plans.policy,
        "toolplan policy test plan.json --tools tools.py --request 'pay Ann 20'; toolplan policy show default",
    ),
    "explain": (plans.explain, "toolplan explain TP302"),
}

app = App(
    name="toolplan",
    help="Ask a language model once for a whole plan of tool calls; check it, run it in parallel, answer.",
    help_format="plaintext",
    help_epilogue="Start with `toolplan demo`, which needs no key. `toolplan COMMAND --help` tells more; every command "
    f"takes --json. Exit codes: {', '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}.",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)
for place, (name, (command, example)) in enumerate(COMMANDS.items()):
    app.command(command, name=name, sort_key=place, help_epilogue=f"Example: {example}")
