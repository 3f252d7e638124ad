"""`check` again and again, and in the format of code scanners; `fmt`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from toolplan.cli.checking import POLL_SECONDS, saves

TOOLS_FILE = ("--tools", "office.py")


# --format -------------------------------------------------------------------------------------------------------------


def test_sarif_of_a_plan_that_may_not_run(office) -> None:
    office.plan(office.BAD_PLAN)
    done = office("check", "plan.json", *TOOLS_FILE, "--format", "sarif")
    (run,) = done.document["runs"]
    assert done.code == 1
    assert [result["ruleId"] for result in run["results"]] == ["TP201", "TP203"]
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "plan.json"
    assert location["region"]["snippet"]["text"] == '"get_wether"'
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_sarif_of_a_plan_that_may_run_and_of_prose(office) -> None:
    office.plan(office.GOOD_PLAN)
    done = office("check", "plan.json", *TOOLS_FILE, "--format", "sarif")
    assert (done.code, done.document["runs"][0]["results"]) == (0, [])
    office.write("plan.json", "It is cold.")
    done = office("check", "plan.json", *TOOLS_FILE, "--format=sarif")
    (run,) = done.document["runs"]
    assert (done.code, run["results"]) == (1, [])
    assert "prose" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_sarif_of_standard_input_has_an_address(office, stdin) -> None:
    stdin('[{"tool_name": "get_wether"}]')
    (run,) = office("check", "-", *TOOLS_FILE, "--format", "sarif").document["runs"]
    assert run["artifacts"] == [{"location": {"uri": "stdin"}}]


@pytest.mark.parametrize("plan", ["GOOD_PLAN", "BAD_PLAN"])
def test_json_is_the_same_by_either_name(office, plan) -> None:
    office.plan(getattr(office, plan))
    short = office("check", "plan.json", *TOOLS_FILE, "--json")
    assert office("check", "plan.json", *TOOLS_FILE, "--format", "json") == short
    assert office("check", "plan.json", *TOOLS_FILE, "--format=json", "--json") == short


def test_text_is_what_there_is_without_a_format(office) -> None:
    office.plan(office.BAD_PLAN)
    assert office("check", "plan.json", *TOOLS_FILE, "--format", "text") == office("check", "plan.json", *TOOLS_FILE)


def test_two_formats_at_once_are_refused(office) -> None:
    office.plan(office.GOOD_PLAN)
    done = office("check", "plan.json", *TOOLS_FILE, "--json", "--format", "sarif")
    assert (done.code, done.document["outcome"]) == (2, "usage")
    assert "give one of them" in done.document["error"]
    assert office("check", "absent.json", *TOOLS_FILE, "--format", "json").document["outcome"] == "usage"


# --watch --------------------------------------------------------------------------------------------------------------


class Editor:
    """What happens to a file while somebody waits; the waiting itself takes no time."""

    def __init__(self, file: Path, *acts: object) -> None:
        self.file = file
        self.acts = list(acts)
        self.waited: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)
        if not self.acts:
            raise KeyboardInterrupt
        act = self.acts.pop(0)
        if isinstance(act, str):
            self.file.write_text(act)
        elif callable(act):
            act()


def seen(file: Path, *acts: object) -> tuple[list[str], Editor]:
    """Return what the file held each time that it was to be read."""
    editor = Editor(file, *acts)
    texts: list[str] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the loop's only end
        for _ in saves(str(file), editor.wait):
            texts.append(file.read_text())
    return texts, editor


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text("one")
    return path


def test_each_save_is_seen_once(file: Path) -> None:
    texts, editor = seen(file, None, "three", None, None, None, "fourteen", None, None)
    assert texts == ["one", "three", "fourteen"]
    assert editor.waited.count(POLL_SECONDS) == 7


def test_a_file_that_is_still_being_written_is_left_alone(file: Path) -> None:
    texts, _ = seen(file, "[", "[1, ", "[1, 2]", None)
    assert texts == ["one", "[1, 2]"]


def test_a_file_that_is_gone_for_a_moment_is_waited_for(file: Path) -> None:
    texts, _ = seen(file, file.unlink, None, None, "again", None, None)
    assert texts == ["one", "again"]


def test_a_file_put_in_the_place_of_the_old_one_is_seen(file: Path) -> None:
    def replace() -> None:
        other = file.with_suffix(".new")
        other.write_text("two")
        found = file.stat()
        os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
        other.replace(file)

    texts, _ = seen(file, replace, None, None)
    assert texts == ["one", "two"]


def test_only_a_file_that_is_there_can_be_watched(office) -> None:
    done = office("check", "absent.json", *TOOLS_FILE, "--watch")
    assert (done.code, "there is no file `absent.json`" in done.err) == (2, True)
    done = office("check", "-", *TOOLS_FILE, "--watch")
    assert (done.code, "needs a file" in done.err) == (2, True)


# fmt ------------------------------------------------------------------------------------------------------------------

LOOSE = '[{"tool": "get_weather", "args": {"city": "Oslo"}, "id": "w"}]'
TIDY = '{"steps": [{"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "result_variable": "w"}]}\n'


def test_fmt_prints_what_show_prints(office) -> None:
    office.write("plan.json", LOOSE)
    done = office("fmt", "plan.json")
    assert (done.code, done.out) == (0, TIDY)
    assert done.out == office("show", "plan.json").out
    assert Path("plan.json").read_text() == LOOSE


def test_fmt_check_and_write(office) -> None:
    office.write("plan.json", LOOSE)
    done = office("fmt", "plan.json", "--check")
    assert (done.code, done.out) == (1, "plan.json is not in the canonical form\n")
    assert Path("plan.json").read_text() == LOOSE
    done = office("fmt", "plan.json", "--write")
    assert (done.code, done.out) == (0, "plan.json was rewritten\n")
    assert Path("plan.json").read_text() == TIDY
    written = Path("plan.json").stat().st_mtime_ns
    for option in ("--check", "--write"):
        done = office("fmt", "plan.json", option)
        assert (done.code, done.out) == (0, "plan.json is in the canonical form\n")
    assert Path("plan.json").stat().st_mtime_ns == written


def test_fmt_in_json(office) -> None:
    office.write("plan.json", LOOSE)
    done = office("fmt", "plan.json", "--json")
    assert (done.code, done.document) == (0, {"changed": True, "plan": json.loads(TIDY)})
    office.write("plan.json", TIDY)
    assert office("fmt", "plan.json", "--check", "--json").document["changed"] is False


@pytest.mark.parametrize("option", ["--write", "--check"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('w = get_weather(city="Oslo")\nanswer(w.city)\n', "is a program"),
        (f"Here it is:\n```json\n{LOOSE}\n```\n", "holds more than a plan"),
    ],
)
def test_fmt_does_not_touch_what_would_be_lost(office, option, text, said) -> None:
    office.write("plan.txt", text)
    done = office("fmt", "plan.txt", *TOOLS_FILE, option)
    assert (done.code, said in done.err) == (2, True)
    assert Path("plan.txt").read_text() == text
    assert office("fmt", "plan.txt", *TOOLS_FILE).code == 0


def test_fmt_of_what_is_no_plan(office, stdin) -> None:
    office.write("plan.json", '[{"tool_name": "get_weather"')
    done = office("fmt", "plan.json", "--write")
    assert (done.code, "error[TP102]" in done.out) == (1, True)
    assert Path("plan.json").read_text() == '[{"tool_name": "get_weather"'
    assert office("fmt", "plan.json", "--write", "--check").code == 2
    stdin(LOOSE)
    assert office("fmt", "-").out == TIDY
    assert office("fmt", "-", "--write").code == 2
