"""Objects of other libraries -> what they stand for in plain Python, without importing those libraries.

A library is recognised by the module of a class, a habit by its methods, so that a look-alike is served too.
"""

from __future__ import annotations

import base64
import io
from typing import Any, cast

__all__ = ["UNKNOWN", "by_habit", "of_library"]

UNKNOWN: object = object()
"""Returned for what is none of these."""


def of_library(value: Any) -> object:
    """Return what an object of numpy or pandas stands for, else `UNKNOWN`.

    Numbers, and arrays as lists of lists; numpy's dates as ISO text, its durations in seconds. A table of pandas is a
    list of rows, a column a list, and in both a missing value (NaN, NaT, NA) is null.
    """
    library = type(value).__module__.partition(".")[0]
    if library == "pandas":
        return _of_pandas(value)
    return _of_numpy(value) if library == "numpy" else UNKNOWN


def by_habit(value: Any) -> object:
    """Return what an object stands for that has the methods of a kind, else `UNKNOWN`.

    Objects of attrs and msgspec: their fields. Pictures of Pillow: a PNG in the form that MCP gives pictures. Arrays:
    lists. Tables of polars: rows. A row of a database with `keys()`: an object.
    """
    kind = cast(Any, type(value))
    names = _field_names(kind)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if all(hasattr(value, name) for name in ("save", "mode", "size", "getpixel")):
        return _picture(value)
    for method in ("tolist", "to_dicts"):
        make = getattr(value, method, None)
        if callable(make):
            return make()
    if callable(getattr(value, "keys", None)) and hasattr(kind, "__getitem__"):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118 - it is no mapping
    return UNKNOWN


def _of_pandas(value: Any) -> object:
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(value, "columns") and callable(rows := getattr(value, "to_dict", None)):
        table = cast("list[dict[Any, Any]]", rows("records"))
        return [{name: _or_null(cell) for name, cell in row.items()} for row in table]
    if callable(cells := getattr(value, "tolist", None)):
        return [_or_null(cell) for cell in cast("list[Any]", cells())]
    return UNKNOWN


def _or_null(cell: Any) -> Any:
    """Return the cell of a table, or None when it is missing: NaN and NaT do not equal themselves."""
    try:
        return cell if bool(cell == cell) else None
    except (TypeError, ValueError):  # `NA` has no truth, an array has too many
        return None if type(cell).__name__ == "NAType" else cell


def _of_numpy(value: Any) -> object:
    dtype_kind = getattr(getattr(value, "dtype", None), "kind", "")
    if dtype_kind == "M":
        return _without_nat(value.astype(str).tolist())
    if dtype_kind == "m":
        return (value / value.dtype.type(1, "s")).tolist()
    make = getattr(value, "tolist", None)
    return make() if callable(make) else UNKNOWN


def _without_nat(dates: Any) -> Any:
    if isinstance(dates, list):
        return [_without_nat(date) for date in cast("list[Any]", dates)]
    return None if dates == "NaT" else dates


def _field_names(kind: Any) -> list[str] | None:
    attributes = getattr(kind, "__attrs_attrs__", None)
    if attributes is not None:
        return [attribute.name for attribute in attributes]
    names = getattr(kind, "__struct_fields__", None)
    return list(names) if names is not None else None


def _picture(value: Any) -> dict[str, str]:
    file = io.BytesIO()
    value.save(file, format="PNG")
    return {"type": "image", "mimeType": "image/png", "data": base64.b64encode(file.getvalue()).decode("ascii")}
