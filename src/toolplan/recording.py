"""What is written down of one request, from the first plan that may run to its end. Without a journal, nothing.

A request that no plan came of leaves nothing behind: the run begins with its first plan, a loop with the first calls
that its model asks for. What went before that is kept until then.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import inspect
import json
import uuid
from collections.abc import Callable, Collection, Sequence
from typing import cast

from toolplan import show
from toolplan.approval import Card, Decision, Grant, Grants, call_alone, decisions_of
from toolplan.check import CheckedPlan
from toolplan.errors import JournalError
from toolplan.journal import Decision as Decided
from toolplan.journal import Entry, Journal, RunBegun, RunEnded, RunResumed, RunWriter, SecretLeftOut, Story, tell
from toolplan.journal.secrets import Secrets
from toolplan.policy import PlannedCall, Policy
from toolplan.run import RunResult
from toolplan.run.approvals import Approver, Held
from toolplan.run.recovery import plan_begun
from toolplan.schedule import Setup
from toolplan.tools import ToolSet
from toolplan.tools.secrets import without_secrets
from toolplan.values import Json

__all__ = [
    "Record",
    "asked_of",
    "bound_to",
    "edits_of",
    "grant",
    "held_before",
    "policies_of",
    "restore",
    "restore_refusals",
    "said_before",
    "version",
    "why_not_later",
    "word_of",
]


def version() -> str:
    """Return the version of toolplan that is at work."""
    from importlib import metadata  # takes as long as all the rest

    try:
        return metadata.version("toolplan")
    except metadata.PackageNotFoundError:
        return ""


class Record:
    """The journal of one request: which run it is, and who writes it down."""

    def __init__(self, journal: Journal | None, tools: ToolSet) -> None:
        self.journal = journal
        self.run_id = uuid.uuid4().hex if journal is not None else ""
        self.writer: RunWriter | None = None
        self._tools = tools
        self._before: list[Entry] = []
        self._heard: dict[tuple[str, str], Decision] = {}
        self._left_out: set[str] = set()

    @property
    def has_failed(self) -> bool:
        """Whether nothing more can be written down, so that nothing more may be done."""
        return self.failure is not None

    @property
    def failure(self) -> JournalError | None:
        """Why nothing more can be written down, if so."""
        return self.writer.failed if self.writer is not None else None

    @property
    def left_out(self) -> Collection[str]:
        """The kinds of entries that hold less than was there, because of secrets; see `SecretLeftOut`."""
        return self._left_out | self.writer.left_out if self.writer is not None else self._left_out

    def begin(self, begun: Callable[[str], RunBegun]) -> RunWriter | None:
        """Return the writer of the run; the first time, begin it. `begun` makes its first entry, given its id."""
        if self.writer is None and self.journal is not None:
            self.writer = self.journal.begin(begun(self.run_id))
            self.writer.secrets = Secrets(self._tools)
            for entry in self._before:
                self.writer.add(entry)
            self._before.clear()
        return self.writer

    def note(self, entry: Entry) -> None:
        """Write down what a request holds besides its plans; before the run has begun, keep it until it does."""
        if self.writer is not None:
            self.writer.add(entry)
        elif self.journal is not None:
            self._before.append(entry)

    def go_on(self, writer: RunWriter, story: Story) -> None:
        """Go on with a run that has been begun."""
        self.writer, self.run_id = writer, writer.run_id
        writer.secrets = Secrets(self._tools)
        self._heard = {(said.step, said.bound): word_of(said) for said in story.decisions}
        self._left_out = set(story.left_out)

    def resumed(self) -> None:
        """Note that another process goes on with the run."""
        if self.writer is not None and self.journal is not None:
            self.writer.add(RunResumed(str(self.journal.holder), _now()))

    def asks(self, checked: CheckedPlan) -> None:
        """Note a plan that a person is about to be asked about, so that it is there when the answer comes."""
        if self.writer is not None:
            if self.writer.secrets:
                self.writer.secrets.see_plan(checked.plan)
            self.writer.add(plan_begun(checked, Setup()))

    def decided(self, card: Card, call: PlannedCall, decision: Decision) -> None:
        """Note a person's word."""
        bound = bound_to(card, call)
        if self.writer is None or self._heard.get((call.step, bound)) == decision:
            return
        self._heard[call.step, bound] = decision
        said = Decided(
            decision.answer,
            call.step,
            bound,
            call.tool,
            list(call.verdict.names),
            card.about == "plan",
            decision.scope,
            cast(Json, dict(decision.arguments)) if decision.arguments else None,
            cast(Json, dict(decision.pattern)) if decision.pattern else None,
            decision.each_call,
            decision.reason,
            at=_now(),
            call=call_alone(call, self._tools[call.tool]),
            policy=card.policy_fingerprint,
        )
        self.writer.add(said)

    async def end(self, outcome: str, text: str, error: str | None, questions: Sequence[Json] = ()) -> str | None:
        """Write down how the request ended, and give the run back. Returns why that could not be done, if so."""
        writer = self.writer
        if writer is None or writer.is_closed:
            return None
        lost = writer.failed
        writer.add(RunEnded(outcome, text, error, list(questions), _now()))
        try:
            await writer.aclose()
        except JournalError as failed:
            return str(lost or failed)
        return None

    async def why_not_later(self) -> str | None:
        """Return why nobody could go on with the run if it waited now, so that it had better end; see there."""
        if self.writer is None or self.journal is None or self.has_failed or not self.left_out:
            return None
        await self.writer.durable()
        return why_not_later(tell(await asyncio.to_thread(self.journal.read, self.run_id)))

    def leave(self, outcome: str | None = None) -> None:
        """Give the run back, ended like this, or to be taken up by somebody else."""
        if self.writer is not None and not self.writer.is_closed:
            if outcome is not None:
                self.writer.add(RunEnded(outcome, at=_now()))
            self.writer.close()


def bound_to(card: Card | None, call: PlannedCall) -> str:
    """Return the hash of what a person was shown of a call: the whole plan, or (no card) this call with its values."""
    if card is not None and card.about == "plan":
        return card.hash
    shown: list[Json] = [call.step, call.tool, show.template_json(call.arguments), list[Json](call.verdict.own.names)]
    return hashlib.sha256(json.dumps(shown, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def asked_of(
    card: Card | None, calls: Sequence[PlannedCall], run: RunResult | None, tools: ToolSet, policy: Policy
) -> list[Json]:
    """Return everything that a request waits for, as its journal keeps it: `calls`, then the questions of the run.

    `card` is that of the plan, when the calls wait for a word on the plan as a whole.
    """
    asked = [_approval(call, bound_to(card, call), tools, policy, planned=card is not None) for call in calls]
    if run is None or run.outcome != "waiting":
        return asked
    for command in run.questions:
        asked.append({"kind": "question", "step": command.step, "key": command.key, "question": command.question})
    for effect in run.unsettled:
        unknown: dict[str, Json] = {"kind": "unknown", "step": effect.step, "key": effect.key, "tool": effect.tool}
        if tools[effect.tool].secret_result is not None:
            unknown["is_secret"] = True
        asked.append(unknown)
    return asked


def _approval(call: PlannedCall, bound: str, tools: ToolSet, policy: Policy, *, planned: bool) -> Json:
    return {
        "kind": "approval",
        "step": call.step,
        "tool": call.tool,
        "arguments": show.template_json(without_secrets(call.arguments, tools[call.tool])),
        "reason": call.reason,
        "rules": list[Json](call.verdict.names),
        "planned": planned,
        "bound": bound,
        "call": call_alone(call, tools[call.tool]),
        "policy": policy.fingerprint,
    }


def restore(grants: Grants, story: Story) -> None:
    """Let what a person has allowed in an earlier process hold in this one.

    What was said about a plan that has not begun is said again when it is asked about; see `said_before`.
    """
    earlier = {id(entry) for _, after in story.parts[:-1] for entry in after}
    refused = {said.bound for said in story.decisions if said.planned and said.answer == "deny"}
    for said in story.decisions:  # in order: a later yes takes a no back
        is_replaced = said.scope == "once" and said.bound in refused  # another plan came
        if is_replaced or not (story.has_begun or id(said) in earlier):
            _mind(grants, said, planned=False)
        else:
            grant(grants, said)


def restore_refusals(grants: Grants, story: Story) -> None:
    """Let what a person has refused in an earlier process, and not allowed since, ask again in this one."""
    for said in story.decisions:
        _mind(grants, said, planned=False)


def _mind(grants: Grants, said: Decided, *, planned: bool) -> None:
    """Note whether a call is one that was refused."""
    step = said.step.partition("[")[0]
    if said.call and said.answer == "deny":
        grants.refusals.refuse(step, said.tool, said.call, said.reason)
    elif said.call and not said.each_call and not said.arguments:
        grants.refusals.allow(step, said.call, planned=planned)


def edits_of(story: Story) -> list[str]:
    """Return the arguments that a person has changed on the cards of plans, which count as said by the user."""
    changed = [said.arguments for said in story.decisions if said.planned and isinstance(said.arguments, dict)]
    return [str(value) for arguments in changed for value in arguments.values()]


def grant(grants: Grants, said: Decided) -> None:
    """Let what a person has allowed beyond the call itself hold in this process."""
    _mind(grants, said, planned=said.planned)
    if said.answer == "allow" and (grants.policies is None or said.policy in grants.policies):
        pattern = cast("dict[str, str] | None", said.pattern)
        grants.allow(Grant(said.tool, frozenset(said.rules), said.step, pattern), said, planned=said.planned)


def policies_of(story: Story, policy: Policy) -> frozenset[str]:
    """Return the fingerprints with which an earlier yes holds under this policy.

    Older versions have written none; what was said then holds under the policy that the run was begun with.
    """
    begun = story.begun.policy_fingerprint
    return frozenset((policy.fingerprint, "") if begun in ("", policy.fingerprint) else (policy.fingerprint,))


def said_before(story: Story, policy: Policy, approve: Approver | None) -> Approver:
    """Return the approver that answers with what was said before of exactly this; else it asks.

    A yes was said under the rules of then: under others that only have the same names, it is asked about again.
    """
    policies = policies_of(story, policy)
    words = {
        (said.step, said.bound): said for said in story.decisions if said.answer == "deny" or said.policy in policies
    }

    async def answer(calls: Sequence[PlannedCall], card: Card) -> dict[str, bool | Decision | None]:
        answers: dict[str, bool | Decision | None] = {}
        for call in calls:
            said = words.get((call.step, bound_to(card, call)))
            if said is not None:
                answers[call.step] = word_of(said)
        rest = [call for call in calls if call.step not in answers]
        if rest and approve is not None:
            found = approve(rest, card)
            answers |= decisions_of(await found if inspect.isawaitable(found) else found, rest)
        return answers

    return answer


def word_of(said: Decided) -> Decision:
    """Return a person's word as it was said."""
    arguments = cast("dict[str, Json] | None", said.arguments)
    pattern = cast("dict[str, str] | None", said.pattern)
    return Decision(said.answer, said.scope, said.reason, arguments, pattern, said.each_call)


def held_before(story: Story, tools: ToolSet) -> Held | None:
    """Return what tells what a person has refused or changed of calls, whoever asks about them now; None if nothing.

    What was asked about is answered by `said_before`. But where the policy has become another one, or the tools, a
    call may be on another card by now, or on none; a person's no to it holds all the same, and so do the arguments in
    place of its own. That it was allowed does not: it was allowed under rules that are no more.
    """
    about = story.decisions
    if story.loop is None:  # the steps of another plan have the same names; those of a loop have one each
        about = [entry for _, after in story.parts[-1:] for entry in after if isinstance(entry, Decided)]
    exact = {(said.step, said.bound) for said in about}
    last = {(said.step, said.call): said for said in about if said.call}
    words = {call: said for call, said in last.items() if said.answer == "deny" or said.arguments}
    if not words:
        return None

    def held(card: Card | None, call: PlannedCall) -> Decision | None:
        alone = call.step, call_alone(call, tools[call.tool])
        said = words.get(alone)
        if said is None or said.planned != (card is not None):
            return None
        is_asked = call.verdict.asks and (call.step, bound_to(card, call)) in exact  # and answered like the others
        if said.answer == "deny":
            return word_of(said) if card is None or not is_asked else None
        if is_asked:
            return None
        del words[alone]  # the arguments are changed once; then it is another call
        return Decision.allow(arguments=cast("dict[str, Json]", said.arguments), each_call=True)

    return held


def why_not_later(story: Story) -> str | None:
    """Return why a run cannot go on in another process, for secrets are not written down; None when it can.

    That of its last plan can be given once more.
    """
    is_loop = story.loop is not None
    loop = {
        "reply": "what its model said holds a secret, which was not written down",
        "earlier": "what was said before it holds a secret, which was not written down",
    }
    words = (loop if is_loop else {}) | {
        "result": "a result that holds a secret was not written down, and what follows needs it",
        "change": "a person changed arguments that hold a secret, which was not written down",
    }
    found = [text for what, text in words.items() if what in story.left_out]
    earlier = [entry for _, after in story.parts[:-1] for entry in after] if not is_loop else []
    if any(isinstance(entry, SecretLeftOut) for entry in earlier):
        found.append("an earlier plan of it holds a secret, which was not written down")
    return "; ".join(found) or None


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
