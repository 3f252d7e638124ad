"""Public samples of formats, as other projects test them, whole and cut at every place.

Left-over text is compared where the sample's own project asserts it, but for two things that are read differently here:
text behind the calls is kept, and thinking is thinking.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from bench.data import find, lines

from toolplan.parse.formats import CallPart, CallScanner, Part, TextPart, read_calls, settled

PATH = find("toolcall_formats", "cases.jsonl")
CASES: list[dict[str, Any]] = list(lines(PATH)) if PATH else []
OTHER_TEXT = {"fmt/19": "some prefix text some suffix text", "fmt/27": ""}


def test_the_samples_are_there() -> None:
    if not CASES:
        pytest.skip("not run: the data set toolcall_formats is not there")
    assert len(CASES) >= 20


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
@pytest.mark.parametrize("named", [True, False], ids=["named", "auto"])
def test_a_sample(case: dict[str, Any], named: bool) -> None:
    format = case["format"] if named else "auto"
    parts = read_calls(case["text"], format)
    assert [
        {"name": part.name, "arguments": part.arguments}
        for part in parts
        if not isinstance(part, TextPart) and isinstance(part, CallPart)
    ] == case["calls"]
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    if case["content"] is not None:
        assert text == OTHER_TEXT.get(case["id"], case["content"])


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
@pytest.mark.parametrize("named", [True, False], ids=["named", "auto"])
def test_a_sample_in_pieces(case: dict[str, Any], named: bool) -> None:
    format = case["format"] if named else "auto"
    raw = case["text"].encode()
    whole = read_calls(raw, format)
    cuts = [[at] for at in range(1, len(raw))] + [list(range(1, len(raw))), list(range(4, len(raw), 4))]
    for cut in cuts:
        scanner = CallScanner(format)
        parts: list[Part] = []
        for start, end in zip([0, *cut], [*cut, len(raw)], strict=True):
            parts += scanner.feed(raw[start:end])
        assert settled([*parts, *scanner.close()]) == whole
    scanner = CallScanner(format)
    parts = [part for chunk in case.get("chunks", [case["text"]]) for part in scanner.feed(chunk)]
    assert settled([*parts, *scanner.close()]) == whole
    assert json.dumps(case["calls"])
