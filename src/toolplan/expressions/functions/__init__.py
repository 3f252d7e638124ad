"""The functions of the language, one file a subject. Whoever adds one adds its typing rule in `results.py`."""

from toolplan.expressions.functions import calendar, choosing, kinds, numeric, sequences, texts
from toolplan.expressions.functions.registry import FUNCTIONS, MISSING, Function

__all__ = ["FUNCTIONS", "MISSING", "Function", "calendar", "choosing", "kinds", "numeric", "sequences", "texts"]
