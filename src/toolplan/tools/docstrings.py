"""A docstring, read: what the tool does, what each parameter means, what comes back.

Google, NumPy and Sphinx styles are read by griffe. Before that, Chinese and careless spellings of the same styles are
brought into the form it knows: headings such as `参数` and `返回`, full-width colons and brackets, `@param`, bullets
before parameter names, and a result described on the heading's own line.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from toolplan.patterns import late_pattern

__all__ = ["Documentation", "read_docstring"]

_HEADINGS = {
    "Args": ("args", "arguments", "parameters", "params", "参数", "参数说明", "参数列表", "输入参数", "入参", "形参"),
    "Returns": ("returns", "return", "返回", "返回值", "返回结果", "返回内容", "返回说明", "输出", "出参", "结果"),
    "Yields": ("yields", "产出", "逐个返回"),
    "Raises": ("raises", "异常", "抛出", "抛出异常", "引发", "可能的异常", "错误"),
    "Examples": ("example", "examples", "示例", "例子", "例", "用法", "用法示例", "使用示例"),
    "Note": ("note", "notes", "注意", "注意事项", "备注", "提示"),
}
_USUAL = {spelling: heading for heading, spellings in _HEADINGS.items() for spelling in spellings}
_HEADING = late_pattern(r"(?P<indent>\s*)(?P<word>[A-Za-z]+|[\u4e00-\u9fff]+)\s*(?P<colon>[:：]?)\s*(?P<rest>.*)\Z")
_UNDERLINE = late_pattern(r"\s*-{3,}\s*\Z")
_FIELD = late_pattern(r"\s*[:@](param|parameter|arg|argument|type|returns?|rtype|raises?)\b([^:：]*)[:：]\s*(.*)\Z")
_ENTRY = late_pattern(
    r"\s*(?:[-•]\s*)?[*`]*(?P<name>[^\W\d]\w*)[*`]*\s*(?:[(（](?P<type>.+?)[)）])?\s*[:：]\s*(?P<text>.*)\Z"
)
_SPHINX = late_pattern(r"^[ \t]*:(param|type|returns?|rtype|raises?)\b[^:\n]*:", re.MULTILINE)
_NUMPY = late_pattern(
    r"^[ \t]*(Parameters|Other Parameters|Returns|Yields|Raises|Notes?|Examples)\n[ \t]*-{3,}", re.MULTILINE
)
_GOOGLE = late_pattern(
    r"^[ \t]*(Args|(Keyword|Other) (Args|Arguments|Parameters)|Returns|Yields|Raises|Examples|Note|Warnings?):[ \t]*\n",
    re.MULTILINE,
)
_BUILTIN = late_pattern(r"(str|int|float|bool|dict|list|tuple|set|bytes|None|Any)\b.*|\w+\[.*\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Documentation:
    """What a docstring says; empty where it says nothing. `returns` comes from its section on the result."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    returns: str = ""


def read_docstring(text: str, names: Collection[str]) -> Documentation:
    """Return what `text` says about a callable whose parameters have these `names`.

    Never fails: text in no known style is a description. Examples and raised errors are left out; notes and warnings
    belong to the description.
    """
    if not text.strip():
        return Documentation()
    import griffe  # 50 ms to import, and only wanted when somebody asks for texts

    clean = _usual_spelling(text.strip(), names)
    docstring = griffe.Docstring(f"\n{clean}")  # on a first line, its dedenting would miss what belongs to a heading
    google = False
    if _SPHINX.search(clean):
        sections = griffe.parse_sphinx(docstring, warnings=False)
    elif _NUMPY.search(clean):
        sections = griffe.parse_numpy(docstring, warnings=False)
    elif _GOOGLE.search(clean):
        google = True
        sections = griffe.parse_google(
            docstring, warnings=False, returns_multiple_items=False, returns_named_value=False
        )
    else:
        return Documentation(clean)
    kinds = griffe.DocstringSectionKind
    described: list[str] = []
    parameters: dict[str, str] = {}
    returns = ""
    for section in sections:
        value: Any = section.value
        if section.kind is kinds.text:
            described.append(str(value).strip())
        elif section.kind is kinds.admonition and value.kind not in ("example", "examples"):
            described.append(f"{(section.title or value.kind).rstrip(':')}: {str(value.description).strip()}")
        elif section.kind in (kinds.parameters, kinds.other_parameters):
            parameters |= {str(p.name).lstrip("*"): str(p.description or "").strip() for p in value}
        elif section.kind in (kinds.returns, kinds.yields):
            returns = "\n".join(filter(None, (_result_text(item, keep_annotation=google) for item in value)))
    return Documentation("\n\n".join(filter(None, described)), parameters, returns)


def _result_text(item: Any, keep_annotation: bool) -> str:
    """Return the description of a result; what the reader took for its type stays when it may be prose."""
    text = str(item.description or "").strip()
    annotation = str(item.annotation or "").strip()
    if not keep_annotation or not annotation or _BUILTIN.fullmatch(annotation):
        return text
    return f"{annotation}: {text}" if text else annotation


def _usual_spelling(text: str, names: Collection[str]) -> str:
    """Return the docstring with Chinese and careless spellings of a style in the form that griffe reads."""
    lines = text.splitlines()
    out: list[str] = []
    section, section_indent, entry_indent = "", 0, -1
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        indent = len(line) - len(line.lstrip())
        if match := _FIELD.match(line):
            out.append(f":{match[1]}{match[2].rstrip()}: {match[3]}")
            continue
        heading = _heading(line, following)
        if heading and (not section or indent <= section_indent):
            usual, written = heading
            section, section_indent, entry_indent = usual if written[-1].endswith(":") else "", indent, -1
            out += written if not out or not out[-1].strip() else ["", *written]
            continue
        if section == "Returns" and indent <= section_indent and line.strip() and out[-1].endswith("Returns:"):
            out.append(" " * (section_indent + 4) + line.strip())
            continue
        entry = _ENTRY.match(line) if section == "Args" else None
        if section and line.strip() and indent <= section_indent and not (entry and entry["name"] in names):
            section, entry = "", None
        if entry and (entry_indent < 0 or indent <= entry_indent):
            entry_indent = indent
            pad = " " * (indent if indent > section_indent else section_indent + 4)
            kind = f" ({entry['type'].strip()})" if entry["type"] else ""
            out.append(f"{pad}{entry['name']}{kind}: {entry['text']}")
        else:
            out.append(line)
    return "\n".join(out)


def _heading(line: str, following: str) -> tuple[str, list[str]] | None:
    """Return the usual heading that the line is another spelling of, and the lines to write for it."""
    match = _HEADING.match(line)
    usual = _USUAL.get(match["word"].lower()) if match else None
    if not match or not usual:
        return None
    indent, rest = match["indent"], match["rest"].strip()
    if _UNDERLINE.match(following) and not rest:
        return usual, [indent + ("Parameters" if usual == "Args" else usual)]
    if match["colon"] and not rest:
        return usual, [f"{indent}{usual}:"]
    if match["colon"] and usual == "Returns" and not match["word"].islower():
        return "", [f"{indent}{usual}:", f"{indent}    {rest}"]
    return None
