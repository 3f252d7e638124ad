"""The expression language: a subset of Python expressions over JSON values, and templates made of them.

`read.py` turns text into an `Expression`, `evaluate.py` computes one, `functions/` and `methods.py` hold the
vocabulary, `templates.py` the text with holes, `types.py` and `infer.py` say beforehand what a result will be.
"""

from toolplan.expressions.read import Expression, ExpressionError, expression_from_node, parse_expression
from toolplan.expressions.rendering import render_text
from toolplan.expressions.templates import (
    Fields,
    Hole,
    Items,
    Literal,
    Reference,
    Template,
    Text,
    Unread,
    fill,
    holes,
    names_of,
    parse_operand,
    parse_template,
    rename,
    settle,
    unread,
)

__all__ = [
    "Expression",
    "ExpressionError",
    "Fields",
    "Hole",
    "Items",
    "Literal",
    "Reference",
    "Template",
    "Text",
    "Unread",
    "expression_from_node",
    "fill",
    "holes",
    "names_of",
    "parse_expression",
    "parse_operand",
    "parse_template",
    "rename",
    "render_text",
    "settle",
    "unread",
]
