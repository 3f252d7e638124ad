"""Whatever happens on the command line ends in a sentence, an exit code and, where asked for, one JSON document."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from toolplan.cli.app import app


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus"], "there is no command `bogus`; there are demo, ask, run, runs,"),
        (["chek", "plan.json"], "there is no command `chek`; did you mean `check`?"),
        (["ask"], "`REQUEST` is missing: say what you want done, in quotes; see `toolplan ask --help`"),
        (["ask", "hi"], "`--tools` is missing: name a Python file or a module with tools"),
        (["ask", "hi", "--tools"], "`--tools` needs a value"),
        (["check", "plan.json", "--tols", "t.py"], "there is no option `--tols`; did you mean `--tools`?"),
        (
            ["ask", "rain", "in", "Oslo", "--tools", "t.py"],
            "there is nothing for `in` to be; a request of several words",
        ),
        (["show", "--mermiad", "plan.json"], "--mermiad"),
        (["ask", "hi", "--tools", "t.py", "--language", "fr"], '"fr"'),
        (["ask", "  ", "--tools", "t.py"], "the request is empty"),
        (["ask", "hi", "--tools", "t.py", "--max-repairs", "-1"], "`--max-repairs` is -1"),
        (["ask", "hi", "--tools", "t.py", "--max-turns", "0"], "`--max-turns` is 0"),
        (["run", "nope.json", "--tools", "office.py", "--now", "soon"], "`--now soon` is no ISO date or time"),
        (["demo", "bogus"], "no demo is named `bogus`; there are weather-cold,"),
        (["explain", "TP399"], "there is no code `TP399`"),
    ],
)
def test_a_wrong_command_line_is_told_what_to_write(office, arguments, said) -> None:
    plain = office(*arguments)
    assert (plain.code, plain.out) == (2, "")
    assert said in plain.err
    assert plain.err.startswith("toolplan: ")
    as_json = office(*arguments, "--json")
    assert as_json.code == 2
    assert as_json.document.keys() == {"outcome", "error"}
    assert as_json.document["outcome"] == "usage"
    assert said in as_json.document["error"]


def test_help_and_version_are_results(office) -> None:
    overview = office("--help")
    assert (overview.code, overview.err) == (0, "")
    for command in ("demo", "ask", "run", "check", "show", "tools", "prompt", "schema", "explain"):
        assert f"│ {command} " in overview.out
        help_text = office(command, "--help")
        assert (help_text.code, help_text.err) == (0, "")
        assert "--json" in help_text.out
    assert office().out == overview.out
    assert office("--version").out.strip() == "0.1.0"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every command stumble over a bug."""

    def stumble(*arguments: object, **options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("toolplan.cli.inputs.load_toolset", stumble)


@pytest.mark.usefixtures("broken")
def test_a_bug_is_one_line_and_how_to_see_more(office, monkeypatch: pytest.MonkeyPatch) -> None:
    done = office("tools", "--tools", office.tools)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0] == "toolplan: unexpected RuntimeError: a bug"
    assert "TOOLPLAN_DEBUG=1" in done.err
    as_json = office("tools", "--tools", office.tools, "--json")
    assert (as_json.code, as_json.document["outcome"]) == (1, "failed")
    assert office("run", "plan.json", "--tools", office.tools, "--json").document.keys() >= office.ANSWER_KEYS


@pytest.mark.usefixtures("broken")
def test_a_debugger_sees_the_traceback(
    office, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolplan.cli import main

    monkeypatch.setenv("TOOLPLAN_DEBUG", "1")
    with pytest.raises(SystemExit):
        main(["tools", "--tools", office.tools, "--json"])
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert "in stumble" in captured.err
    assert captured.out.startswith("{")


def test_standard_output_is_as_before_afterwards(office) -> None:
    before = sys.stdout
    office("explain")
    assert sys.stdout is before


def test_every_command_takes_json() -> None:
    names = [name for name in app if not name.startswith("-")]
    assert len(names) >= 17
    for name in names:
        assert "as_json" in app[name].default_command.__annotations__, name


def test_the_module_runs_as_a_program() -> None:
    import toolplan

    text = (Path(toolplan.__file__).parent / "__main__.py").read_text(encoding="utf-8")
    assert "main()" in text
