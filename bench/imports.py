"""`import toolplan` and `toolplan --help`: what a user waits for before anything happens.

Wall time of fresh processes over an empty one (`python -c pass`), for that is what a shell user feels. Peers on the
same kind of measurement: pydantic-ai 595 ms.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from bench.harness import Bench, Report, Table, Times, interleaved, within_ms

FLOOR = "python -c pass"
COMMANDS = {
    FLOOR: [sys.executable, "-c", "pass"],
    "import toolplan": [sys.executable, "-c", "import toolplan"],
    "import of Agent and tool": [sys.executable, "-c", "from toolplan import Agent, tool"],
    "toolplan --help": [sys.executable, "-m", "toolplan", "--help"],
}
# The names of `toolplan` are imported on first use, so the bare import alone would flatter.
REACH_MS = {"import toolplan": 150, "import of Agent and tool": 150, "toolplan --help": 400}


async def run(full: bool) -> Report:
    # Bytecode is written on the warm-up round and used ever after, as on a user's machine.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def starter(command: list[str]) -> Callable[[], int]:
        def start() -> int:
            done = subprocess.run(command, env=environment, capture_output=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')}")
            return done.returncode

        return start

    times = await interleaved(
        {name: starter(command) for name, command in COMMANDS.items()}, repeats=31 if full else 15
    )
    over = {
        name: Times(tuple(a - b for a, b in zip(taken.seconds, times[FLOOR].seconds, strict=True)))
        for name, taken in times.items()
        if name != FLOOR
    }
    rows = {**times, **{f"{name}, over the floor": taken for name, taken in over.items()}}
    return Report(
        name="import",
        tables=[Table("wall time of a fresh process", "ms/start", rows, floors=())],
        goals=[within_ms(name, over[name].median, reach) for name, reach in REACH_MS.items()],
    )


BENCH = Bench("import", "wall time of `import toolplan` and `toolplan --help` over an empty process", run)
