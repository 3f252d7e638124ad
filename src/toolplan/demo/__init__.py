"""The demos: recorded model replies, everything else real.

Each scenario has a request, tools that really do something (a calendar in SQLite, mails as files in an outbox, files
on disk, weather from a table that ships) and the recorded reply of a language model, one file a language in `replies/`.
`scenarios.py` lays them out, `play.py` runs one, `show.py` tells a person or a program about it.
"""

from toolplan.demo.play import Demo, play
from toolplan.demo.scenarios import SCENARIOS, Scenario
from toolplan.demo.show import Output, list_demos, run_demos

__all__ = ["SCENARIOS", "Demo", "Output", "Scenario", "list_demos", "play", "run_demos"]
