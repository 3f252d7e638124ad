"""May a value of this type stand there? Always, perhaps, or never: only *never* is a mistake.

Types may be recursive, so the walk over two of them remembers the pairs it has seen (the coinductive reading of Amadio
and Cardelli, "Subtyping recursive types", 1993).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from toolplan.expressions.shapes import NEVER, UNKNOWN, ListType, ObjectType, Scalar, Type, Union
from toolplan.values import Json

__all__ = ["Verdict", "is_assignable", "surely_fits"]


class Verdict(enum.Enum):
    """Whether a value of one type fits another: always, perhaps, or never."""

    YES = "yes"
    MAYBE = "maybe"
    NO = "no"


YES, MAYBE, NO = Verdict.YES, Verdict.MAYBE, Verdict.NO


def is_assignable(value: Type, target: Type) -> Verdict:
    """Return whether a value of type `value` satisfies a schema of type `target`. Only NO is a certain mistake.

    The elements of a list count as if there were some: a list of texts never fits a list of numbers.
    """
    return _assignable(value, target, set())


def _assignable(value: Type, target: Type, seen: set[tuple[int, int]]) -> Verdict:
    if value is UNKNOWN or target is UNKNOWN or target is NEVER:
        return MAYBE
    if value is target or value is NEVER:
        return YES
    if isinstance(value, Union):
        return _agreed({_assignable(member, target, seen) for member in value.members})
    if isinstance(target, Union):
        verdicts = {_assignable(value, member, seen) for member in target.members}
        return YES if YES in verdicts else MAYBE if MAYBE in verdicts else NO
    if isinstance(value, Scalar):
        return _scalar_fits(value, target) if isinstance(target, Scalar) else NO
    if type(value) is not type(target):
        return NO
    pair = (id(value), id(target))
    if pair in seen:
        return MAYBE
    seen.add(pair)
    if isinstance(value, ListType) and isinstance(target, ListType):
        return _list_fits(value, target, seen)
    assert isinstance(value, ObjectType)
    assert isinstance(target, ObjectType)
    return _object_fits(value, target, seen)


def _agreed(verdicts: set[Verdict]) -> Verdict:
    return verdicts.pop() if len(verdicts) == 1 else MAYBE


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return NO if NO in found else MAYBE if MAYBE in found else YES


def _scalar_fits(value: Scalar, target: Scalar) -> Verdict:
    if value.kind != target.kind:
        if value.kind == "integer" and target.kind == "number":
            pass
        elif value.kind == "number" and target.kind == "integer":
            if value.values is not None:
                if all(number != int(number) for number in value.values):
                    return NO
                if all(number == int(number) for number in value.values) and target.values is None:
                    return YES if target.exact else MAYBE
            return MAYBE
        else:
            return NO
    if target.values is None:
        return YES if target.exact else MAYBE
    if value.values is None:
        return MAYBE
    if value.values <= target.values:
        return YES if target.exact else MAYBE
    return NO if value.values.isdisjoint(target.values) else MAYBE


def _list_fits(value: ListType, target: ListType, seen: set[tuple[int, int]]) -> Verdict:
    certain = YES if target.exact else MAYBE
    if value.positions:
        pairs = [
            (own, target.positions[index] if index < len(target.positions) else target.element)
            for index, own in enumerate(value.positions)
        ]
        return _worst([certain, *(_assignable(own, wanted, seen) for own, wanted in pairs)])
    return _worst([certain, _assignable(value.element, target.element, seen)])


def _object_fits(value: ObjectType, target: ObjectType, seen: set[tuple[int, int]]) -> Verdict:
    verdicts = [YES if target.exact else MAYBE]
    for name in target.names:
        own, wanted = value.field(name), target.field(name)
        if own is None:
            if name in target.required:
                verdicts.append(NO if value.knows_all_fields else MAYBE)
            elif not value.sealed:
                verdicts.append(MAYBE)
            continue
        verdict = _assignable(own, wanted or UNKNOWN, seen)
        if verdict is YES and name in target.required and name not in value.required:
            verdict = MAYBE
        verdicts.append(MAYBE if verdict is NO and name not in value.required else verdict)
    declared = set(target.names)
    for name in value.names:
        if name not in declared:
            if target.sealed:
                verdicts.append(NO if name in value.required else MAYBE)
            elif target.additional is not None:
                verdicts.append(_assignable(value.field(name) or UNKNOWN, target.additional, seen))
    if not value.sealed:
        if value.additional is not None and target.additional is not None:
            verdict = _assignable(value.additional, target.additional, seen)
            verdicts.append(MAYBE if verdict is NO else verdict)
        elif target.sealed or target.additional is not None:
            verdicts.append(MAYBE)
    return _worst(verdicts)


def surely_fits(value: Json, target: Type) -> bool:
    """Return whether a constant certainly satisfies the schema that `target` was read from (False: ask the schema)."""
    if isinstance(target, Scalar):
        return (
            target.exact
            and target.kind in _KINDS.get(type(value), ())
            and (target.values is None or value in target.values)
        )
    if isinstance(target, ListType):
        if not (target.exact and isinstance(value, list)) or target.positions:
            return False
        return all(surely_fits(item, target.element) for item in value)
    if isinstance(target, Union):
        return any(surely_fits(value, member) for member in target.members)
    return False


_KINDS: dict[type, tuple[str, ...]] = {
    str: ("text",),
    int: ("integer", "number"),
    float: ("number",),
    bool: ("boolean",),
    type(None): ("null",),
}
