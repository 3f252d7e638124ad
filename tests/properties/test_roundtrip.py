"""Printing a plan and reading it again gives the same plan."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings

from properties.strategies import plans, shape
from toolplan.parse import CannotPlan, parse
from toolplan.plan import Cannot, Plan
from toolplan.show import canonical, to_json


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans)
def test_printing_and_reading_is_the_identity(plan: Plan):
    text = canonical(plan)
    again = parse(text)
    if isinstance(again, CannotPlan):
        assert len(plan.steps) == 1
        assert isinstance(plan.steps[0], Cannot)
        return
    assert isinstance(again, Plan), text
    assert shape(again) == shape(plan), text
    assert again.repairs == ()
    assert canonical(again) == text


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans)
def test_text_and_value_are_the_same(plan: Plan):
    assert json.loads(canonical(plan)) == to_json(plan)
