"""What the commands read, and what they say when it cannot be read."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nope.json", None, "there is no file `nope.json`; give a file with a plan, or `-` for standard input"),
        (".", None, "`.` cannot be read: Is a directory"),
        ("utf16.json", '{"steps": []}'.encode("utf-16"), "`utf16.json` is not UTF-8 text (byte 0); save it as UTF-8"),
        ("a\0b", None, "cannot be read"),
    ],
)
def test_a_plan_that_cannot_be_read(office, name, content, said) -> None:
    if content is not None:
        office.write(name, content)
    for command in ("run", "check", "show"):
        done = office(command, name, "--tools", office.tools)
        assert (done.code, done.out) == (2, "")
        assert said in done.err


def test_a_byte_order_mark_is_no_part_of_a_plan(office) -> None:
    plan = office.write("plan.json", b"\xef\xbb\xbf" + json.dumps(office.GOOD_PLAN).encode())
    assert office("check", plan, "--tools", office.tools).code == 0


def test_empty_input_is_a_rejected_plan(office, stdin) -> None:
    stdin("")
    done = office("check", "-", "--tools", office.tools, "--json")
    assert (done.code, done.document["outcome"]) == (1, "rejected")


def test_standard_input_that_is_not_utf8(office, stdin) -> None:
    stdin(b"\xff\xfe{}")
    done = office("check", "-", "--tools", office.tools)
    assert (done.code, done.err) == (2, "toolplan: `<stdin>` is not UTF-8 text (byte 0); save it as UTF-8\n")


def test_a_request_comes_from_standard_input(office, stdin) -> None:
    stdin("北京有多冷？\n")
    done = office("ask", "-", "--tools", office.tools, "--model", office.model(office.GOOD_PLAN))
    assert done.code == 0
    assert "计划通过检查" in done.err
    stdin("北京有多冷？\n")
    document = office("prompt", "-", "--tools", office.tools, "--json").document
    assert document["messages"][-1]["content"] == "北京有多冷？"
    stdin("\n")
    assert "the request is empty" in office("ask", "-", "--tools", office.tools).err


def test_tools_of_several_files_and_modules(office) -> None:
    office.write("more/__init__.py", "")
    office.write("more/sums.py", "def add(a: int, b: int) -> int:\n    return a + b\n\n\ndef sub(a: int) -> int: ...\n")
    done = office("tools", "--tools", "office.py:get_weather", "--tools", "more.sums:add", "--json")
    assert [tool["name"] for tool in done.document] == ["get_weather", "add"]
    done = office("tools", "-t", "more/sums.py", "-t", "office.py:pay", "--json")
    assert [tool["name"] for tool in done.document] == ["add", "sub", "pay"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(:\n", ['File "{path}", line 1', "    def f(:", "SyntaxError"]),
        (
            "def f() -> int:\n    return 1\n\n\ndef start():\n    return undefined\n\n\nstart()\n",
            [
                "cannot be imported: NameError: name 'undefined' is not defined",
                'File "{path}", line 9, in <module>\n    start()',
                'File "{path}", line 6, in start\n    return undefined',
            ],
        ),
        ("import nonexistent_module\n", ["ModuleNotFoundError: No module named 'nonexistent_module'", "line 1"]),
        ("import sys\nsys.exit(3)\n", ["SystemExit: 3", 'File "{path}", line 2']),
        (
            'from toolplan import tool\n\n\n@tool(pure=True, reads="x")\ndef f() -> int: ...\n',
            ["`broken.py`: a tool is either `pure` or has `reads`/`writes`", 'File "{path}", line 4'],
        ),
        ("TOOLS = [3]\n", ["`broken.py`: a tool must be a function", "found 3"]),
        ("TOOLS = []\n", ["`broken.py` has no tools in it"]),
        ("X = 1\n", ["`broken.py` has no tools: define functions with `@tool`, or a list `TOOLS`; it defines `X`"]),
    ],
)
def test_a_tools_file_that_fails_shows_the_users_own_error(office, text, said) -> None:
    path = office.write("broken.py", text)
    done = office("tools", "--tools", "broken.py")
    assert (done.code, done.out) == (2, "")
    for part in said:
        assert part.format(path=path) in done.err
    assert "importlib" not in done.err
    assert "toolsources" not in done.err
    document = office("ask", "hi", "--tools", "broken.py", "--model", office.model("hello"), "--json").document
    assert document["outcome"] == "usage"
    assert said[0].format(path=path) in document["error"]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("missing.py", "there is no file `missing.py`"),
        ("no_such_module", "there is no module `no_such_module`, and no file of that name either"),
        ("office.py:nothing", "`office.py` has no `nothing`; it defines"),
        (".", "`.` is a folder"),
    ],
)
def test_tools_that_are_not_there(office, reference, said) -> None:
    done = office("tools", "--tools", reference)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


def test_two_tools_of_one_name(office) -> None:
    office.write("other.py", "def pay(amount: float) -> str: ...\n")
    done = office("tools", "--tools", "office.py", "--tools", "other.py")
    assert done.code == 2
    assert "two tools are named `pay`" in done.err


def test_a_recording_that_is_not_there(office) -> None:
    done = office("ask", "hi", "--tools", office.tools, "--model", "scripted:none.jsonl")
    assert (done.code, done.err) == (2, "toolplan: there is no file `none.jsonl` with scripted replies\n")
