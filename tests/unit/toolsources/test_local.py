"""Tools out of files and modules, as the command line names them."""

import subprocess
import sys
import textwrap

import pytest

from toolplan.errors import UsageError
from toolplan.toolsources import load_tools


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a module file; what importing it changes is undone."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
        return str(path)

    yield write
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_public_functions_of_a_plain_file(write):
    file = write(
        "plain_tools.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass
        from os.path import join
        import json

        @dataclass
        class Weather:
            city: str

        def get_weather(city: str) -> Weather:
            "Weather."
            return Weather(city)

        def _hidden(): ...
        """,
    )
    tools = load_tools(file)
    assert tools.names == ("get_weather",)
    tool = tools["get_weather"]
    assert tool.to_value(tool.bind({"city": "Oslo"})()) == {"city": "Oslo"}


def test_decorated_ones_come_first(write):
    file = write(
        "marked_tools.py",
        """
        from toolplan.tools import Tool, ToolSet, tool

        @tool(reads="a")
        def one(): ...

        again = one

        def helper(): ...

        two = Tool.of(helper, name="two")
        more = ToolSet.of([Tool.of(helper, name="three")])
        """,
    )
    assert load_tools(file).names == ("one", "two", "three")


def test_a_list_named_tools_or_by_name(write):
    file = write(
        "listed_tools.py",
        """
        from functools import partial

        def one(token: str, n: int) -> int:
            return n

        def two(): ...

        def three(): ...

        TOOLS = [partial(one, "secret"), two]
        OTHERS = {"three": three}

        def make_tools():
            return [three, two]
        """,
    )
    assert load_tools(file).names == ("one", "two")
    assert load_tools(f"{file}:OTHERS").names == ("three",)
    assert load_tools(f"{file}:make_tools").names == ("three", "two")
    assert load_tools(f"{file}:three").names == ("three",)
    with pytest.raises(UsageError, match=r"listed_tools.py` has no `nope`; it defines .*`one`"):
        load_tools(f"{file}:nope")


def test_modules_and_neighbours(write, tmp_path, monkeypatch):
    write("pack/__init__.py", "")
    write("pack/inner.py", "from pack import other\n\ndef f(n: int) -> int:\n    return other.g(n)\n")
    write("pack/other.py", "def g(n):\n    return n + 1\n")
    monkeypatch.chdir(tmp_path)
    tools = load_tools("pack.inner")
    assert tools.names == ("f",)
    assert tools["f"].bind({"n": 1})() == 2
    file = write("uses_neighbour.py", "import neighbour\n\ndef h() -> int:\n    return neighbour.N\n")
    write("neighbour.py", "N = 7\n")
    assert load_tools(file)["h"].bind({})() == 7


def test_a_file_whose_name_is_taken(write):
    file = write("json.py", "def shout(text: str) -> str:\n    return text.upper()\n")
    assert load_tools(file).names == ("shout",)
    assert load_tools(file).names == ("shout",)
    import json

    assert json.dumps([1]) == "[1]"
    assert load_tools(write("with-dash.py", "def f(): ...\n")).names == ("f",)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("empty_tools.py", "X = 1\n", "has no tools: define functions with `@tool`, or a list `TOOLS`; it defines `X`"),
        ("broken_tools.py", "def f(:\n", "cannot be imported: SyntaxError"),
        ("raising_tools.py", "raise RuntimeError('no key')\n", "cannot be imported: RuntimeError: no key"),
        ("leaving_tools.py", "import sys\nsys.exit(3)\n", "cannot be imported: SystemExit: 3"),
        ("missing_tools.py", "import no_such_module_here\n", "cannot be imported: ModuleNotFoundError"),
        ("wrong_tools.py", "TOOLS = 3\n", "is no tool and no list of tools, but 3"),
        ("bad_tools.py", "def f(x: 'Nothing'): ...\n", "parameter `x` of `f`"),
    ],
)
def test_refused(write, name, text, said):
    with pytest.raises(UsageError, match=said):
        load_tools(write(name, text))


def test_places_that_are_not_there(tmp_path):
    with pytest.raises(UsageError, match=r"there is no file `.*nothing.py`"):
        load_tools(str(tmp_path / "nothing.py"))
    with pytest.raises(UsageError, match="there is no module `no_such_module_here`"):
        load_tools("no_such_module_here")
    with pytest.raises(UsageError, match="is a folder"):
        load_tools(str(tmp_path))
    with pytest.raises(UsageError, match="neither a Python file"):
        load_tools("what is this")


def test_a_failed_import_leaves_nothing_behind(write):
    file = write("half_tools.py", "X = 1\nraise ValueError\n")
    with pytest.raises(UsageError):
        load_tools(file)
    assert "half_tools" not in sys.modules


def test_importing_the_tools_package_stays_cheap():
    code = "import sys, toolplan.tools; print([m for m in ('pydantic', 'griffe', 'jsonschema_rs') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_plain_tools_need_no_pydantic():
    code = """
import sys
from toolplan.tools import ToolSet, tool

@tool(reads="x")
def f(city: str, days: int = 1, tags: list[str] | None = None) -> dict[str, int]: ...

toolset = ToolSet.of([f])
assert toolset["f"].bind({"city": "a"})() is None
print([m for m in ("pydantic", "griffe") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
