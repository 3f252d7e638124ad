"""The child process that runs llama.cpp's server; `local` starts it as a script, and it needs nothing of toolplan.

What it should do comes as one JSON line on stdin, so that its key is in no list of processes. It answers with one JSON
line on stdout, the address where it listens, and then serves until stdin is closed. A parent that ends in whatever way,
killed included, closes it; should some other process have inherited the pipe, the parent's absence is noticed within
two seconds.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from typing import Any


def main() -> None:
    """Serve as the line on stdin says. Ends the process when nobody is left to serve."""
    config = json.loads(sys.stdin.readline())
    parent = os.getppid()
    server = start(config)
    print(json.dumps({"address": server.listening_address}), flush=True)
    # Whatever the library prints from here on goes nowhere, for nobody reads it.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    threading.Thread(target=_wait_for_end_of_input, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(2)
    os._exit(0)


def start(config: dict[str, Any]) -> Any:
    """Return the running server. Raises `RuntimeError` for a file that is no model."""
    llama: Any = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = config["path"]
    params.model_alias = {config["name"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [config["key"]]
    params.n_ctx = config["context_tokens"]
    params.n_parallel = 1
    params.sampling.temp = config["temperature"]
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = config["threads"]
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 0
    return llama.Server(params)


def _wait_for_end_of_input() -> None:
    while sys.stdin.read(1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
