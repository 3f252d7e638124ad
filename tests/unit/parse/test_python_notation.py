"""Programs in the Python notation, read as plans."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from toolplan.diagnostics import Source
from toolplan.parse.python_notation import read_program
from toolplan.plan import Plan


def _beside(name: str) -> ModuleType:
    """Return the module `name` that stands beside this file."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


oracle = _beside("python_oracle")
programs = _beside("python_programs")


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_means_what_cpython_does(name):
    text = programs.PROGRAMS[name]
    plan = read_program(Source(text), set(programs.TOOLS) - {"ask_user"})
    expected = oracle.run_by_python(text.replace("max_iterations(10)\n", "pass\n"), programs.TOOLS)
    if isinstance(plan, Plan):
        assert oracle.run_in_order(plan, programs.TOOLS) == expected
    else:
        assert (list[object](), plan.reason) == expected
