"""Results of tools that the model writes itself. Nobody has run anything: they are invented, or quoted from somewhere.

Behind a call, such a result and everything after it rests on what did not happen: it is taken for thinking, like an
observation in ReAct. Before any call somebody speaks of it. It is text then, and so is whatever looks like a call in it
or behind it.
"""

from __future__ import annotations

from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Opener
from toolplan.parse.formats.scan import Scan

__all__ = ["RESULTS", "RESULT_MARKS"]

_MARKS = (
    *("<tool_response>", "<tool_responses>", "<tool_result>", "<tool_results>", "<tool_output>", "<function_results>"),
    *("<function_response>", "<start_function_response>", "[TOOL_RESULTS]", "<|start_header_id|>ipython"),
    *(
        "<｜tool▁outputs▁begin｜>",
        "<｜tool▁output▁begin｜>",
        "<|tool_response>",
        "<|tool_response|>",
        "<|im_start|>tool",
    ),
    *("<|im_start|>user", "<｜DSML｜function_results>"),
)
RESULT_MARKS = Marks(_MARKS)
"""The marks around results, in any format."""


def _result(scan: Scan, mark: str, start: int) -> Reader[None]:
    if scan.is_spoken_of:
        scan.text(mark)
        return
    hand_on = scan.thinking if scan.calls else scan.text
    hand_on(mark)
    while True:
        hand_on(scan.cursor.take(len(scan.cursor.text)))
        if scan.cursor.closed:
            return
        yield


RESULTS = (Opener(_MARKS, _result, is_call=False),)
"""What every format reads."""
