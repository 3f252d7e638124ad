"""Small, real tools that come along, each off until asked for.

Each toolkit is a function that returns a list of tools: `files(root)`, `clock()`, `calendar(path)`, `mail(outbox=...)`,
`weather()`. They need nothing beyond the standard library and serve as examples, too.
"""

from toolplan.toolkits.calendar import calendar
from toolplan.toolkits.clock import clock
from toolplan.toolkits.files import files
from toolplan.toolkits.mail import SmtpServer, mail
from toolplan.toolkits.weather import weather

__all__ = ["SmtpServer", "calendar", "clock", "files", "mail", "weather"]
