"""The command line: read input, call the library, print.

`app.py` has the commands, `live.py` what is seen meanwhile, `inputs.py` what is read.
"""

from toolplan.cli.app import main

__all__ = ["main"]
