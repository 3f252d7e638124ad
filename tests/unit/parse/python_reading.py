"""Reading programs in tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolplan.diagnostics import Diagnostic, Source
from toolplan.errors import PlanRejected
from toolplan.parse.python_notation import read_program
from toolplan.plan import Plan

REPLIES = Path(__file__).parents[2] / "data" / "model_replies"


def read(text: str, tools: Any = None, parameters: Any = None) -> Plan:
    """Return the plan that the program is."""
    plan = read_program(Source(text), tools, parameters)
    assert isinstance(plan, Plan)
    return plan


def refused(text: str, tools: Any = None, parameters: Any = None) -> tuple[Diagnostic, ...]:
    """Return why the program is refused."""
    with pytest.raises(PlanRejected) as caught:
        read_program(Source(text), tools, parameters)
    return caught.value.diagnostics


def marked(text: str, diagnostic: Diagnostic) -> str:
    """Return the text that the diagnostic points at."""
    span = Source(text).locate(diagnostic.place)
    assert span is not None
    return text[span[0] : span[1]]


def replies(name: str) -> Iterator[tuple[str, str]]:
    """Yield the id and the program of each recorded reply."""
    for line in (REPLIES / name).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found = re.search(r"```(?:python)?\n(.*?)```", record["reply"], re.DOTALL)
        assert found is not None
        yield record["id"], found.group(1)
