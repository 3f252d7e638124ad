import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolplan.errors import UsageError
from toolplan.models import Message, ToolCallPart, ToolResultPart
from toolplan.models.conversation import NO_RESULT, history, numbered
from toolplan.models.facts import PROVIDERS

ANY = PROVIDERS["openai"].call_ids
NINE = PROVIDERS["mistral"].call_ids
USER = Message("user", "hi")


def calls(*pairs: tuple[str, str]) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCallPart(id, name, "{}") for id, name in pairs))


def results(*triples: tuple[str, str, str]) -> Message:
    return Message("tool", tool_results=tuple(ToolResultPart(*triple) for triple in triples))


def said(messages: tuple[Message, ...]) -> list[list[str]]:
    return [[result.content for result in message.tool_results] for message in messages if message.role == "tool"]


def test_what_is_in_order_stays_as_it_is():
    conversation = (USER, calls(("a", "f"), ("b", "g")), results(("a", "f", "1"), ("b", "g", "2")), USER)
    assert numbered(conversation, ANY) == conversation


def test_results_follow_the_order_of_their_calls_whatever_message_they_are_in():
    conversation = (USER, calls(("a", "f"), ("b", "g")), results(("b", "g", "2")), results(("a", "f", "1")))
    sent = numbered(conversation, ANY)
    assert said(sent) == [["1", "2"]]
    assert [message.role for message in sent] == ["user", "assistant", "tool"]


def test_a_call_nobody_answered_is_answered():
    for conversation in ((USER, calls(("a", "f")), USER), (USER, calls(("a", "f")))):
        sent = numbered(conversation, ANY)
        assert said(sent) == [[NO_RESULT]]
        assert sent[2].tool_results[0].is_error


def test_equal_and_empty_ids_are_answered_in_order():
    sent = numbered((calls(("x", "f"), ("x", "f")), results(("x", "f", "1"), ("x", "f", "2"))), ANY)
    assert said(sent) == [["1", "2"]]
    ids = [call.id for call in sent[0].tool_calls]
    assert ids[0] == "x"
    assert len(set(ids)) == 2
    sent = numbered((calls(("", "f"), ("", "g")), results(("", "g", "2"), ("", "f", "1"))), ANY)
    assert said(sent) == [["1", "2"]]


def test_an_id_of_an_earlier_turn_is_not_used_again():
    turn = (calls(("call_0", "f")), results(("call_0", "f", "1")))
    sent = numbered((*turn, *turn), ANY)
    assert sent[0].tool_calls[0].id == "call_0"
    assert sent[2].tool_calls[0].id not in ("call_0", "")
    assert sent[3].tool_results[0].id == sent[2].tool_calls[0].id


def test_an_id_made_up_is_none_that_comes_later():
    made = numbered((calls(("", "f")), results(("", "f", "1"))), ANY)[0].tool_calls[0].id
    sent = numbered((calls(("", "f")), results(("", "f", "1")), calls((made, "f")), results((made, "f", "2"))), ANY)
    assert sent[2].tool_calls[0].id == made
    assert sent[0].tool_calls[0].id != made


@pytest.mark.parametrize(
    "conversation",
    [
        (USER, results(("a", "f", "1"))),
        (calls(("a", "f")), results(("b", "f", "1"))),
        (calls(("a", "f")), results(("a", "f", "1"), ("a", "f", "2"))),
        (calls(("a", "f")), USER, results(("a", "f", "1"))),
        (USER, Message("tool")),
    ],
)
def test_a_result_without_a_call_is_a_mistake_of_the_caller(conversation):
    with pytest.raises(UsageError):
        numbered(conversation, ANY)


turns = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["", "a", "call_0", "functions.f:0", "x" * 50]), st.sampled_from("fg")), max_size=4
    ),
    max_size=5,
)


@given(turns, st.sampled_from(sorted({facts.call_ids for facts in PROVIDERS.values()})), st.randoms())
def test_every_call_has_an_id_of_its_own_that_is_allowed_and_one_result_in_order(turns, allowed, random):
    conversation: list[Message] = [USER]
    expected: list[list[str]] = []
    for number, pairs in enumerate(turns):
        conversation.append(calls(*pairs))
        # Results of calls with the same label keep their order, others may come as they like.
        given_results = [(id, name, f"{number}.{place}") for place, (id, name) in enumerate(pairs)]
        labels = [(id or name) for id, name, _ in given_results]
        if len(set(labels)) == len(labels):
            random.shuffle(given_results)
        conversation += [results(each) for each in given_results]
        if pairs:
            expected.append([f"{number}.{place}" for place in range(len(pairs))])
    sent = numbered(conversation, allowed)
    ids = [call.id for message in sent for call in message.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(allowed, id) for id in ids)
    assert [result.id for message in sent for result in message.tool_results] == ids
    assert said(sent) == expected
    assert numbered(sent, allowed) == sent


def test_history_alternates_between_what_was_said_and_answered():
    turns = history(
        [
            Message("system", "s"),
            Message("user", "u1"),
            Message("assistant", "a1"),
            Message("user", "u2"),
            Message("user", "u3"),
        ],
        PROVIDERS["openai"],
    )
    assert [(turn.kind, [part.content for part in turn.parts]) for turn in turns] == [
        ("request", ["s", "u1"]),
        ("response", ["a1"]),
        ("request", ["u2\n\nu3"]),
    ]


def test_what_was_kept_and_cannot_be_read_is_a_mistake_of_the_caller():
    kept = {"kind": "response", "parts": "broken", "provider_name": "openai"}
    with pytest.raises(UsageError, match="what was kept"):
        history([USER, Message("assistant", "a", kept=kept)], PROVIDERS["openai"], "openai")
