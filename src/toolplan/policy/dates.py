"""Dates and times: how they are written, and which arguments are for them.

They are computed from the calendar, so where a date is expected one is nobody's words. Anywhere else - in a path, a
name, a channel - a text that looks like a date is a text like others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from toolplan.patterns import late_pattern

__all__ = ["holds_dates", "is_date", "without_dates"]

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_HAN_DAY = (
    r"(?:大?[今明后昨前]天|[下上这本]?个?(?:周|星期|礼拜)[一二三四五六日天末]|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]?)"
)
_HAN_HOUR = (
    r"(?:凌晨|早上|上午|中午|下午|傍晚|晚上)?(?:\d{1,2}|[一二三四五六七八九十两]{1,3})[点时]"
    r"(?:半|整|[一三]刻|(?:\d{1,2}|[零一二三四五六七八九十]{1,3})分?)?"
)
_DATE = late_pattern(
    rf"""\d{{4}}[-/]\d{{1,2}}(?:[-/]\d{{1,2}})?
         (?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?)?\s?(?:Z|[+-]\d{{2}}:?\d{{2}})?
       | \d{{1,2}}:\d{{2}}(?::\d{{2}})?(?:\s?[ap]\.?m\.?)? | \d{{1,2}}\s?[ap]\.?m\.?
       | {_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})? | \d{{1,2}}(?:st|nd|rd|th)?\s+{_MONTH}(?:,?\s+\d{{4}})?
       | {_HAN_DAY}?{_HAN_HOUR} | {_HAN_DAY}""",
    re.VERBOSE | re.IGNORECASE,
)
_DATED = late_pattern(
    rf"""\d{{4}}-\d{{1,2}}(?:-\d{{1,2}})? | \d{{1,2}}:\d{{2}}(?::\d{{2}})? | \d{{1,2}}\s?[ap]\.?m\b
       | \b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?
       | \b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}}\b)?
       | \b\d{{1,2}}(?:st|nd|rd|th)\b | \d+\s*[年月日号点]""",
    re.VERBOSE | re.IGNORECASE,
)
_NAMED = frozenset(
    re.findall(
        r"\w+",
        "date dates datetime time times timestamp day days when start starts end ends begin begins beginning from "
        "until till since before after deadline due month week year expires expiry birthday dob departure arrival "
        "checkin checkout scheduled",
    )
)
_HAN_NAMED = late_pattern("日期|时间|日子|何时|期限|生日|开始|结束|截止|时刻|年份|月份")
_FORMATS = frozenset({"date", "date-time", "time"})


def is_date(text: str) -> bool:
    """Return whether a text is a date, a time of day, or both, and nothing else."""
    return _DATE.fullmatch(text) is not None


def without_dates(text: str) -> str:
    """Return a text with a bar in place of each of its dates: "June 13" does not say the number 13."""
    return _DATED.sub(" | ", text)


def holds_dates(name: str, schema: Mapping[str, Any]) -> bool:
    """Return whether an argument, or one of the fields in it, is for dates: by its format, or by its name."""
    return _is_named_so(name) or _says_so(schema)


@lru_cache(maxsize=4096)
def _is_named_so(name: str) -> bool:
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).casefold().replace("-", "_").split("_")
    return not _NAMED.isdisjoint(parts) or _HAN_NAMED.search(name) is not None


def _says_so(schema: Mapping[str, Any]) -> bool:
    waiting: list[Any] = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += cast("list[Any]", each)
        elif isinstance(each, Mapping):
            part = cast("Mapping[str, Any]", each)
            if part.get("format") in _FORMATS:
                return True
            fields: Any = part.get("properties")
            if isinstance(fields, Mapping):
                named = cast("Mapping[str, Any]", fields)
                if any(map(_is_named_so, named)):
                    return True
                waiting += named.values()
            waiting += (part.get(key) for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf"))
    return False
