"""Tools out of a Python file or module, as the command line names them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pathlib
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolplan.errors import UsageError
from toolplan.tools import Tool, ToolSet, is_marked

__all__ = ["load_tools"]


def load_tools(reference: str) -> ToolSet:
    """Return the tools of `FILE.py`, `package.module`, or one name in either (`FILE.py:NAME`).

    Without a name: what the module's `TOOLS` holds; else its tools and functions decorated with `@tool`; else the
    public functions that are written in it. A name may hold a tool, a function, a list or set of tools, a mapping with
    tools as values, or a function without parameters that returns one of these. Importing runs the module's code, its
    folder on the import path, as if it were started as a script. Raises `UsageError`.
    """
    place, name = _split(reference)
    module = _imported(place)
    if name:
        if not hasattr(module, name):
            raise UsageError(f"`{place}` has no `{name}`; it defines {_listed(_public_names(module))}")
        return _tools_of(getattr(module, name), f"{place}:{name}", call=True)
    if hasattr(module, "TOOLS"):
        return _tools_of(module.TOOLS, f"`TOOLS` in {place}", call=True)
    members = [value for key, value in vars(module).items() if not key.startswith("__")]
    found = [value for value in members if isinstance(value, Tool | ToolSet) or _is_marked_here(value)]
    if not found:
        public = [getattr(module, key) for key in _public_names(module)]
        found = [f for f in public if inspect.isfunction(f) and f.__module__ == module.__name__]
    if not found:
        raise UsageError(
            f"`{place}` has no tools: define functions with `@tool`, or a list `TOOLS`; it defines "
            + _listed(_public_names(module))
        )
    return ToolSet.of(_once(found))


def _is_marked_here(value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and is_marked(value)


def _once(values: Iterable[Any]) -> list[Any]:
    """Return the values without those that another name of the module already holds."""
    found: dict[int, Any] = {id(value): value for value in values}
    return list(found.values())


def _tools_of(value: Any, where: str, *, call: bool) -> ToolSet:
    if isinstance(value, ToolSet):
        return value
    if call and inspect.isfunction(value) and not is_marked(value) and not inspect.signature(value).parameters:
        made = value()
        if isinstance(made, Mapping | ToolSet | list | tuple):
            return _tools_of(made, where, call=False)
    if isinstance(value, Mapping):
        return ToolSet.of(list(cast("Mapping[str, Any]", value).values()))
    if callable(value):
        return ToolSet.of([value])
    if isinstance(value, list | tuple | set | frozenset):
        return ToolSet.of(list(cast("Iterable[Any]", value)))
    raise UsageError(f"{where} is no tool and no list of tools, but {value!r}")


def _split(reference: str) -> tuple[str, str]:
    """Return the file or module, and the name behind the last colon, if that is one (a drive letter's is not)."""
    place, colon, name = reference.rpartition(":")
    return (place, name) if colon and name.isidentifier() and len(place) > 1 else (reference, "")


def _imported(place: str) -> types.ModuleType:
    path = pathlib.Path(place).expanduser()
    looks_like_path = path.suffix == ".py" or path.name != place
    if path.is_dir():
        raise UsageError(f"`{place}` is a folder; name a file in it, or a module as `package.module`")
    if looks_like_path and not path.is_file():
        raise UsageError(f"there is no file `{place}`")
    try:
        return _from_file(path.resolve()) if looks_like_path else _from_path(place)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name is not None and place.startswith(error.name)
        if missing and not looks_like_path:
            raise UsageError(f"there is no module `{place}`, and no file of that name either") from error
        raise UsageError(f"`{place}` cannot be imported: {type(error).__name__}: {error}") from error


def _from_path(name: str) -> types.ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"`{name}` is neither a Python file (FILE.py) nor a module (package.module)")
    if "" not in sys.path and str(pathlib.Path.cwd()) not in sys.path:
        sys.path.insert(0, str(pathlib.Path.cwd()))  # as `python -m` does
    return importlib.import_module(name)


def _from_file(path: pathlib.Path) -> types.ModuleType:
    """Return the file's module, known to `sys.modules` so that its types can be resolved and its functions pickled."""
    name = path.stem if path.stem.isidentifier() else "tools_file"
    known = sys.modules.get(name)
    if known is not None and _same_file(known, path):
        return known
    if known is not None or importlib.util.find_spec(name) is not None:
        name = f"toolplan_file_{abs(hash(str(path))):x}_{name}"  # another module has this name
        if name in sys.modules:
            return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"`{path}` is no Python file; its name should end in `.py`")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _same_file(module: types.ModuleType, path: pathlib.Path) -> bool:
    origin = getattr(module, "__file__", None)
    return origin is not None and pathlib.Path(origin).resolve() == path


def _public_names(module: types.ModuleType) -> list[str]:
    listed: Any = getattr(module, "__all__", None)
    if isinstance(listed, list | tuple):
        return [str(name) for name in cast("list[Any]", listed) if hasattr(module, str(name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", module.__name__) == module.__name__
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:8]) + (", …" if len(names) > 8 else "") if names else "nothing"
