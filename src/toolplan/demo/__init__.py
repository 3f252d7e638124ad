"""The demos: recorded model replies, everything else real.

Each scenario has a request, tools that really do something (a calendar in SQLite, mails as files in an outbox, files
on disk, weather from a table that ships) and the recorded reply of a language model, one file a language in `replies/`.
"""

from toolplan.demo.scenarios import SCENARIOS, Scenario
from toolplan.demo.show import run_demos

__all__ = ["SCENARIOS", "Scenario", "run_demos"]
