"""Which of many tools to send with a request.

words.py       the words of a text: English without plurals, Chinese in pairs
described.py   what of a tool is compared
bm25.py        by words that are shared
meaning.py     by likeness of meaning, with an embedding model that somebody else provides
companions.py  tools that others need
router.py      puts these together, within a number of tools and of tokens
selection.py   what was chosen, and why
offer.py       what one request's model is shown; grows when a plan needs more
"""

from toolplan.route.meaning import Embed
from toolplan.route.offer import Offer
from toolplan.route.router import TOP, Router
from toolplan.route.selection import Match, Selection

__all__ = ["TOP", "Embed", "Match", "Offer", "Router", "Selection"]
