"""The same trials as in `test_written_order.py`, but with the real engine: threads, real time, real cancellation."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from order_trials.agreement import Refused, checked
from order_trials.plans import random_plan
from order_trials.world import Kind, World, answer, random_kinds, read
from toolplan.run import run_plan
from toolplan.testing import run_in_written_order

PLANS = 40


class SlowWorld(World):
    """A store whose tools take a little time, so that calls in threads really meet."""

    def act(self, kind: Kind, v: Any, k: Any, s: str) -> int:
        time.sleep(hash((kind.name, str(v))) % 4 / 1000)
        return super().act(kind, v, k, s)


async def ask(question: Any) -> str:
    await asyncio.sleep(0.001)
    return answer(question.question)


async def model(question: Any) -> Any:
    await asyncio.sleep(0.001)
    return read(question.question, question.data, question.returns)


def on_time(kind: Kind) -> Kind:
    fault = "never" if kind.is_late else kind.fault
    return replace(kind, fault=fault, retry=1)  # waiting for another attempt would take real seconds


def without_retries(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_retries(inner) for key, inner in value.items() if key != "retry"}
    return [without_retries(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("failure", ["written-order", "independent"])
@pytest.mark.parametrize("speculate", [False, True])
async def test_the_engine_leaves_the_world_of_the_written_order(failure: str, speculate: bool) -> None:
    tried = 0
    for seed in range(PLANS):
        rng = Random(seed)
        kinds = [on_time(kind) for kind in random_kinds(rng)]
        plan = without_retries(random_plan(rng, kinds))
        expected, actual = World(kinds), SlowWorld(kinds)
        try:
            reference = run_in_written_order(checked(plan, expected.tools), ask=answer, read=read, failure=failure)
        except Refused:
            continue
        result = await run_plan(
            checked(plan, actual.tools), ask=ask, read=model, failure=failure, speculate=speculate, max_concurrency=8
        )
        about = f"seed {seed}: {json.dumps(plan)}"
        assert (result.outcome, result.text, result.error) == (reference.outcome, reference.text, reference.error), (
            about
        )
        assert actual.log == expected.log, about
        assert actual.cells == expected.cells, about
        assert sorted(map(repr, actual.apart)) == sorted(map(repr, expected.apart)), about
        assert "running" not in {step.outcome for step in result.steps}, about
        tried += 1
    assert tried > PLANS // 2
