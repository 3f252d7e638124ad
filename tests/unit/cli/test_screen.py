"""The live view on a terminal that is a text: what is drawn, how wide it is, and what is left of it."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from toolplan.agent import ModelAsked, ModelReplied, ReplyStreamed
from toolplan.cli.screen import Screen, on_screen
from toolplan.models import Usage
from toolplan.run import EarlyDiscarded, EarlyFinished, EarlyStarted, StepFinished, StepProgress, StepStarted
from toolplan.schedule import StepRecord

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A screen of a certain size; `shown` are the lines that were ever written to it."""

    def __init__(self, language: str = "en", *, width: int = 60, height: int = 12) -> None:
        self._text = io.StringIO()
        console = Console(file=self._text, force_terminal=True, color_system=None, width=width, height=height)
        self.screen = Screen(console, language)  # type: ignore[arg-type]

    @property
    def raw(self) -> str:
        return self._text.getvalue()

    @property
    def shown(self) -> list[str]:
        return [line.rstrip() for line in re.split(r"[\r\n]+", CONTROL.sub("", self.raw))]

    @property
    def last(self) -> list[str]:
        """The lines of the last drawing."""
        return [
            line.rstrip() for line in CONTROL.sub("", self.raw.rpartition("\x1b[2K")[2]).splitlines() if line.strip()
        ]


def finished(step: str, **changes: object) -> StepFinished:
    values = {"outcome": "succeeded", "result": {"城市": "北京"}, "started_seconds": 0.0, "finished_seconds": 0.25}
    return StepFinished(StepRecord(step, "look", **{**values, **changes}))  # type: ignore[arg-type]


def started(step: str, what: object = "北京") -> StepStarted:
    return StepStarted(step, "look", {"what": what}, 0.0)  # type: ignore[dict-item]


def test_a_step_runs_and_ends_in_its_place() -> None:
    terminal = Terminal()
    with terminal.screen.live():
        terminal.screen.see(started("s1"))
        terminal.screen.see(StepProgress("s1", "半路", 0.1))
        terminal.screen._draw()
        assert re.search(r'[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] s1      0\.\d\d s  look\(what="北京"\)  半路', terminal.raw)
        terminal.screen.see(finished("s1"))
    assert terminal.shown[-2:] == ['✓ s1      0.25 s  look(what="北京") → {"城市": "北京"}', ""]
    assert terminal.raw.endswith("\x1b[?25h")  # the cursor is back


@pytest.mark.parametrize(
    ("outcome", "sign"), [("succeeded", "✓"), ("failed", "✗"), ("unknown", "?"), ("cancelled", "-"), ("running", "·")]
)
def test_each_ending_has_its_sign(outcome, sign) -> None:
    terminal = Terminal()
    with terminal.screen.live():
        terminal.screen.see(started("s1"))
        terminal.screen.see(finished("s1", outcome=outcome))
    assert terminal.shown[-2].startswith(f"{sign} s1 ")


@pytest.mark.parametrize("width", [30, 41, 60, 80])
def test_no_line_is_wider_than_the_terminal_and_wide_characters_stay_aligned(width) -> None:
    terminal = Terminal("zh", width=width)
    with terminal.screen.live():
        for number in range(8):
            terminal.screen.see(started(f"s2[{number}]", "长" * (number * 7)))
            terminal.screen.see(finished(f"s2[{number}]", result="很长的结果" * number))
    rows = [line for line in terminal.shown if line.startswith("✓ s2")]
    assert len(rows) >= 8
    assert max(cell_len(row) for row in rows) <= max(width, 44)  # a call always gets some room
    assert len({row.index(" s  look") for row in rows}) == 1
    assert any("…" in row for row in rows)


def test_a_thousand_steps_are_a_log_of_a_thousand_lines_and_a_small_window() -> None:
    terminal = Terminal(height=12)
    with terminal.screen.live():
        for start in range(0, 1000, 50):
            names = [f"s2[{number}]" for number in range(start, start + 50)]
            for name in names:
                terminal.screen.see(started(name))
            terminal.screen._draw()
            for name in names:
                terminal.screen.see(finished(name))
            terminal.screen._draw()
    rows = [line.split()[1] for line in terminal.shown if line.startswith("✓ ")]
    assert set(rows) == {f"s2[{number}]" for number in range(1000)}
    assert any(re.fullmatch(r"  \.\.\. and \d+ more running", line) for line in terminal.shown)
    assert "  1000 done, 0 running" in terminal.shown[-2:]
    assert terminal.raw.count("\x1b[1A") < 12 * terminal.raw.count("\x1b[2K")


def test_the_reply_is_seen_while_it_comes() -> None:
    terminal = Terminal()
    with terminal.screen.live():
        terminal.screen.see(ModelAsked("plan", "openai:gpt-5-mini"))
        for number in range(30):
            terminal.screen.see(ReplyStreamed(f'line {number} "北京"\n'))
        terminal.screen._draw()
        assert "asking openai:gpt-5-mini for a plan" in terminal.raw
        assert '  line 29 "北京"' in terminal.shown
        assert '  line 3 "北京"' not in terminal.shown
        terminal.screen.see(ModelReplied("plan", Usage(1, 10, 5), 0.5))
    assert "✓ asking openai:gpt-5-mini for a plan  10 tokens in, 5 out, 0.50 s" in terminal.shown
    assert terminal.last == []  # the reply has gone from the window


def test_a_pause_leaves_the_terminal_to_somebody_else() -> None:
    terminal = Terminal()
    with terminal.screen.live():
        terminal.screen.see(started("s1"))
        terminal.screen._draw()
        with terminal.screen.paused():
            length = len(terminal.raw)
            terminal.screen.see(finished("s1"))
            assert terminal.raw[-12:].endswith("\x1b[2K") or "\x1b[?25h" in terminal.raw[-20:]
            assert len(terminal.raw) == length
    assert terminal.shown[-2].startswith("✓ s1 ")


def test_nothing_of_a_result_steers_the_terminal() -> None:
    terminal = Terminal(width=100)
    with terminal.screen.live():
        terminal.screen.see(StepStarted("s1", "look", {"what": "\x1b[2J"}, 0.0))
        terminal.screen.see(StepProgress("s1", "\x1b]0;title\x07", 0.1))
        terminal.screen._draw()
        terminal.screen.see(finished("s1", outcome="failed", error="\x1b[31mred"))
        terminal.screen.see(ModelAsked("plan", "m"))
        terminal.screen.see(ReplyStreamed("\x1b[5mblink"))
        terminal.screen._draw()
    assert "\x1b[2J" not in terminal.raw
    assert "\x1b]0" not in terminal.raw
    assert "\x1b[31m" not in terminal.raw
    assert "\x1b[5m" not in terminal.raw
    assert "\\x1b[31mred" in terminal.raw


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_terminal_that_has_gone_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich takes the stream for a terminal
    with on_screen(Gone(), "en") as screen:
        screen.see(started("s1"))
        with screen.paused():
            pass
        screen.see(finished("s1"))


def test_an_early_call_waits_for_the_plan_and_then_is_the_step() -> None:
    terminal = Terminal()
    with terminal.screen.live():
        terminal.screen.see(EarlyStarted("s1", "look", {"what": "北京"}, 0.1))
        terminal.screen.see(EarlyStarted("s2", "look", {"what": "x"}, 0.1))
        terminal.screen.see(EarlyFinished(finished("s1").record))
        terminal.screen._draw()
        assert any("waits for the plan" in line for line in terminal.last)
        terminal.screen.see(EarlyDiscarded(finished("s2").record, "no plan needed this call"))
        terminal.screen.see(started("s1"))
        terminal.screen.see(finished("s1"))
    assert terminal.shown[-2:] == ['✓ s1      0.25 s  look(what="北京") → {"城市": "北京"}', ""]
    assert 'made for nothing: look(what="x")' in terminal.raw
