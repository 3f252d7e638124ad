"""Which language a prompt is written in."""

from __future__ import annotations

from typing import Literal, TypeAlias

from toolplan.errors import UsageError
from toolplan.patterns import late_pattern
from toolplan.prompt.chinese import CHINESE
from toolplan.prompt.english import ENGLISH
from toolplan.prompt.wording import Wording

__all__ = ["Language", "language_of", "wording_for"]

Language: TypeAlias = Literal["auto", "en", "zh"]

_HAN = late_pattern(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA_OR_HANGUL = late_pattern(r"[\u3041-\u30ff\uac00-\ud7af]")
_LETTER = late_pattern(r"[^\W\d_]")
_QUOTED = late_pattern(r"\S+@\S+|https?://\S+|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|\"[^\"]*\"|`[^`]*`")

_MEANINGFUL_SHARE = 0.2
"""A Han character says about as much as four Latin letters, so a fifth of the letters is half of what is said."""


def language_of(text: str) -> Literal["en", "zh"]:
    """Return `zh` for text of which a meaningful share is written in Han characters, else `en`.

    Quoted text, addresses and links are not counted, as they say nothing about the language around them, unless there
    is nothing else. Text with kana or hangul in it is not Chinese.
    """
    spoken = _QUOTED.sub(" ", text)
    if not _LETTER.search(spoken):
        spoken = text
    letters = len(_LETTER.findall(spoken))
    if not letters or _KANA_OR_HANGUL.search(spoken):
        return "en"
    return "zh" if len(_HAN.findall(spoken)) / letters >= _MEANINGFUL_SHARE else "en"


def wording_for(language: Language, text: str) -> Wording:
    """Return the words of `language`; `auto` means the language of `text`. Raises `UsageError` for any other word."""
    chosen = language_of(text) if language == "auto" else language
    if chosen == "en":
        return ENGLISH
    if chosen == "zh":
        return CHINESE
    raise UsageError(f"no prompts in the language {language!r}; write language='en', 'zh' or 'auto'")
