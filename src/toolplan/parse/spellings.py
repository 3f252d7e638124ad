"""The one table of accepted spellings: read leniently, print canonically.

Every key of the JSON notation has one canonical spelling and any number of others that mean exactly the same. Case,
underscores, hyphens and spaces never matter (`for each`, `forEach`, `FOR_EACH`), so they are not listed. Both the
reader and the reference page are made from this table; nothing else in the package knows a second spelling.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "ANNOTATIONS",
    "LABELS",
    "ON_ERROR_WORDS",
    "OPERATORS",
    "PLAN",
    "PLAN_ANNOTATIONS",
    "SCHEMA_WORDS",
    "STEPS",
    "TYPE_WORDS",
    "Key",
    "Kind",
    "find_kind",
    "fold",
    "table",
]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the notation: its canonical spelling, the others, and what it holds."""

    name: str
    also: tuple[str, ...] = ()
    holds: str = ""
    required: bool = False


@dataclass(frozen=True)
class Kind:
    """A kind of step. The first key is the one that tells the kind; `hints` tell it when nothing surer does."""

    name: str
    keys: tuple[Key, ...]
    hints: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Values of a `type` key that tell the kind when its own key is missing."""
    _by_spelling: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_spelling", _spellings(self.keys))

    def canonical(self, key: str) -> str | None:
        """Return the canonical spelling of `key` in a step of this kind, or None when it has no such key."""
        return self._by_spelling.get(key) or self._by_spelling.get(fold(key))

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical keys."""
        return tuple(key.name for key in self.keys)


def fold(key: str) -> str:
    """Return `key` without what never matters: case, underscores, hyphens, spaces."""
    return key.lower().replace("_", "").replace("-", "").replace(" ", "")


def _spellings(keys: tuple[Key, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in keys:
        for spelling in (key.name, *key.also):
            for form in dict.fromkeys((spelling, fold(spelling))):
                assert found.setdefault(form, key.name) == key.name, f"`{form}` would mean two things"
    return found


_RESULT = (
    *("output", "save_as", "store_as", "assign_to", "output_variable", "output_key", "result_name"),
    *("label", "id", "step_id", "task_id", "idx"),
)
_RESULT_KEY = Key("result_variable", ("result", "variable", "as", *_RESULT), "the name of the step's value")
_BODY = ("steps", "body", "actions", "then")
_LOOP_NAME = ("item", "var", "variable", "loop_variable", "loop_var", "iterator", "each", "element")
_ON_ERROR = Key(
    "on_error",
    ("on_failure", "if_error", "on_fail", "error_handling"),
    '`"fail"` (`stop`, `abort`, `raise`), `"skip"` (`continue`, `ignore`), `"replan"`, `{"value"}`, `{"do": [...]}`',
)

CALL = Kind(
    "call",
    (
        Key("tool_name", ("tool", "function", "function_name", "name", "action", "call", "api"), "a tool's name", True),
        Key(
            "arguments",
            ("args", "parameters", "params", "input", "inputs", "tool_input", "action_input", "kwargs"),
            "an object of templates; JSON text of one is decoded",
        ),
        _RESULT_KEY,
        Key("depends_on", ("after", "dependencies", "depends", "requires", "wait_for"), "earlier steps to wait for"),
        _ON_ERROR,
        Key(
            "retry",
            ("retries", "max_retries"),
            '`{"attempts", "wait_seconds"?, "max_wait_seconds"?}`; a number n means n more tries after the first',
        ),
        Key("timeout_seconds", ("timeout",), "a number of seconds"),
        Key("again", (), "text: why a call is made again whose effect has happened (TP409)"),
        Key("if", ("when", "condition", "only_if"), "the call is made only if this holds (printed as a branch)"),
    ),
    hints=("name", "action", "call", "api"),
    types=("call", "tool", "tool_call", "function", "function_call", "action", "tool_use"),
)
IF = Kind(
    "if",
    (
        Key("if", ("condition", "when", "test"), "an expression, or `{left, op, right}`", True),
        Key("then", ("do", "steps", "body", "if_true", "on_true"), "the steps of one side", True),
        Key("else", ("otherwise", "if_false", "on_false"), "the steps of the other side"),
        Key("elif", ("else_if", "elseif"), "one more `{if, then}`, or a list of them"),
    ),
    hints=("condition", "when"),
    types=("if", "conditional", "condition", "branch", "if_else"),
)
FOR_EACH = Kind(
    "for_each",
    (
        Key("for_each", ("foreach", "for", "loop", "items", "in", "over", "iterate"), "an expression, or a list", True),
        Key("as", _LOOP_NAME, "the element's name; without it `item`. `x in xs` as the loop's value names it too"),
        Key("do", _BODY, "the steps of a round", True),
        Key("collect", (), "an expression, its values become a list; a name nothing else has names the list itself"),
        Key("collect_if", (), "an expression: the rounds that are collected"),
        Key("result_variable", ("result", *_RESULT), "the name of the collected list"),
    ),
    hints=("loop", "iterate"),
    types=("for_each", "foreach", "for", "loop"),
)
WHILE = Kind(
    "while",
    (
        Key("while", ("condition", "repeat_while"), "an expression", True),
        Key("do", _BODY, "the steps of a round", True),
        Key("max_iterations", ("max", "limit", "max_rounds", "max_loops"), "the most rounds there may be", True),
    ),
    types=("while", "while_loop"),
)
PARALLEL = Kind(
    "parallel",
    (Key("parallel", ("in_parallel", "concurrently", "steps"), "steps that are independent of each other", True),),
    types=("parallel",),
)
LET = Kind(
    "let",
    (
        Key("let", ("set", "compute", "assign"), "`{name: expression}`, a list of `{name, value}`", True),
        Key("value", ("expression", "expr", "to", "be", "values"), "the value, when `let` is one name"),
        Key("result_variable", ("as", "result", "name", "variable", *_RESULT), "the name, when `let` is an expression"),
    ),
    types=("let", "set", "compute", "assign"),
)
TRY = Kind(
    "try",
    (
        Key("try", (), "steps that may fail", True),
        Key("except", ("catch", "on_error", "rescue", "handler"), "the steps that run then", True),
        Key("as", ("error", "error_variable"), "the name of the error's message"),
    ),
    types=("try",),
)
ASK_USER = Kind(
    "ask_user",
    (Key("ask_user", ("ask_human", "ask", "question"), "a template", True), _RESULT_KEY),
    hints=("ask",),
    types=("ask_user",),
)
ASK_MODEL = Kind(
    "ask_model",
    (
        Key("ask_model", ("ask_llm", "llm", "question", "prompt"), "a template: what to read or write", True),
        Key("data", ("input", "context", "text"), "an expression: all that the model sees"),
        Key(
            "returns",
            ("schema", "output_schema", "return_schema", "response_schema"),
            "a JSON Schema; `string` without",
        ),
        _RESULT_KEY,
        _ON_ERROR,
    ),
    hints=("llm",),
    types=("ask_model", "ask_llm", "llm"),
)
REPLAN = Kind("replan", (Key("replan", ("reason",), "a template: why", True),), types=("replan",))
ANSWER = Kind(
    "answer",
    (
        Key(
            "answer",
            (
                "final_answer",
                "final_answer_template",
                "answer_template",
                "respond",
                "response",
                "return",
                "text",
                "content",
            ),
            "a template: the reply",
            True,
        ),
    ),
    hints=("respond", "response", "return"),
    types=("answer", "final_answer", "respond", "finish"),
)
CANNOT = Kind(
    "cannot",
    (Key("cannot", ("reason",), "a template: why not", True), Key("missing", ("needs",), "what would be needed")),
    types=("cannot",),
)
NOTE = Kind(
    "note",
    (Key("note", ("print", "log", "text"), "a template", True),),
    hints=("print", "log"),
    types=("note", "print"),
)
BREAK = Kind("break", (Key("break", (), "`true`", True),), types=("break",))
CONTINUE = Kind("continue", (Key("continue", (), "`true`", True),), types=("continue",))

STEPS: tuple[Kind, ...] = (
    *(CALL, IF, FOR_EACH, WHILE, PARALLEL, LET, TRY, ASK_USER, ASK_MODEL),
    *(REPLAN, ANSWER, CANNOT, NOTE, BREAK, CONTINUE),
)

PLAN = Kind(
    "plan",
    (
        Key(
            "steps",
            ("plan", "tool_calls_sequence", "tool_calls", "calls", "actions", "tasks", "workflow"),
            "the steps",
        ),
        Key("thought", ("thoughts", "reasoning", "thinking", "analysis", "rationale"), "text, kept, without meaning"),
        Key("inputs", ("variables", "parameters"), "values that the names of the plan may refer to"),
        Key(
            "answer", ("final_answer", "final_answer_template", "answer_template", "response"), "a template: the reply"
        ),
        Key("cannot", (), "why the request cannot be planned"),
        Key("missing", ("needs",), "what would be needed"),
    ),
)

ANNOTATIONS = frozenset(
    fold(key)
    for key in (
        *("description", "comment", "comments", "step", "step_number", "index", "order", "title", "name", "purpose"),
        *("reason", "reasoning", "rationale", "explanation", "thought", "thinking", "why", "note", "notes", "goal"),
        *("type", "kind", "id", "step_id", "label", "depends_on", "dependencies", "after", "expected_output"),
    )
)
"""Keys that may stand on any step that does not use them itself, and mean nothing.

`depends_on` is among them for steps that are not calls: written order is the meaning already (P3).
"""

PLAN_ANNOTATIONS = ANNOTATIONS | {"role", "content", "request", "summary", "version", "notation"}
"""The same for the plan as a whole; some come from the message that it was sent in."""

LABELS = frozenset(("id", "stepid", "taskid", "idx", "label"))
"""Spellings of `result_variable`, folded, that are a mere label beside another, or when no expression could use it."""

ON_ERROR_WORDS: dict[str, str] = {
    **dict.fromkeys(("fail", "stop", "abort", "raise", "throw", "error"), "fail"),
    **dict.fromkeys(("skip", "continue", "ignore"), "skip"),
    **dict.fromkeys(("value", "default", "fallback", "return", "defaultvalue", "fallbackvalue"), "value"),
    **dict.fromkeys(("do", "steps", "then", "fallbacksteps"), "do"),
    **dict.fromkeys(("action", "strategy", "type"), "action"),
    "replan": "replan",
}
"""Words in `on_error`, folded, as its text or as the key of its object, and what they mean."""

TYPE_WORDS: dict[str, str] = {
    **{word: word for word in ("string", "number", "integer", "boolean", "array", "object", "null")},
    "text": "string",
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
"""Names of types in `returns`, and JSON Schema's."""

SCHEMA_WORDS = frozenset(
    (
        *(
            "type",
            "properties",
            "items",
            "required",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "$ref",
            "$defs",
        ),
        *("description", "title", "format", "additionalProperties", "prefixItems", "nullable", "minItems", "maxItems"),
    )
)
"""Keys that tell a JSON Schema from a plain object of types."""

_OPERATORS: dict[str, tuple[str, ...]] = {
    "==": ("=", "===", "eq", "equals", "equal", "is"),
    "!=": ("<>", "!==", "ne", "not_equals", "not_equal", "is_not"),
    "<": ("lt", "less_than"),
    "<=": ("lte", "le", "≤"),
    ">": ("gt", "greater_than"),
    ">=": ("gte", "ge", "≥"),
    "in": (),
    "not in": (),
    "contains": ("includes",),
    "not contains": (),
    "startswith": (),
    "endswith": (),
    "and": ("&&",),
    "or": ("||",),
}
OPERATORS = {form: name for name, also in _OPERATORS.items() for form in (fold(name), *map(fold, also))}
"""The operators of `{left, op, right}` conditions, folded, and what they mean."""


def _sure() -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for kind in STEPS:
        first = kind.keys[0]
        for spelling in (first.name, *first.also):
            if spelling not in kind.hints and spelling not in _SHARED:
                found[spelling] = found[fold(spelling)] = kind
    return found


_SHARED = frozenset(
    ("items", "in", "over", "condition", "when", "test", "question", "prompt", "reason", "text", "content", "steps")
)
"""Spellings of a first key that other kinds use too; they count only where something else tells the kind."""

_KINDS = _sure()
_HINTS = {form: kind for kind in STEPS for hint in kind.hints for form in (hint, fold(hint))}
_TYPES = {fold(name): kind for kind in STEPS for name in kind.types}


@functools.lru_cache(maxsize=1024)
def _kind_told_by(key: str) -> Kind | None:
    return _KINDS.get(key) or _KINDS.get(fold(key))


def find_kind(step: Mapping[str, object]) -> tuple[list[Kind], bool]:
    """Return the kinds of step that the keys speak for: one for a sound step, none or several otherwise.

    The second value says whether it was told by a key that means nothing else. A key whose value is null is not given.
    """
    sure: list[Kind] = []
    for key, value in step.items():
        kind = _kind_told_by(key)
        if kind is not None and value is not None and kind not in sure:
            sure.append(kind)
    if len(sure) > 1:
        sure = _settle(sure, step)
    elif sure and sure[0] is IF and _is_guarded_call(step):
        sure = [CALL]
    if sure:
        return sure, True
    told = step.get("type") or step.get("kind")
    if isinstance(told, str) and (kind := _TYPES.get(fold(told))):
        return [kind], True
    hinted = dict.fromkeys(kind.name for key in step if (kind := _HINTS.get(key) or _HINTS.get(fold(key))))
    if hinted.keys() == {"call", "if"} and _is_guarded_call(step):
        return [CALL], False
    return [kind for kind in STEPS if kind.name in hinted], False


def find_meant_kind(step: Mapping[str, object]) -> tuple[Kind, str] | None:
    """Return the kind of step that an object without a kind was probably meant as, and the key that it lacks."""
    for kind in STEPS:
        first = kind.keys[0].name
        if first in step and step[first] is None:
            return kind, first
    keys = {fold(key) for key, value in step.items() if value is not None}
    for kind, tells in ((IF, {"then", "else", "elif"}), (FOR_EACH, {"do"}), (TRY, {"except"})):
        if keys & tells:
            return kind, kind.keys[0].name
    return (CALL, "tool_name") if keys & {"arguments", "args"} else None


def _is_guarded_call(step: Mapping[str, object]) -> bool:
    """Whether a step with `if` is a call that is made only then: it has a call's keys, and no side of a branch."""
    if any(IF.canonical(key) in ("then", "else", "elif") for key in step):
        return False
    keys = {CALL.canonical(key): value for key, value in step.items() if value is not None}
    return isinstance(keys.get("tool_name"), str) and "arguments" in keys


def _settle(kinds: list[Kind], step: Mapping[str, object]) -> list[Kind]:
    """Return what is left when keys that several kinds know are counted for the kind that has the better claim."""
    if CALL in kinds and IF in kinds and len(kinds) == 2 and not any(IF.canonical(key) == "then" for key in step):
        return [CALL]
    return [kind for kind in kinds if kind is not NOTE]


def table() -> str:
    """Return the accepted spellings as a Markdown table, for the reference."""
    lines = ["| where | canonical key | read as the same | holds |", "| --- | --- | --- | --- |"]
    for kind in (PLAN, *STEPS):
        for key in kind.keys:
            also = ", ".join(f"`{spelling}`" for spelling in key.also)
            lines.append(f"| {kind.name} | `{key.name}` | {also} | {key.holds} |")
    ignored = ", ".join(f"`{key}`" for key in sorted(ANNOTATIONS))
    at_the_top = ", ".join(f"`{key}`" for key in sorted(PLAN_ANNOTATIONS - ANNOTATIONS))
    lines += [
        "",
        "Case, underscores, hyphens and spaces in a key do not matter.",
        "",
        f"Read and ignored: {ignored}; of a plan also {at_the_top}.",
    ]
    lines += [
        "",
        'Where a template stands, `{"$expr": "..."}` is the value of an expression, `{"$literal": ...}` a constant,',
        'and `{"$text": "..."}` text with holes; with a list, its pieces, of which a hole is',
        '`{"$expr": "...", "format"?, "conversion"?}`.',
    ]
    words = ", ".join(f"`{word}` ({meaning})" for word, meaning in ON_ERROR_WORDS.items() if word != meaning)
    types = ", ".join(f"`{word}` ({meaning})" for word, meaning in TYPE_WORDS.items() if word != meaning)
    lines += ["", f"Words in `on_error`: {words}.", "", f"Types in `returns`: {types}."]
    operators = ", ".join(f"`{written}`" for name, also in _OPERATORS.items() for written in (name, *also))
    lines += ["", f"Operators of `{{left, op, right}}` conditions: {operators}."]
    return "\n".join(lines) + "\n"
