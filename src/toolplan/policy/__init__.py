"""Which calls run, which ask a person, which never run.

rules.py     a policy: ordered rules over one call, and what they say about it;  arguments.py  what they ask of one;
likeness.py  what a value may stand for
facts.py     the call as rules see it;  obeyed.py  whether an argument is a command
files.py     policies as TOML, and those that come along;  reasons.py  their words, English and Chinese
said.py      whether the user said a value;  tokens.py  where a name ends;  quantities.py, dates.py  numbers, times
sources.py   where a value comes from;  trace.py  the same for every call of a plan
planned.py   a policy looks at a whole plan
unmatched.py what in a policy fits no tool, or leaves something open
"""

from toolplan.policy.files import SHIPPED, policy_from_toml, shipped_policy
from toolplan.policy.planned import PlannedCall, Review, review
from toolplan.policy.rules import ArgumentTest, Policy, Rule, Situation, Verdict
from toolplan.policy.sources import Sources
from toolplan.policy.trace import CallSources

__all__ = [
    "SHIPPED",
    "ArgumentTest",
    "CallSources",
    "PlannedCall",
    "Policy",
    "Review",
    "Rule",
    "Situation",
    "Sources",
    "Verdict",
    "policy_from_toml",
    "review",
    "shipped_policy",
]
