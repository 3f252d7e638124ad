"""A test kit for tools and plans: scripted models, simulated time, a plain interpreter to compare with.

`ScriptedModel` and `FunctionModel` stand in for a language model. `run_in_written_order` runs a checked plan one step
after the other, as its meaning is defined; `simulate` runs it with the real scheduler on a virtual clock, where calls
take random times and overlap as they may. Whatever the times, both must leave the same world.
"""

from toolplan.models import FunctionModel, RecordingModel, ScriptedModel
from toolplan.testing.conformance import Case, load_cases, run_case
from toolplan.testing.fakes import Fakes, fake_tools
from toolplan.testing.interpreter import Reference, run_in_written_order
from toolplan.testing.simulation import Simulation, simulate

__all__ = [
    "Case",
    "Fakes",
    "FunctionModel",
    "RecordingModel",
    "Reference",
    "ScriptedModel",
    "Simulation",
    "fake_tools",
    "load_cases",
    "run_case",
    "run_in_written_order",
    "simulate",
]
