"""A command line to try out in this process, and tools, plans and replies to try it on."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from toolplan.cli import main

TOOLS = '''
"""Tools of a small office."""
from dataclasses import dataclass
from pathlib import Path

from toolplan import tool

SENT = Path(__file__).with_name("sent.txt")


@dataclass
class Weather:
    """The weather of a day."""

    city: str
    temperature: float


@tool(reads="weather")
def get_weather(city: str) -> Weather:
    """Weather of a city."""
    print("a tool prints")
    return Weather(city, -3.5)


@tool(writes="mailbox:{to}", approval="ask")
def send_email(to: str, subject: str) -> str:
    """Sends a mail."""
    SENT.open("a").write(f"{to}: {subject}\\n")
    return "sent"


@tool(writes="ledger")
def pay(amount: float) -> str:
    """Pays."""
    raise ValueError("the bank is closed")


@tool(pure=True, approval="deny")
def launch() -> str:
    """Never to be called."""
    return "launched"
'''

MAIL_PLAN = {
    "steps": [
        {"tool_name": "get_weather", "arguments": {"city": "北京"}, "result_variable": "w"},
        {
            "if": "w.temperature < 5",
            "then": [
                {"tool_name": "send_email", "arguments": {"to": "me@example.com", "subject": "{w.temperature} °C"}}
            ],
        },
    ],
    "answer": "{w.city}: {w.temperature}",
}
GOOD_PLAN = {"steps": MAIL_PLAN["steps"][:1], "answer": "{w.city}: {w.temperature}"}
BAD_PLAN = {
    "steps": [
        {"tool_name": "send_email", "arguments": {"to": "me@example.com", "subject": "hi"}},
        {"tool_name": "get_wether", "arguments": {"city": "Oslo"}, "result_variable": "w"},
    ],
    "answer": "{v.city}",
}
ANSWER_KEYS = frozenset({"outcome", "answer", "inferences", "usage", "steps", "diagnostics", "plan"})
STEP_KEYS = frozenset(
    {"id", "tool", "arguments", "outcome", "result", "error", "started_seconds", "finished_seconds", "sources"}
)


@dataclass(frozen=True)
class Done:
    """What a command line ended with."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output; fails when there is anything else."""
        return json.loads(self.out)


class Office:
    """A folder with tools, in which command lines are run."""

    MAIL_PLAN: ClassVar[Any] = MAIL_PLAN
    """Looks up the weather and sends a mail, which needs approval."""
    GOOD_PLAN: ClassVar[Any] = GOOD_PLAN
    BAD_PLAN: ClassVar[Any] = BAD_PLAN
    """Sends a mail, then calls a tool that does not exist and uses a name that nothing defines."""
    ANSWER_KEYS: ClassVar[frozenset[str]] = ANSWER_KEYS
    STEP_KEYS: ClassVar[frozenset[str]] = STEP_KEYS

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture
        self.tools = self.write("office.py", TOOLS)

    def write(self, name: str, text: str | bytes) -> str:
        """Write a file and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def plan(self, plan: Any) -> str:
        """Write a plan and return its path."""
        return self.write("plan.json", json.dumps(plan, ensure_ascii=False))

    def model(self, *plans: Any) -> str:
        """Write a recording whose replies are these plans or texts, and return the model's name."""
        texts = [plan if isinstance(plan, str) else json.dumps(plan, ensure_ascii=False) for plan in plans]
        lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
        return "scripted:" + self.write("replies.jsonl", "\n".join(lines))

    @property
    def sent(self) -> list[str]:
        """The mails that were really sent."""
        file = self.folder / "sent.txt"
        return file.read_text().splitlines() if file.exists() else []

    def __call__(self, *arguments: str) -> Done:
        """Run a command line."""
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ending:
            main(list(arguments))
        captured = self._capture.readouterr()
        assert isinstance(ending.value.code, int)
        assert "Traceback" not in captured.out + captured.err
        return Done(ending.value.code, captured.out, captured.err)


@pytest.fixture
def office(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Office:
    """A folder with tools, no model in the environment and nobody at the terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    for variable in ("TOOLPLAN_MODEL", "TOOLPLAN_BASE_URL", "TOOLPLAN_DEBUG"):
        monkeypatch.delenv(variable, raising=False)
    return Office(tmp_path, capsys)


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | bytes], None]:
    """A function that puts text on standard input."""

    def put(text: str | bytes) -> None:
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    return put
