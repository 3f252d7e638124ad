"""Reading the pages of cases, and noticing whatever is not as a page says."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from toolplan.errors import UsageError
from toolplan.testing import Case, conformance, load_cases, run_case, trials
from toolplan.testing.simulation import simulate
from toolplan.tools import ToolSet, tool

TOOLS = """
```tools
get(x: int = 0) -> G {n: int, s: str}  reads things
  if x == 9: fails "nine"
  returns {"n": "{x}", "s": "text"}
put(x: Any = 0)  writes things
mail(to: str)  writes mail:{to}
```
"""
PLAN = """
```plan json
[{"tool_name": "get", "arguments": {"x": 1}, "result_variable": "a"},
 {"tool_name": "put", "arguments": {"x": "{a.n}"}},
 {"note": "{a.s}"},
 {"answer": "{a.n}"}]
```
"""

Write = Callable[[str], Path]


@pytest.fixture
def page(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "page.md"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def expecting(*lines: str, plan: str = PLAN) -> str:
    return f"# Page\n{TOOLS}\n## R1 a case\n{plan}\n```expect\n" + "\n".join(lines) + "\n```\n"


def run_all(path: Path) -> list[Case]:
    cases = load_cases(path)
    for case in cases:
        run_case(case)
    return cases


# --- pages -----------------------------------------------------------------------------------------------------------


def test_a_page_has_its_cases_under_headings_that_cite_rules(page: Write) -> None:
    path = page(
        f"""
# A page

## Not a case

{TOOLS}

## R1, R2 the first

{PLAN}

```expect
answer "1"
```

### more of the first

````plan python
return f"```"
````

```expect
answer "```"
```

## R3: the second

```tools
get(x: int = 0) -> int  reads things
  returns 5
```

```plan json
[{{"tool_name": "get", "result_variable": "a"}}, {{"answer": "{{a}}"}}]
```

```expect
answer "5"
```
"""
    )
    first, second = run_all(path)
    assert (first.rules, first.title, first.line) == (
        ("R1", "R2"),
        "the first",
        path.read_text().split("\n").index("## R1, R2 the first") + 1,
    )
    assert [len(example.plans) for example in first.examples] == [1, 1]
    assert (second.rules, second.title) == (("R3",), "the second")
    assert str(first) == f"page:{first.line}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("## R1 a case\n", "this case has no plan"),
        (PLAN, "outside of any case"),
        (f"## R1 a case\n{PLAN}", "nothing is expected"),
        ("## R1 a case\n```expect\naccepted\n```\n", "no plan of which"),
        (expecting('answr "1"'), "this is not an expectation"),
        (expecting("call get(1)"), "a call looks like"),
        (expecting("call get(x=)"), "invalid syntax"),
        (expecting("with speed=9"), "there is no setting `speed`"),
        (expecting('error [TP1] "x"'), "this is not an expectation|a demand looks like"),
        ("## R1 a case\n```plan json\n[{}]  // error: [TP110] oh no\n```\n", "a demand looks like"),
        (
            "## R1 a case\n```plan json\n[{}]  // error: [TP110]\n```\n```expect\naccepted\n```\n",
            "demand errors already",
        ),
        ("## R1 a case\n```plan json\n[]\n", "never closed"),
        ("```tools\nget(x: int) reads\n```\n", "what is `reads`"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(page: Write, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=rf"page\.md:\d+: .*({problem})"):
        load_cases(page(text))


# --- what is expected ------------------------------------------------------------------------------------------------

RIGHT = [
    'answer "1"',
    "call get(x=1)\ncall put(x=1)",
    'note "text"',
    "get before put",
    "time 2",
    "step s2 succeeded",
    "accepted",
    "same plan",
]
WRONG = [
    ('answer "2"', "but it ends with succeeded: '1'"),
    ("succeeds", "but it ends with succeeded: '1'"),
    ('fails "nine"', "but it ends with succeeded"),
    ('replans "1"', "but it ends with succeeded"),
    ('cannot "1"', "but it ends with succeeded"),
    ("waits", "but it ends with succeeded"),
    ('text "1"', "but it is a plan"),
    ("no call", "but these calls are made"),
    ("call put(x=1)\ncall get(x=1)", "but these calls are made"),
    ("call get(x=1)\ncall put(x=1) fails", "but these calls are made"),
    ("call get(x=1)", "but these calls are made"),
    ('note "other"', "but the notes are"),
    ("put before get", "but these calls are made"),
    ("get overlaps put", "but these calls are made"),
    ("get before mail", "but these calls are made"),
    ("time 1", "but it takes 2 seconds"),
    ("step s2 failed", "but the steps end so"),
    ("step s9 failed", "but the steps end so"),
    ('mended "a comment"', "but what was mended is"),
    ("warning [TP209]", "is not there; found"),
    ("error [TP105]", "is not there; found"),
    ('asks "why?"', "but the questions are"),
    ('canonical {"steps": []}', "but its canonical form is"),
]


@pytest.mark.parametrize("lines", RIGHT)
def test_what_is_as_expected_passes(page: Write, lines: str) -> None:
    run_all(page(expecting(lines)))


@pytest.mark.parametrize(("lines", "found"), WRONG)
def test_what_is_not_as_expected_fails(page: Write, lines: str, found: str) -> None:
    with pytest.raises(AssertionError) as raised:
        run_all(page(expecting(lines)))
    message = str(raised.value)
    assert found in message
    assert message.startswith(f"{page(expecting(lines))}:")
    assert "| [{" in message


def wrong_plan(demand: str) -> str:
    return f'## R1 a case\n{TOOLS}\n```plan json\n[{{"tool_name": "get",\n  "arguments": {{"y": 1}}}}]  {demand}\n```\n'


@pytest.mark.parametrize(
    "demand",
    [
        "// error: [TP302]",
        '// error: [TP302] "takes no argument `y`"',
        '// error: [TP302] at "y"',
        '// error: [TP302] at "\\"y\\"": "no argument"',
    ],
)
def test_a_line_can_demand_a_diagnostic(page: Write, demand: str) -> None:
    run_all(page(wrong_plan(demand)))


@pytest.mark.parametrize(
    "demand",
    [
        "// error: [TP303]",
        "// warning: [TP302]",
        '// error: [TP302] "takes no argument `x`"',
        '// error: [TP302] at "x"',
        "// error: [TP302]; [TP302]",
        "\n // error: [TP302]",
    ],
)
def test_another_diagnostic_than_demanded_fails(page: Write, demand: str) -> None:
    with pytest.raises(AssertionError, match=r"is not there; found"):
        run_all(page(wrong_plan(demand)))


def test_a_diagnostic_that_nobody_demands_fails(page: Write) -> None:
    plan = '```plan json\n[{"tool_name": "got"},  // error: [TP201]\n {"tool_name": "gut"}]\n```\n'
    with pytest.raises(AssertionError, match=r"nobody expected this:\n(.|\n)*`gut`"):
        run_all(page(f"{TOOLS}\n## R1 a case\n{plan}"))


def test_what_was_mended_must_be_named(page: Write) -> None:
    plan = '```reply\n[{"tool_name": "mail", "arguments": {"to": "a",}}]\n```\n'
    with pytest.raises(AssertionError, match="mended, which nobody expected"):
        run_all(page(expecting("accepted", plan=plan)))
    run_all(page(expecting("accepted", 'mended "comma"', plan=plan)))


def test_plans_that_differ_are_not_the_same_plan(page: Write) -> None:
    other = "```plan python\nput(x=1)\n```\n"
    with pytest.raises(AssertionError, match="same plan"):
        run_all(page(expecting("same plan", plan=PLAN + other)))


def test_a_failing_run_must_be_expected(page: Write) -> None:
    plan = '```plan json\n[{"tool_name": "get", "arguments": {"x": 9}}]\n```\n'
    run_all(page(expecting('fails "nine" at s1', plan=plan)))
    with pytest.raises(AssertionError, match="the run fails at s1: nine"):
        run_all(page(expecting("time 1", plan=plan)))
    with pytest.raises(AssertionError, match="but it ends with failed: 'nine' at s1"):
        run_all(page(expecting('fails "nine" at s2', plan=plan)))


def test_prose_and_refusals_are_not_plans(page: Write) -> None:
    plan = "```reply\nIt is cold.\n```\n"
    run_all(page(expecting('text "It is cold."', plan=plan)))
    for line in ("accepted", 'text "It is warm."', 'cannot "It is cold."', "time 1"):
        with pytest.raises(AssertionError, match="Prose"):
            run_all(page(expecting(line, plan=plan)))


# --- what must hold without being said -------------------------------------------------------------------------------

TWO_PUTS = (
    '```plan json\n[{"for_each": [1, 2], "as": "n", "do": [{"tool_name": "put", "arguments": {"x": "{n}"}}]}]\n```\n'
)


def broken(change: Callable[[object], None]) -> Callable[..., object]:
    """Return a scheduler that does something wrong: `change` falsifies what the real one did."""

    def wrong(*args: object, **settings: object) -> object:
        simulation = simulate(*args, **settings)  # type: ignore[arg-type]
        change(simulation)
        return simulation

    return wrong


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda s: (
                s.spans.reverse() or s.spans.__setitem__(slice(None), [(t, a, 0.0, 9.0) for t, a, _, _ in s.spans])
            ),
            "at the same time",
        ),
        (
            lambda s: s.spans.__setitem__(slice(None), [(t, {"x": 3 - a["x"]}, b, e) for t, a, b, e in s.spans]),
            "change places",
        ),
        (lambda s: s.spans.pop(), "are not made"),
        (lambda s: s.spans.append(("mail", {"to": "a"}, 90.0, 91.0)), "written order does not make"),
        (lambda s: setattr(s, "finish", None), "never ends"),
    ],
)
def test_a_scheduler_that_breaks_the_written_order_is_noticed(
    page: Write, monkeypatch: pytest.MonkeyPatch, change: Callable[[object], None], problem: str
) -> None:
    path = page(expecting("succeeds", plan=TWO_PUTS))
    run_all(path)
    monkeypatch.setattr(trials, "simulate", broken(change))
    with pytest.raises(AssertionError, match=problem):
        run_all(path)


def test_an_end_that_is_not_that_of_the_written_order_is_noticed(page: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    real = trials.run_in_written_order

    def other(*args: object, **settings: object) -> object:
        reference = real(*args, **settings)  # type: ignore[arg-type]
        reference.text = "something else"
        return reference

    monkeypatch.setattr(trials, "run_in_written_order", other)
    with pytest.raises(AssertionError, match="in written order, the run ends with"):
        run_all(page(expecting('answer "1"')))


def test_the_users_own_tools(page: Write) -> None:
    calls: list[int] = []

    @tool(writes="things")
    def put(x: int) -> int:
        """Put it."""
        calls.append(x)
        return x + 1

    plan = (
        '```plan json\n[{"tool_name": "put", "arguments": {"x": 1}, "result_variable": "a"}, {"answer": "{a}"}]\n```\n'
    )
    path = page(f'## R1 a case\n{plan}```expect\nanswer "2"\ncall put(x=1)\n```\n')
    (case,) = load_cases(path, tools=ToolSet.of([put]))
    run_case(case)
    assert set(calls) == {1}


def test_the_docstring_tells_every_form() -> None:
    documented = conformance.__doc__ or ""
    words = (
        "text cannot error warning mended same canonical accepted call answer succeeds fails replans waits asks note"
    )
    for word in [*words.split(), "no call", "step", "overlaps", "before", "time", "with"]:
        assert re.search(rf"(?m)^    .*\b{word}\b", documented), word
