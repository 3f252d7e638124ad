"""Why a plan runs in the order it runs in."""

from toolplan.explain.order import Gain, PlanOrder, StepOrder, explain_order
from toolplan.explain.rows import Row, Wait
from toolplan.explain.waits import rows_of

__all__ = ["Gain", "PlanOrder", "Row", "StepOrder", "Wait", "explain_order", "rows_of"]
