"""Several models as one: the next is asked when one cannot answer.

What moves on to the next model is trouble that another provider does not have: no connection, too many requests after
all waiting, the provider's own errors, no quota, no answer in time, a reply that broke off, was unreadable or empty.
What does not is what somebody should hear of: a refused key, a wrong name or address, a request that is refused, and a
model that declines - another model is no way around a "no". And once text of a reply has been passed on to somebody
who cannot start over, it cannot be taken back, so that reply's failure is final.

Each model has had its own retries before. A model that failed is not asked first again for `rest_seconds`; while all
rest, the order is as given.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Collection, Sequence

from toolplan.errors import ModelError, UsageError
from toolplan.models.base import (
    Listener,
    Model,
    ModelRequest,
    OnText,
    PlanForm,
    Reason,
    Reply,
    ToolCallPart,
    Usage,
    close_model,
    plan_form,
    starts_over,
)

__all__ = ["MOVES_ON", "FallbackModel"]

_log = logging.getLogger(__name__)

MOVES_ON: frozenset[Reason] = frozenset(
    ("unreachable", "busy", "failed", "timeout", "broke_off", "unreadable", "empty", "no_quota")
)
"""The reasons for which the next model is asked."""


class FallbackModel:
    """The first of `models` that can answer. See the module for what moves on, and `on` to say otherwise.

    The reply's `model` says who answered, its `notes` what became of those before. Raises the last model's `ModelError`
    when none could answer, with the others' words in it.
    """

    def __init__(
        self, models: Sequence[Model], *, on: Collection[Reason] = MOVES_ON, rest_seconds: float = 30.0
    ) -> None:
        if not models:
            raise UsageError("a list of models needs at least one model")
        self.models = tuple(models)
        self._on = frozenset(on)
        self._rest_seconds = rest_seconds
        self._rests_until = [0.0] * len(self.models)

    @property
    def name(self) -> str:
        """The models' names, in the order in which they are asked."""
        return ",".join(model.name for model in self.models)

    @property
    def plan_form(self) -> PlanForm:
        """The plan form that all of the models can write."""
        return "small" if any(plan_form(model) == "small" for model in self.models) else "full"

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> Reply:
        """Return the reply of the first model that gives one. See `Model.ask`."""
        failures: list[ModelError] = []
        heard = 0
        listener = on_text if isinstance(on_text, Listener) else None
        can_start_over = listener is not None

        def listen(text: str) -> None:
            nonlocal heard
            heard += len(text)
            assert on_text is not None
            on_text(text)

        def start_over() -> None:
            nonlocal heard
            heard = 0
            starts_over(on_text)

        def called(call: ToolCallPart) -> None:
            nonlocal heard
            heard += 1
            assert listener is not None
            listener.called(call)

        listening = None if on_text is None else Listener(listen, start_over, called) if can_start_over else listen
        for index in self._order():
            model = self.models[index]
            try:
                reply = await model.ask(request, listening)
            except ModelError as error:
                failures.append(error)
                self._rests_until[index] = time.monotonic() + self._rest_seconds
                is_last = len(failures) == len(self.models)
                if error.reason not in self._on or is_last or (heard and not can_start_over):
                    break
                if heard:
                    start_over()
                _log.info("asking the next model: %s", error.message)
                continue
            self._rests_until[index] = 0.0
            if not failures:
                return reply
            notes = (*(error.message for error in failures), f"`{model.name}` answered instead", *reply.notes)
            return dataclasses.replace(reply, notes=notes, usage=reply.usage + _lost(failures))
        # Outside the handlers, so that no error carries another one as its context.
        raise _together(failures)

    async def close(self) -> None:
        """Close the connections of all models that have any."""
        for model in self.models:
            await close_model(model)

    def _order(self) -> list[int]:
        now = time.monotonic()
        rested = [index for index, until in enumerate(self._rests_until) if until <= now]
        return [*rested, *(index for index, until in enumerate(self._rests_until) if until > now)]


def _lost(failures: Sequence[ModelError]) -> Usage:
    """Return what the replies that were lost have cost."""
    return sum((error.usage or Usage(requests=error.inferences) for error in failures), Usage())


def _together(failures: Sequence[ModelError]) -> ModelError:
    last = failures[-1]
    if len(failures) == 1:
        return last
    return ModelError(
        "; then ".join(error.message for error in failures),
        provider=last.provider,
        model=last.model,
        status=last.status,
        reason=last.reason,
        inferences=sum(error.inferences for error in failures),
        usage=_lost(failures),
    )
