"""Regular expressions that are compiled when they are first used."""

import contextlib
import importlib
import pkgutil
import re
import sys

import pytest

import toolplan
from toolplan.patterns import late_pattern


def test_it_does_what_a_compiled_one_does() -> None:
    late, ready = late_pattern(r"(?P<word>[a-z]+)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)", re.IGNORECASE)
    for _ in range(2):
        assert late.findall("Ab 1 c") == ready.findall("Ab 1 c")
        assert (late.pattern, late.flags, late.groupindex) == (ready.pattern, ready.flags, ready.groupindex)


def test_it_is_compiled_when_it_is_used_and_not_before() -> None:
    broken = late_pattern("(")
    with pytest.raises(re.error):
        broken.search("a")


def test_every_late_pattern_of_the_package_can_be_compiled() -> None:
    for module in pkgutil.walk_packages(toolplan.__path__, "toolplan."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # an extra that is not installed
                importlib.import_module(module.name)
    kind = type(late_pattern(""))
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("toolplan.")]
    late = [value for names in modules for value in names.values() if isinstance(value, kind)]
    assert len(late) > 50
    assert all(each.pattern for each in late)
