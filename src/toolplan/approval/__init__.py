"""What a person is shown before effects happen, and what a person may answer.

    card.py       everything that a plan may do, on one card, bound to a hash;  text.py   the card in words
    decision.py   the answer: allow (once, for the run, for a pattern, with edits), deny with a reason, or nothing yet
    grants.py     what has been allowed so far, and whether a call is covered by it
    refusals.py   what has been refused so far: the very same call asks again
    edits.py      a plan with the arguments that a person has changed

Pure: who asks and waits is `run/approvals.py`.
"""

from toolplan.approval.card import Card, CardCall
from toolplan.approval.decision import Decision, decisions_of
from toolplan.approval.edits import Changes, with_arguments
from toolplan.approval.grants import Grant, Grants
from toolplan.approval.refusals import Refusals, call_alone

__all__ = [
    "Card",
    "CardCall",
    "Changes",
    "Decision",
    "Grant",
    "Grants",
    "Refusals",
    "call_alone",
    "decisions_of",
    "with_arguments",
]
