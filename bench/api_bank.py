"""API-Bank's dialogues through the classic loop: the same calls, in the same order, from what the results really said.

A dialogue becomes a conversation (`mode="loop"`). The model is the recording: each of its replies says what is said
there and asks for the call that follows. A tool gives the recorded output, but with every value that a later call
passes on (a token, an appointment's number) replaced by a new one; and the model takes such a value out of the
messages that it is sent. So a call can only come out right when the result before it has reached the model.

A dialogue is right when every call was made once, in order, with the expected arguments, every turn is answered with
the recorded words, and every request that the model got was in the valid shape: each call is answered once, in order,
in the message after the one that asked for it.
"""

from __future__ import annotations

import itertools
import json
import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.data import find, lines
from bench.harness import Bench, Goal, Listing, Report, at_least, not_run
from bench.plays import Document, Stage
from toolplan import Agent, ToolFailed
from toolplan.models import FunctionModel, Message, ModelRequest, Reply, ToolCallPart

NAME = "api_bank"
SHORTEST = 5
"""A shorter output is not followed into later arguments: `5` occurs everywhere."""


@dataclass(frozen=True)
class Said:
    """One reply of the recorded model: words, perhaps none, and the call it asks for, if any."""

    words: str
    call: tuple[str, dict[str, Any]] | None = None


@dataclass
class Turn:
    """What a user says and the replies up to the next user's words; the last reply has no call."""

    user: str
    replies: list[Said] = field(default_factory=list)


def turns_of(dialogue: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """Return the dialogue as turns. Words of the model before a call belong to the reply that asks for it."""
    turns: list[Turn] = []
    words: list[str] = []

    def close() -> None:
        if turns:
            turns[-1].replies.append(Said(" ".join(words) or "Done."))
        words.clear()

    for line in dialogue:
        if line["role"] == "User":
            if turns and not words and not turns[-1].replies:
                turns[-1].user += "\n" + line["text"]
                continue
            close()
            turns.append(Turn(line["text"]))
        elif line["role"] == "AI":
            words.append(line["text"])
        else:
            turns = turns or [Turn("Go on.")]
            turns[-1].replies.append(Said(" ".join(words), (line["api_name"], line["param_dict"])))
            words.clear()
    close()
    return turns


def travelling(dialogue: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the output texts that later calls pass on, unless a user says them, each with what takes its place."""
    calls = [line for line in dialogue if line["role"] == "API"]
    found: dict[str, str] = {}
    for number, call in enumerate(calls):
        later = {value for other in calls[number + 1 :] for value in other["param_dict"].values()}
        for text in _texts(call["result"]["output"]):
            said = any(text in line["text"] for line in dialogue if line["role"] == "User")
            if len(text) >= SHORTEST and text in later and not said:
                found[text] = _another(text)
    return found


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _another(text: str) -> str:
    """Return a text of the same kind that nobody can guess from it, the same one each time."""
    draw = random.Random(text)
    return "".join(
        draw.choice(string.digits) if c.isdigit() else draw.choice(string.ascii_lowercase) if c.isalpha() else c
        for c in text
    )


def replaced(value: Any, texts: Mapping[str, str]) -> Any:
    """Return the value with every text that `texts` knows replaced."""
    if isinstance(value, dict):
        return {key: replaced(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, texts) for item in value]
    return texts.get(value, value) if isinstance(value, str) else value


def fault_of(messages: Sequence[Message]) -> str | None:
    """Return what is wrong with the shape of a conversation, or None."""
    for message, following in itertools.pairwise([Message("user"), *messages, Message("user")]):
        asked = [call.id for call in message.tool_calls]
        answered = [result.id for result in following.tool_results]
        if asked != answered:
            return f"calls {asked} are followed by results {answered}"
    ids = [call.id for message in messages for call in message.tool_calls]
    return None if len(ids) == len(set(ids)) else "two calls with one id"


class Recording:
    """The model of one dialogue, and its tools."""

    def __init__(self, dialogue: Sequence[Mapping[str, Any]]) -> None:
        self.turns = turns_of(dialogue)
        self.calls = [line for line in dialogue if line["role"] == "API"]
        self.travelling = travelling(dialogue)
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.fault: str | None = None
        self._replies = [said for turn in self.turns for said in turn.replies]
        self._given = 0

    @property
    def expected(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls that a right play makes."""
        return [(call["api_name"], replaced(call["param_dict"], self.travelling)) for call in self.calls]

    def reply(self, request: ModelRequest) -> Reply:
        """Return the next reply. Values that travel are those that the request shows, where it shows them."""
        self.fault = self.fault or fault_of(request.messages)
        said = self._replies[self._given] if self._given < len(self._replies) else Said("There is nothing more to say.")
        self._given += 1
        if said.call is None:
            return Reply(said.words, finish_reason="stop")
        shown = "\n".join(result.content for message in request.messages for result in message.tool_results)
        known = {text: other for text, other in self.travelling.items() if other in shown}
        name, arguments = said.call
        part = ToolCallPart(f"call_{self._given}", name, json.dumps(replaced(arguments, known)))
        return Reply(said.words, tool_calls=(part,), finish_reason="tool_call", output="tool")

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Answer a call as recorded."""
        number = len(self.made)
        self.made.append((name, arguments))
        if number >= len(self.calls) or self.calls[number]["api_name"] != name:
            raise ToolFailed(f"call {number + 1} is not the recorded one")
        result = self.calls[number]["result"]
        if result["exception"]:
            raise ToolFailed(str(result["exception"]))
        return replaced(result["output"], self.travelling)


def documents_of(dialogues: Sequence[Sequence[Mapping[str, Any]]]) -> list[Document]:
    """Return what can be known of the functions: the arguments they were given; those given every time are required."""
    uses: dict[str, list[Mapping[str, Any]]] = {}
    for dialogue in dialogues:
        for line in dialogue:
            if line["role"] == "API":
                uses.setdefault(line["api_name"], []).append(line["param_dict"])
    return [
        Document(
            name,
            "",
            {
                "type": "object",
                "properties": {argument: {"type": "string"} for use in given for argument in use},
                "required": [argument for argument in given[0] if all(argument in use for use in given)],
            },
        )
        for name, given in uses.items()
    ]


async def _play(recording: Recording, stage: Stage, documents: Sequence[Document]) -> str | None:
    """Play the dialogue; return what went otherwise than recorded, or None."""

    def caller(name: str) -> Any:
        return lambda **arguments: recording.call(name, arguments)

    stage.methods = {document.name: caller(document.name) for document in documents}
    talk = Agent(FunctionModel(recording.reply), stage.tools, policy="declared").conversation(mode="loop")
    steps: list[tuple[str, Any]] = []
    for turn in recording.turns:
        result = await talk.send(turn.user)
        steps += [(step.tool, step.arguments) for step in result.steps]
        if result.outcome != "succeeded" or result.answer != turn.replies[-1].words:
            return f"{result.outcome}: {result.error or result.answer!r}"
    if recording.made != recording.expected:
        return "other calls were made"
    if steps != recording.expected:
        return "the results tell of other calls than were made"
    return recording.fault


async def run(full: bool) -> Report:
    """Play every dialogue; the figure is how many go as recorded."""
    file = find("api_bank", "dialogues.jsonl")
    if file is None:
        return not_run(NAME, "api_bank is not there")
    rows = lines(file)
    documents = documents_of([row["dialogue"] for row in rows])
    stage = Stage(documents, {})
    wrong: list[tuple[str, ...]] = []
    calls = values = travelled = 0
    for row in rows:
        recording = Recording(row["dialogue"])
        calls += len(recording.calls)
        values += len(recording.travelling)
        travelled += bool(recording.travelling)
        why = await _play(recording, stage, documents)
        if why is not None:
            wrong.append((row["id"], why[:150]))
    about = Listing(
        "dialogues",
        ("dialogues", "calls", "functions", "values that travel", "in so many dialogues"),
        ((str(len(rows)), str(calls), str(len(documents)), str(values), str(travelled)),),
    )
    tables = [about, *([Listing("otherwise than recorded", ("dialogue", "why"), tuple(wrong))] if wrong else [])]
    goals: list[Goal] = [at_least(len(rows) - len(wrong), len(rows), len(rows), what="dialogues make the same calls")]
    return Report(NAME, tables, goals)


BENCH = Bench(NAME, "API-Bank's dialogues through the loop", run)
