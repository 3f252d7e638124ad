"""Tool calls as text: the formats in which models write them, read while they arrive, and written.

    scanner = CallScanner(format="auto", tools=tools)
    for chunk in stream:
        for part in scanner.feed(chunk): ...
    for part in scanner.close(finish_reason): ...

`cursor.py` waits for text, `scan.py` is what all readers share, `scanner.py` the loop and the list of formats; each
other file is one format. `messages.py` reads the objects of the hosted APIs.
"""

from toolplan.parse.formats.format import Format
from toolplan.parse.formats.messages import DeltaScanner, read_message
from toolplan.parse.formats.native import write_messages
from toolplan.parse.formats.parts import BrokenCall, CallPart, Part, TextPart, ThinkingPart, settled
from toolplan.parse.formats.scanner import FORMATS, CallScanner, read_calls
from toolplan.parse.formats.writing import write_calls, write_results

__all__ = [
    "FORMATS",
    "BrokenCall",
    "CallPart",
    "CallScanner",
    "DeltaScanner",
    "Format",
    "Part",
    "TextPart",
    "ThinkingPart",
    "read_calls",
    "read_message",
    "settled",
    "write_calls",
    "write_messages",
    "write_results",
]
