"""The command: `python -m bench NAME ... [--full] [--json]`."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import time
from dataclasses import replace

from bench.harness import Bench, machine

MODULES = {
    "overhead": "bench.overhead",
    "fanout": "bench.fanout",
    "makespan": "bench.makespan",
    "soak": "bench.soak",
    "compile": "bench.compile",
    "stream": "bench.stream",
    "formats": "bench.formats",
    "import": "bench.imports",
    "replies": "bench.replies",
    "zh": "bench.zh",
    "nestful": "bench.nestful",
    "fuzz": "bench.fuzz",
    "complexfuncbench": "bench.complexfuncbench",
    "order": "bench.order",
    "bfcl": "bench.bfcl",
    "bfcl_single": "bench.bfcl_single",
    "tau": "bench.tau",
    "agentdojo": "bench.agentdojo",
    "api_bank": "bench.api_bank",
    "savings": "bench.savings",
    "routing": "bench.routing",
    "journal": "bench.journal",
    "kill": "bench.kill",
}
"""Name on the command line: module. A module is imported only when its bench is asked for."""


def main(arguments: list[str] | None = None) -> int:
    """Run the benches that were asked for. A missed figure is a figure, not a failure: the exit code stays 0."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Figures beside their floors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(MODULES)}")
    parser.add_argument("--full", action="store_true", help="more repeats and sizes; may take minutes")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout, nothing else")
    options = parser.parse_args(arguments)
    names = options.names or (list(MODULES) if options.full else [])
    if not names:
        parser.print_help()
        return 2
    if unknown := [name for name in names if name not in MODULES]:
        parser.error(f"no bench is named `{unknown[0]}`; there are {', '.join(MODULES)}")
    reports = []
    for name in names:
        bench: Bench = importlib.import_module(MODULES[name]).BENCH
        if not options.json:
            about = machine()
            print(f"\n# {name}: {bench.what}  (Python {about['python']}, {about['cores']} cores)\n", flush=True)
        started = time.perf_counter()
        report = asyncio.run(bench.run(options.full))
        report = replace(report, took_seconds=time.perf_counter() - started)
        reports.append(report)
        if not options.json:
            print("\n\n".join(table.to_text() for table in report.tables))
            print(f"\n{report.last_line()}", flush=True)
    if options.json:
        print(json.dumps([report.to_dict() for report in reports], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
