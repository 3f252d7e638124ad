"""5xx: plans that are larger, deeper or longer than the host allows."""

from __future__ import annotations

from toolplan.diagnostics.diagnostic import Diagnostic, explained
from toolplan.diagnostics.source import Place

__all__ = ["too_deep", "too_many_calls", "too_many_rounds", "too_many_steps"]


@explained(
    "TP501",
    "a plan with too many steps",
    story="""\
The host sets how many steps a plan may have. Steps that repeat the same call for many values belong into one
`for_each`.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "a"},
 {"tool_name": "get_weather", "arguments": {"city": "Rome"}, "result_variable": "b"},
 {"tool_name": "get_weather", "arguments": {"city": "Bonn"}, "result_variable": "c"},
 {"tool_name": "get_weather", "arguments": {"city": "Bern"}, "result_variable": "d"},
 {"tool_name": "get_weather", "arguments": {"city": "Riga"}, "result_variable": "e"}]""",
    right="""\
[{"for_each": ["Oslo", "Rome", "Bonn", "Bern", "Riga"], "as": "city", "do": [
   {"tool_name": "get_weather", "arguments": {"city": "{city}"}, "result_variable": "w"}],
  "collect": "w", "result_variable": "all"}]""",
)
def too_many_steps(place: Place, steps: int, limit: int) -> Diagnostic:
    """More steps than the host allows."""
    return Diagnostic(
        "",
        f"the plan has {steps:,} steps, but at most {limit:,} are allowed",
        place,
        "the first step too many",
        help="repeat a call for many values with one `for_each`",
    )


@explained(
    "TP502",
    "steps nested too deeply",
    story="""\
The host sets how deeply branches and loops may stand inside each other. Early exits (`answer`, `continue`), `and` in a
condition and comprehensions make plans flat.""",
    wrong="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"if": "w.temperature < 5", "then": [{"if": "w.temperature < 0", "then": [
   {"if": "w.condition == 'snow'", "then": [
     {"if": "w.temperature < -5", "then": [{"answer": "stay at home"}]}]}]}]}]""",
    right="""\
[{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"},
 {"if": "w.temperature < -5 and w.condition == 'snow'", "then": [{"answer": "stay at home"}]}]""",
)
def too_deep(place: Place, limit: int) -> Diagnostic:
    """Deeper nesting of steps than the host allows."""
    return Diagnostic(
        "",
        f"steps are nested more than {limit:,} levels deep",
        place,
        "one level too deep",
        help="join conditions with `and`, or leave early with `answer` or `continue`",
    )


@explained(
    "TP503",
    "a plan that may make too many calls",
    story="""\
The worst case is counted: of a branch the longer side, of a loop its body once per element or per allowed round. Loops
over a list whose length is not known before the run are not counted here; the run counts them.""",
    wrong="""\
[{"for_each": "range(200)", "as": "n", "do": [
   {"tool_name": "pay", "arguments": {"account": "a", "amount": 1}}]}]""",
    right="""\
[{"for_each": "range(20)", "as": "n", "do": [
   {"tool_name": "pay", "arguments": {"account": "a", "amount": 1}}]}]""",
)
def too_many_calls(place: Place, calls: int, limit: int, made: int = 0) -> Diagnostic:
    """More calls in the worst case than the host allows; `made` are those of earlier plans of the same run."""
    return Diagnostic(
        "",
        f"the plan may make {calls:,} calls, but at most {limit:,} are allowed",
        place,
        "the most calls are made here",
        notes=(f"the plans before it in this run have made {made:,} calls, which count too",) if made else (),
        help="make fewer calls, or do the work in several plans",
    )


@explained(
    "TP504",
    "a `while` loop with too many rounds",
    story="""\
A `while` loop needs `max_iterations`, and the host sets how large it may be. A loop over known values is a
`for_each`.""",
    wrong="""\
[{"let": {"n": "0"}},
 {"while": "n < 5", "do": [{"let": {"n": "n + 1"}}], "max_iterations": 1000000000}]""",
    right="""\
[{"let": {"n": "0"}},
 {"while": "n < 5", "do": [{"let": {"n": "n + 1"}}], "max_iterations": 5}]""",
)
def too_many_rounds(place: Place, rounds: int, limit: int) -> Diagnostic:
    """A larger bound of a `while` than the host allows."""
    return Diagnostic(
        "",
        f"`max_iterations` is {rounds:,}, but a loop may have at most {limit:,} rounds",
        place,
        "too many rounds",
        help=f"write a bound of at most {limit:,}",
    )
