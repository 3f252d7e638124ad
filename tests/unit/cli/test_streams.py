"""Results on standard output, everything else on standard error, and nothing that steers a terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest

from toolplan.cli.streams import OutputFailed, results_apart, say, say_json, stream_for_results, warn
from toolplan.visible import visible


def test_what_others_print_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with results_apart():
        print("a tool prints")
        say("the result")
    print("later")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("the result\nlater\n", "a tool prints\n")


def test_apart_within_apart_keeps_the_outer_one(capsys: pytest.CaptureFixture[str]) -> None:
    with results_apart():
        outer = stream_for_results()
        with results_apart():
            say("inner")
        assert stream_for_results() is outer
    assert "inner" in "".join(capsys.readouterr())


def test_without_a_standard_output_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with results_apart():
        say("nobody hears it")
    monkeypatch.setattr(sys, "stderr", None)
    warn("nor this")


class Full(io.StringIO):
    """A file on a disk that is full."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


class Gone(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize(("stream", "error"), [(Full(), OutputFailed), (Gone(), BrokenPipeError)])
def test_output_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, stream, error) -> None:
    monkeypatch.setattr(sys, "stdout", stream)
    with results_apart(), pytest.raises(error):
        say("text")
    with results_apart(), pytest.raises(error):
        say_json({})


def test_json_is_whole_whatever_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    limit = sys.get_int_max_str_digits()
    try:
        say_json({"文字": "北京\x1b[31m", "number": 10**5000})
        assert json.loads(capsys.readouterr().out) == {"文字": "北京\x1b[31m", "number": 10**5000}
    finally:
        sys.set_int_max_str_digits(limit)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("北京\tok\n", "北京\tok\n"),
        ("a\r\nb", "a\nb"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("pay\u202eeno", "pay\\u202eeno"),
    ],
)
def test_nothing_that_is_shown_can_steer_a_terminal(text, shown) -> None:
    assert visible(text) == shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_results_are_made_harmless_for_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), "\\x1b[31m\n"), (io.StringIO(), "\x1b[31m\n")):
        monkeypatch.setattr(sys, "stdout", stream)
        with results_apart():
            say("\x1b[31m")
        assert stream.getvalue() == shown
