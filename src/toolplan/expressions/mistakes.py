"""What a text that is not an expression was probably meant to be: Python's complaint in words that help.

Models write what they know from other languages, and people type full-width punctuation; both are recognised here.
"""

from __future__ import annotations

import re

from toolplan.patterns import late_pattern

__all__ = ["explain_syntax", "masked"]

_STRINGS = late_pattern(
    r"'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'(?:[^'\\\n]|\\.)*(?:'|\Z)|\"(?:[^\"\\\n]|\\.)*(?:\"|\Z)",
    re.DOTALL,
)
_F_PREFIX = late_pattern(r"[fF][rR]?\Z")
_HOLE = late_pattern(r"(\{[^{}]*\})|[^{}]+|[{}]")
_FULL_WIDTH = {
    "，": ",", "（": "(", "）": ")", "：": ":", "；": ";", "。": ".", "【": "[", "】": "]", "［": "[", "］": "]",
    "｛": "{", "｝": "}", "＋": "+", "－": "-", "＊": "*", "／": "/", "＝": "=", "＜": "<", "＞": ">",
    "！": "!", "、": ",",
    "％": "%", "“": '"', "”": '"', "‘": "'", "’": "'", "「": '"', "」": '"', "＂": '"', "＇": "'", "×": "*", "÷": "/",
    "≥": ">=", "≤": "<=", "≠": "!=", "–": "-", "—": "-", "−": "-", "．": ".",
}  # fmt: skip
_ELSEWHERE: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (late_pattern(pattern), message, help)
    for pattern, message, help in (
        (r"&&", "`&&` is not an operator here", "write `and`"),
        (r"\|\|", "`||` is not an operator here", "write `or`"),
        (r"!==", "`!==` is not an operator here", "write `!=`"),
        (r"===", "`===` is not an operator here", "write `==`"),
        (r"<>", "`<>` is not an operator here", "write `!=`"),
        (r"\?\?", "`??` is not an operator here", "write `default(a, b)`"),
        (r"\?\.", "`?.` is not an operator here", "write `default(a.b, None)`"),
        (r"=>", "`=>` is not an operator here", "write `>=`, or a comprehension instead of a function"),
        (r"=<", "`=<` is not an operator here", "write `<=`"),
        (r"\+\+|--$", "a value cannot be changed in an expression", "write `x + 1`"),
        (r"!(?!=)", "`!` is not an operator here", "write `not x`"),
        (r"\$\{?", "`$` has no meaning in an expression", "write the name alone: `x.y`"),
        (r"\{\{|\}\}", "double braces have no meaning in an expression", "write the name alone: `x.y`"),
        (r"\?", "`? :` is not an operator here", "write `a if test else b`"),
        (r"`", "backticks have no meaning in an expression", "write quotes around text"),
        (r"(?<![<>!=:])=(?!=)", "`=` gives a name a value, which an expression cannot", "write `==` to compare"),
        (r";", "an expression is one value; `;` has no place in it", "use several steps"),
    )
)
_WORDS: dict[str, str] = {
    word: meant
    for meant, words in {
        "write `and`": "AND 且 并且 而且 以及 同时",
        "write `is`, as in `x is None`": "IS",
        "write `or`": "OR 或 或者 或是",
        "write `not`": "NOT 非",
        "write `y in x`": "contains CONTAINS includes 包含 含有 包括",
        "write `y not in x`": "不包含 不含",
        "write `>`": "大于 高于 超过 多于 gt GT",
        "write `<`": "小于 低于 少于 不到 lt LT",
        "write `>=`": "大于等于 不小于 不低于 不少于 至少 gte GTE ge GE",
        "write `<=`": "小于等于 不大于 不高于 不超过 不多于 至多 lte LTE le LE",
        "write `==`": "等于 是 为 eq EQ equals",
        "write `!=`": "不等于 不是 不为 ne NE neq NEQ",
        "write `x.startswith(y)`": "startswith startsWith starts_with 开头是",
        "write `x.endswith(y)`": "endswith endsWith ends_with 结尾是",
        "write `y in x`, or `x.startswith(y)`": "LIKE like matches",
        "write `a <= x <= b`": "BETWEEN between 介于",
    }.items()
    for word in words.split()
}
"""The operators of other languages that are words, each with what it is here."""
_WORD = late_pattern(r"(?<![\w.])(?:" + "|".join(sorted(_WORDS, key=len, reverse=True)) + r")(?![\w(.])")
_OPERAND = late_pattern(r"[\w)]\.\w|[0-9'\"<>()\[\]]|==|!=")
"""What tells a condition from a sentence."""
_STATEMENT = late_pattern(
    r"\s*(import|from|def|class|return|for|while|if|with|try|raise|del|global|assert|pass|break|continue)\b"
)


def masked(text: str, *, holes: bool = False) -> str:
    """Return `text` with the contents of its strings blanked out; each character keeps its place.

    With `holes`, what stands in the braces of f-strings is left as it is.
    """

    def blanks(match: re.Match[str]) -> str:
        content = match.group()
        kept = " " * (len(content) - 2)
        if holes and _F_PREFIX.search(text, max(0, match.start() - 2), match.start()):
            kept = _HOLE.sub(lambda piece: piece[1] or " " * len(piece[0]), content[1:-1])
        return content[0] + kept + content[-1:]

    return _STRINGS.sub(blanks, text)


def explain_syntax(text: str, error: Exception, shift: int) -> tuple[str, int, int, str | None]:
    """Return message, start, end and help for the `error` that Python's parser raised on `text`.

    `shift` is added to the parser's columns in the first line to get those of `text`.
    """
    if "\0" in text:
        at = text.index("\0")
        return "an expression cannot hold the character U+0000", at, at + 1, None
    if surrogate := re.search("[\ud800-\udfff]", text):
        return "half of a surrogate pair is no character", *surrogate.span(), None
    if isinstance(error, RecursionError | MemoryError):
        return "the expression is nested too deeply", 0, len(text), "compute it in several steps"
    plain = masked(text)
    start, end = _place(text, error, shift)
    for offset, character in enumerate(plain):
        if character in _FULL_WIDTH:
            return (
                f"`{character}` is not a character that expressions use",
                offset,
                offset + 1,
                (f"write `{_FULL_WIDTH[character]}`"),
            )
    if statement := _STATEMENT.match(plain):
        word = statement[1]
        if word not in ("if", "for") or plain.rstrip().endswith(":") or ":" in plain:
            return (
                f"`{word}` begins a statement, and an expression is one value",
                *statement.span(1),
                ("use steps for what happens one after the other"),
            )
    for pattern, message, help in _ELSEWHERE:
        if match := pattern.search(plain):
            if pattern.pattern.startswith("(?<![<>") and _inside_call(plain, match.start()):
                continue
            return message, *match.span(), help
    if _OPERAND.search(text) and (word := _WORD.search(plain)):
        return f"`{word.group()}` is not an operator here", *word.span(), _WORDS[word.group()]
    said = str(getattr(error, "msg", None) or error)
    said = re.sub(r" \(<unknown>.*\)| \(detected at line \d+\)", "", said)
    if said.startswith("invalid syntax"):
        said = "this cannot be read as an expression"
    elif "Exceeds the limit" in said:
        said = "this number has too many digits"
    elif said.startswith("f-string: "):
        said = "in the f-string: " + said[10:]
    return said[:200], start, end, None


def _inside_call(plain: str, offset: int) -> bool:
    before = plain[:offset]
    return before.count("(") > before.count(")")


def _place(text: str, error: Exception, shift: int) -> tuple[int, int]:
    line = getattr(error, "lineno", None) or 1
    column = getattr(error, "offset", None)
    if not isinstance(column, int) or not isinstance(line, int):
        return 0, len(text)
    start = 0
    for _ in range(line - 1):
        found = text.find("\n", start)
        if found < 0:
            break
        start = found + 1
    offset = start + column - 1 + (shift if line == 1 else 0)
    offset = max(0, min(offset, max(0, len(text) - 1)))
    match = re.compile(r"\w+").match(text, offset)
    return offset, match.end() if match else min(offset + 1, len(text))
