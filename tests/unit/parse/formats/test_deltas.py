import json
import random

import pytest

from toolplan.parse.formats.deltas import StreamedCalls, UsageReports, whole_message


def piece(name=None, arguments=None, **fields):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**fields, "function": function}


def assembled(*pieces):
    """Put a stream's pieces together as a plain client does: by index, texts joined."""
    reader = StreamedCalls()
    calls: dict[int, dict[str, str]] = {}
    for each in pieces:
        for right in reader.put_right([each]):
            call = calls.setdefault(right["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] += right.get("id", "")
            call["name"] += right["function"].get("name", "")
            call["arguments"] += right["function"]["arguments"]
    return [(call["id"], call["name"], call["arguments"]) for _, call in sorted(calls.items())]


A, B = '{"city": "Oslo"}', '{"city": "Bergen"}'


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        # As OpenAI sends it, two calls in turns.
        (
            [
                piece("f", "", index=0, id="a"),
                piece("g", "", index=1, id="b"),
                piece(None, '{"x"', index=0),
                piece(None, "{}", index=1),
                piece(None, ": 1}", index=0),
            ],
            [("a", "f", '{"x": 1}'), ("b", "g", "{}")],
        ),
        # Same index, different ids (smolagents 1958).
        ([piece("f", A, index=0, id="a"), piece("f", B, index=0, id="b")], [("a", "f", A), ("b", "f", B)]),
        # No index at all; no id either.
        ([piece("f", A), piece("f", B)], [("", "f", A), ("", "f", B)]),
        ([piece("f", A[:4]), piece(None, A[4:]), piece("g", "{}")], [("", "f", A), ("", "g", "{}")]),
        # A new id with every piece.
        (
            [piece("f", "", index=0, id="1"), piece(None, A[:4], index=0, id="2"), piece(None, A[4:], index=0, id="3")],
            [("1", "f", A)],
        ),
        # The name with every piece, with and without an index.
        ([piece("f", A[:4], index=0), piece("f", A[4:], index=0)], [("", "f", A)]),
        ([piece("f", A[:4]), piece("f", A[4:])], [("", "f", A)]),
        # The same id for two calls.
        ([piece("f", A, index=0, id="x"), piece("f", B, index=1, id="x")], [("x", "f", A), ("", "f", B)]),
        # Arguments as an object, or sent again at the end in other words.
        ([piece("f", {"city": "Oslo"}, index=0)], [("", "f", A)]),
        ([piece("f", A, index=0, id="a"), piece(None, '{"city":"Oslo"}', index=0, id="a")], [("a", "f", A)]),
        # A call without arguments, then another one at the same index.
        ([piece("f", "", index=0, id="a"), piece("f", "{}", index=0, id="b")], [("a", "f", ""), ("b", "f", "{}")]),
        # The name in pieces, the id after the name, the fields without `function` around them.
        ([piece("get_", None, index=0), piece("time", "{}", index=0)], [("", "get_time", "{}")]),
        ([piece("f", "", index=0), piece(None, "{}", index=0, id="late")], [("late", "f", "{}")]),
        ([{"index": 0, "id": "a", "name": "f", "arguments": "{}"}], [("a", "f", "{}")]),
        # Braces inside of texts end nothing.
        (
            [piece("f", '{"a": "}', index=0), piece("f", '\\"}"', index=0), piece("f", "}", index=0)],
            [("", "f", '{"a": "}\\"}"}')],
        ),
        # What says nothing is left out.
        ([None, "x", {}, piece(None, "{}"), piece("", None, index=0)], []),
    ],
)
def test_pieces_find_their_call(pieces, expected):
    assert assembled(*pieces) == expected


def chunks(*chunks):
    """Put a stream's chunks, each a list of pieces, together as a plain client does."""
    reader = StreamedCalls()
    right = [put for each in chunks for put in reader.put_right(each)]
    calls = {}
    for each in right:
        call = calls.setdefault(each["index"], ["", ""])
        call[0] += each["function"].get("name", "")
        call[1] += each["function"]["arguments"]
    assert [(name, arguments) for name, arguments, _ in reader.whole] == [tuple(call) for call in calls.values()]
    return [(name, arguments or "{}") for name, arguments in calls.values()]


F, G = ("f", "{}"), ("g", A)


@pytest.mark.parametrize("none", ["", "{}", None])
@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        # Two in one chunk are two, whatever index and ids they share.
        (lambda f, g: [[f(), f()]], [F, F]),
        (lambda f, g: [[f(index=0), f(index=0)]], [F, F]),
        (lambda f, g: [[f(index=0), f(index=1)]], [F, F]),
        (lambda f, g: [[f(index=0, id="a"), f(index=0, id="b")]], [F, F]),
        (lambda f, g: [[f(id="a"), f(id="a")]], [F, F]),
        # Two in two chunks are two unless something says that they are one.
        (lambda f, g: [[f()], [f()]], [F, F]),
        (lambda f, g: [[f(index=0)], [f(index=1)]], [F, F]),
        (lambda f, g: [[f(index=0, id="a")], [f(index=0, id="b")]], [F, F]),
        (lambda f, g: [[f(index=0)], [f(index=0)]], [F]),
        (lambda f, g: [[f(index=0, id="a")], [f(index=0, id="a")]], [F]),
        (lambda f, g: [[f(id="a")], [f(id="a")]], [F]),
        # Several at once that are all there was: the whole is sent again.
        (lambda f, g: [[f()], [g()], [f(), g()]], [F, G]),
        (lambda f, g: [[f(), g()], [f(), g()]], [F, G]),
        (lambda f, g: [[f(), f()], [f(), f()]], [F, F]),
        (lambda f, g: [[f(id="a"), g(id="b")], [f(id="a"), g(id="b")]], [F, G]),
        (lambda f, g: [[f(index=0), g(index=1)], [f(index=0), g(index=1)]], [F, G]),
        # Other ids, another order: other calls.
        (lambda f, g: [[f(id="a"), g(id="b")], [f(id="c"), g(id="d")]], [F, G, F, G]),
        (lambda f, g: [[f(), g()], [g(), f()]], [F, G, G, F]),
    ],
)
def test_the_same_call_twice_or_one_sent_twice(stream, expected, none):
    given = stream(lambda **fields: piece("f", none, **fields), lambda **fields: piece("g", A, **fields))
    assert chunks(*given) == expected


def test_well_formed_streams_come_out_as_they_went_in():
    rng = random.Random(7)
    for _ in range(300):
        wanted = []
        streams = []
        for index in range(rng.randint(1, 4)):
            text = json.dumps({"k": rng.choice(["", "}", '"', "{[", "北京\\", 5, {"a": [1]}])}, ensure_ascii=False)
            name = rng.choice(["f", "g"])
            wanted.append((f"id{index}", name, text))
            cuts = sorted(rng.randint(0, len(text)) for _ in range(rng.randint(0, 4)))
            parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
            stream = [piece(name, "", index=index, id=f"id{index}")]
            stream += [piece(None, part, index=index) for part in parts]
            streams.append(stream)
        pieces = []
        while any(streams):  # the calls' pieces interleaved, as the index allows
            pieces.append(rng.choice([stream for stream in streams if stream]).pop(0))
        found = assembled(*pieces)
        assert sorted(found) == wanted


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        ({"tool_calls": None}, None),
        ({"tool_calls": []}, None),
        ({"tool_calls": {}}, None),
        ({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, [("", "f", '{"a": 1}')]),
        ({"tool_calls": [{"id": 7, "function": {"name": "f"}}]}, [("7", "f", "")]),
        ({"tool_calls": [{"id": "a", "name": "f", "arguments": "{}"}]}, [("a", "f", "{}")]),
        ({"tool_calls": [{"id": "a", "function": {"name": None}}, None]}, None),
        ({"function_call": {"name": "f", "arguments": "{}"}}, [("", "f", "{}")]),
        ({"function_call": None, "content": "x"}, None),
    ],
)
def test_whole_messages(message, calls):
    right = whole_message(message)
    found = right["tool_calls"]
    assert (found and [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in found]) == calls
    assert right["content"] == message.get("content")
    assert "function_call" not in right


@pytest.mark.parametrize(
    ("reports", "total"),
    [
        ([], None),
        ([None, {}], None),
        ([{"prompt_tokens": 5, "completion_tokens": 1}, {"prompt_tokens": 5, "completion_tokens": 4}], 9),
        ([{"prompt_tokens": 5, "completion_tokens": 4}, {"prompt_tokens": 0, "completion_tokens": 0}], 9),
        ([{"prompt_tokens": 5, "completion_tokens": 4}, None], 9),
    ],
)
def test_usage_is_the_last_running_total(reports, total):
    kept = UsageReports()
    for report in reports:
        kept.hear(report)
    assert (kept.total and kept.total["prompt_tokens"] + kept.total["completion_tokens"]) == total
