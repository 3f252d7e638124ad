"""Located messages about a plan, and the one catalogue of their wording.

`source.py` knows where things are, `diagnostic.py` what a message consists of, `render.py` how it is drawn.
Each code is one function in `reading.py`, `formats.py` and `program*.py` (1xx), `names.py` (2xx), `calls.py` (3xx),
`effects.py` (4xx) or `limits.py` (5xx), beside the long text that `toolplan explain` prints. No message text lives
anywhere else.
"""

from toolplan.diagnostics.diagnostic import (
    Diagnostic,
    Explanation,
    Mark,
    Severity,
    catalogue,
    explained,
    load_catalogue,
    nearest,
)
from toolplan.diagnostics.render import render, render_all
from toolplan.diagnostics.source import NOWHERE, Place, Source

__all__ = [
    "NOWHERE",
    "Diagnostic",
    "Explanation",
    "Mark",
    "Place",
    "Severity",
    "Source",
    "catalogue",
    "explained",
    "load_catalogue",
    "nearest",
    "render",
    "render_all",
]
