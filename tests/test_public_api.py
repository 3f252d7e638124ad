"""What `import toolplan` offers: a sorted list, each name there, explained, and typed."""

from __future__ import annotations

import inspect

import pytest

import toolplan


def is_ours(thing: object) -> bool:
    return (getattr(thing, "__module__", None) or "").split(".")[0] == "toolplan"


def public_members(thing: type) -> list[str]:
    """Return the public methods and properties that the class defines itself, as `Class.member`."""
    return [
        name
        for name, member in vars(thing).items()
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property | classmethod))
    ]


def test_the_list_is_sorted_and_says_each_name_once() -> None:
    assert list(toolplan.__all__) == sorted(set(toolplan.__all__))


def test_nothing_else_is_public() -> None:
    beside = {
        name
        for name, thing in vars(toolplan).items()
        if not name.startswith("_") and not inspect.ismodule(thing) and is_ours(thing)
    }
    assert beside <= set(toolplan.__all__)


def test_dir_shows_the_whole_list() -> None:
    assert set(toolplan.__all__) <= set(dir(toolplan))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        toolplan.no_such_name


@pytest.mark.parametrize("name", toolplan.__all__)
def test_a_public_name_has_a_docstring(name: str) -> None:
    thing = getattr(toolplan, name)
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return
    assert inspect.getdoc(thing), f"{name} has no docstring"
    if inspect.isclass(thing):
        bare = [member for member in public_members(thing) if not inspect.getdoc(getattr(thing, member))]
        assert bare == [], f"{name} has members without a docstring"


@pytest.mark.parametrize("name", toolplan.__all__)
def test_a_public_function_is_typed(name: str) -> None:
    thing = getattr(toolplan, name)
    if not inspect.isfunction(thing):
        return
    signature = inspect.signature(thing)
    untyped = [p.name for p in signature.parameters.values() if p.annotation is inspect.Parameter.empty]
    assert untyped == []
    assert signature.return_annotation is not inspect.Signature.empty
