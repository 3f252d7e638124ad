"""Damaged replies in every format of tool calls: nothing breaks, nothing hangs, nothing is called unasked.

The replies are written by the formats themselves. Besides the calls that are meant, each holds calls of a tool that no
reply ever means: as text and as data in arguments, and rehearsed in thinking. A reply is damaged at random and read,
whole and in pieces. It must end in parts, without an exception; the same in pieces; within a second; a call of the
tool that nobody means is a fault, and after a mere cut so is any call that the whole reply does not make.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from bench.harness import Goal, Listing
from toolplan import Tool, ToolSet
from toolplan.parse.formats import FORMATS, BrokenCall, CallPart, CallScanner, Part, read_calls, settled, write_calls
from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.pythonic import write_call

LONGEST_SECONDS = 1.0
NEVER = "delete_everything"
Mutation = Callable[[random.Random, str], str]
Called = dict[str, Any]

_TEXTS = [
    "Oslo", "北京的天气", "007", "true", "a < b && c", 'say "hi"', "line\nbreak", "```sh\nls\n```", "{x}", "$1 and #E1",
    "</tool_call>", "</parameter>\n</function>", "Observation: done", "it's", "C:\\temp", "😀", "<|im_end|>", "",
]  # fmt: skip


_BARE = ("qwen_xml", "seed_oss", "glm", "minimax", "deepseek_dsml", "gemma", "doubled bars", "LongCat")
"""Formats in which a text may hold the marks of another format as they are."""


_PLACES = re.compile(r"(\{\w+\})")


def _one_by_one(pattern: str) -> Callable[[list[Called]], str]:
    """Return how each call is written: `{name}`, `{json}` its arguments, `{call}` all of it, `{python}`, `{named}`."""

    def write(calls: list[Called]) -> str:
        written: list[str] = []
        for number, call in enumerate(calls, 1):
            part = CallPart(number, str(number), call["name"], call["arguments"])
            arguments = json_without(part.arguments, ("</",))
            named = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in part.arguments.items())
            pieces = {
                "{number}": str(number),
                "{name}": part.name,
                "{json}": arguments,
                "{call}": f'{{"name": "{part.name}", "arguments": {arguments}}}',
                "{python}": write_call(part, ("</", "```")),
                "{named}": named,
            }
            written.append("".join(pieces.get(piece, piece) for piece in _PLACES.split(pattern)))
        return "\n".join(written)

    return write


_AS_DATA = f'"name": "{NEVER}"'
"""A call as an object of JSON, which is one wherever else it is carried to."""
RELATIVES: dict[str, Callable[[list[Called]], str]] = {
    "tag with a name": _one_by_one('<tool_call name="{name}">\n{json}\n</tool_call>'),
    "tag with a fence": _one_by_one("<tool_call>\n```json\n{call}\n```\n</tool_call>"),
    "tag with Python": _one_by_one("<tool_call>{python}</tool_call>"),
    "tag with a name inside": _one_by_one("<tool_call>{name}\n{json}\n</tool_call>"),
    "other tag": _one_by_one("<tools>\n{call}\n</tools>"),
    "tag that is not closed": _one_by_one("<function_call> {call}"),
    "tags in a tag": _one_by_one("<tool_use>\n<name>{name}</name>\n<arguments>{json}</arguments>\n</tool_use>"),
    "Python in a tag": _one_by_one("<function_calls>{python}</function_calls>"),
    "special tokens": _one_by_one("<|tool_calls|>[{call}]<|/tool_calls|>"),
    "tokens in brackets": _one_by_one("[TOOL_REQUEST]\n{call}\n[END_TOOL_REQUEST]"),
    "Qwen-Agent": _one_by_one("✿FUNCTION✿: {name}\n✿ARGS✿: {json}"),
    "doubled bars": lambda calls: write_calls("deepseek_dsml", calls).replace("｜", "||"),
    "LongCat": lambda calls: re.sub("(</?)(arg_|tool_call>)", r"\1longcat_\2", write_calls("glm", calls)),
    "numbered actions": _one_by_one("Thought {number}: so\nAction {number}: {name}\nAction Input {number}: {json}"),
    "named text": _one_by_one("Action: {name}\nAction Input: {named}"),
    "ReWOO in a line": _one_by_one("Plan: so. #E{number} = {name}[{json}]"),
    "fenced Python": lambda calls: f"```python\n{write_calls('llama_pythonic', calls)}\n```",
    "plan behind a thought": lambda calls: f"Thought: so\n{write_calls('llm_compiler', calls)}",
}
"""Ways to write calls that are near to a format, and read by `auto`."""


def _written(format: str, calls: list[Called]) -> str:
    return RELATIVES[format](calls) if format in RELATIVES else write_calls(format, calls)


def _rehearsed(format: str) -> str:
    return _written(format, [{"name": NEVER, "arguments": {"path": "/"}}])


def corpus(rng: random.Random, count: int) -> list[tuple[str, str]]:
    """Return replies and their formats."""
    names = [*FORMATS, *RELATIVES]
    return [(_reply(rng, names[number % len(names)]), names[number % len(names)]) for number in range(count)]


def _reply(rng: random.Random, format: str) -> str:
    calls = [_call(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    reply = _written(format, calls)
    if rng.random() < 0.3:
        reply = f"<think>\nPerhaps {_rehearsed(format)} but no.\n</think>\n{reply}"
    elif rng.random() < 0.3 and format not in ("openai", "anthropic", "gemini", "json", "llama_pythonic"):
        reply = f"Let me see.\n{reply}"
    return reply


def _call(rng: random.Random) -> dict[str, Any]:
    name = rng.choice(["get_weather", "write_file", "查天气"])
    arguments: dict[str, Any] = {"city": rng.choice(_TEXTS), "days": rng.choice([1, -2.5, None, True])}
    kind = rng.randrange(5)
    if kind == 0:
        arguments["content"] = _rehearsed(rng.choice([*FORMATS, *RELATIVES]))
    elif kind == 1:
        arguments["content"] = {"name": NEVER, "arguments": {"path": "/"}}
    elif kind == 2:
        arguments["content"] = json.dumps([{"name": NEVER, "parameters": {"path": "/"}}])
    elif kind == 3:
        arguments["content"] = [rng.choice(_TEXTS) for _ in range(3)]
    return {"name": name, "arguments": arguments}


_TAKES = {"city": {"type": "string"}, "days": {}, "content": {}}
TOOLS = ToolSet(
    Tool.from_schema(name, "", {"type": "object", "properties": properties, "required": []}, dict)
    for name, properties in (
        *((name, _TAKES) for name in ("get_weather", "write_file", "查天气")),
        (NEVER, {"path": {"type": "string"}}),
    )
)


def run(
    mutations: list[Mutation],
    cut: Mutation,
    moving: list[Mutation],
    limit: int,
    seconds: float | None,
    seed: int = 20_260_318,
) -> tuple[Listing, Goal]:
    """Read up to `limit` damaged replies, for `seconds` at most; return what ended otherwise than it must.

    `moving` are the mutations that carry text elsewhere: out of thinking, or out of a value that stands bare, where it
    then does say something else.
    """
    rng = random.Random(seed)
    replies = corpus(rng, 2_000)
    outcomes: Counter[str] = Counter()
    faults: list[tuple[str, str]] = []
    slowest = 0.0
    count = 0
    started = time.perf_counter()
    while count < limit and (seconds is None or time.perf_counter() - started < seconds):
        text, format = rng.choice(replies)
        is_cut = rng.random() < 0.2
        damaged = text
        may_move = "<think>" not in text and not (format in _BARE and NEVER in text) and _AS_DATA not in text
        how = [each for each in mutations if may_move or each not in moving]
        times = 1 if "<think>" in text else rng.choice([1, 1, 1, 2, 4])  # one damage leaves one of its marks
        for mutation in [cut] if is_cut else rng.choices(how, k=times):
            damaged = mutation(rng, damaged)
        read_as = format if rng.random() < 0.5 and format in FORMATS else "auto"
        reason = "length" if is_cut else rng.choice([None, "stop", "length"])
        tools = rng.choice([None, TOOLS])
        count += 1
        begun = time.perf_counter()
        try:
            parts = read_calls(damaged, read_as, tools, reason)
            slowest = max(slowest, time.perf_counter() - begun)
            faults += [
                (why, f"{format} as {read_as}: {damaged!r}")
                for why in _wrong(parts, text, damaged, read_as, tools, is_cut)
            ]
            if count % 8 == 0 and _in_pieces(rng, damaged, read_as, tools, reason) != parts:
                faults.append(("other in pieces", f"{format} as {read_as}: {damaged!r}"))
            outcomes[_kind(parts)] += 1
        except Exception as error:
            faults.append((type(error).__name__, f"{format} as {read_as}: {damaged!r}"))
        if time.perf_counter() - begun > LONGEST_SECONDS:
            faults.append(("slow", repr(damaged[:300])))
    notes = (
        ", ".join(f"{number} {kind}" for kind, number in outcomes.most_common()),
        f"{len(FORMATS)} formats and {len(RELATIVES)} relatives; slowest {slowest * 1e3:.0f} ms",
    )
    table = Listing("replies with tool calls that ended otherwise", ("how", "reply"), tuple(faults[:20]), notes)
    figure = f"{count - len(faults)} of {count} replies gave no call that was not meant"
    return table, Goal(figure, len(faults), 0, "all, each within 1 s")


def _wrong(
    parts: tuple[Part, ...], text: str, damaged: str, read_as: str, tools: ToolSet | None, is_cut: bool
) -> Iterator[str]:
    calls = [part for part in parts if isinstance(part, CallPart)]
    is_rehearsal = "<think>" in text and not ("<think>" in damaged or "</think>" in damaged)
    if any(call.name == NEVER for call in calls) and not is_rehearsal:
        yield "never meant"
    if is_cut:
        whole = [(call.name, call.arguments) for call in read_calls(text, read_as, tools) if isinstance(call, CallPart)]
        if [(call.name, call.arguments) for call in calls] != whole[: len(calls)]:
            yield "not in the whole"


def _in_pieces(
    rng: random.Random, text: str, format: str, tools: ToolSet | None, reason: str | None
) -> tuple[Part, ...]:
    scanner = CallScanner(format, tools)
    parts: list[Part] = []
    at = 0
    while at < len(text):
        end = at + rng.choice([1, 1, 2, 4, 9, 40])
        parts += scanner.feed(text[at:end])
        at = end
    return settled([*parts, *scanner.close(reason)])


def _kind(parts: tuple[Part, ...]) -> str:
    kinds = {type(part) for part in parts}
    if CallPart in kinds:
        return "with calls" if BrokenCall not in kinds else "with calls and broken ones"
    return "with broken calls only" if BrokenCall in kinds else "without calls"
