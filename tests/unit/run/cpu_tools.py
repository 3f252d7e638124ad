"""Tools that run in processes of their own."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel


class Job(BaseModel):
    name: str
    size: int


class Stubborn(Exception):
    """Cannot be pickled back: its `__init__` takes other arguments than `args` has."""

    def __init__(self, code: int, place: str) -> None:
        super().__init__(f"code {code} at {place}")


class Panic(BaseException):
    """No `Exception`, as that of an extension in Rust."""


class Counter:
    """A callable object."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __call__(self, n: int) -> int:
        """Return the sum."""
        return self.start + n

    def add(self, n: int) -> int:
        """Return the sum."""
        return self.start + n


def panic() -> None:
    raise Panic("out")


def square(n: int) -> int:
    return n * n


def process_id() -> int:
    return os.getpid()


def describe(job: Job) -> Job:
    return Job(name=job.name.upper(), size=job.size + 1)


def count_to(n: int) -> Iterator[int]:
    yield from range(n)


def say(text: str) -> str:
    print(text)
    return text


def fail(text: str) -> int:
    raise ValueError(text)


def fail_stubbornly() -> int:
    raise Stubborn(7, "here")


def leave(code: int) -> int:
    os._exit(code)


def crash() -> int:
    return ctypes.string_at(0)  # type: ignore[return-value]


def no_value() -> Any:
    return lambda: 1


def hold(folder: str) -> int:
    """Write down the process id and stay there."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)
    return 1
