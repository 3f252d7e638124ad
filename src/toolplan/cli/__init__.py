"""The command line: read input, call the library, print.

`main.py` goes from arguments to an exit code, `app.py` lists the commands, which are in `commands/`, `options.py` has
what they have in common. What they read is in `inputs.py`, whom they ask in `person.py`, what they print in
`outputs.py` and `streams.py`; `running.py` carries a request out, and what is seen meanwhile is in `progress.py`
(lines) and `screen.py` (a terminal).
`words.py` has every text that is said in both languages, `usage.py` what is wrong with a command line.
"""

from toolplan.cli.main import main

__all__ = ["main"]
