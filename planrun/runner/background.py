"""A summary of summaries, made beside the run: one at a time, on a thread of its own, never waited for.

Its request and its answer are recorded on the main thread, right before a step's request: no call is unanswered there and no
question open. By then the view may have moved on; a summary that no longer covers exactly what stands there is thrown away. A
recording says itself when an answer had come, so that a replay takes the same turn at the same place."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from planrun.core import pressure, summaries
from planrun.core.actions import Summarise
from planrun.core.events import Event, Noted, Requested
from planrun.core.state import State
from planrun.errors import PlanrunError, ReplayMismatch
from planrun.models.base import Model, ModelRequest, Paced, Reply
from planrun.runner import hooking, summarising
from planrun.runner.summarising import Source
from planrun.runner.world import World


@dataclass(slots=True)
class Pending:
    """One request under way. Only the thread writes `answer` and `seconds`, and only before `over` is set."""

    action: Summarise
    source: Source
    model: Model
    request: ModelRequest
    sent: Requested
    answer: Reply | BaseException | None = None
    seconds: float = 0.0
    over: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """A recording is asked when its answer is due; everything else on a thread that ends with the process."""
        if not isinstance(self.model, Paced):
            threading.Thread(target=self._ask, name="summary", daemon=True).start()

    def done(self) -> bool:
        if isinstance(self.model, Paced) and self.model.due(self.request):
            self._ask()
        return self.over.is_set()

    def _ask(self) -> None:
        began = time.monotonic()
        try:
            self.answer = self.model.complete(self.request)
        except BaseException as error:  # it is raised, or recorded, where the run goes on
            self.answer = error
        self.seconds = time.monotonic() - began
        self.over.set()


class Background:
    def __init__(self, world: World) -> None:
        self._world = world
        self._pending: Pending | None = None

    def due(self, state: State, step_id: str) -> Iterator[Event]:
        """What is due before the next request of this step: the end of a summary, the beginning of one, mostly nothing."""
        if self._pending is None:
            yield from self._begin(state, step_id)
        elif self._pending.done():
            pending, self._pending = self._pending, None
            yield from self._end(state, pending)

    def _begin(self, state: State, step_id: str) -> Iterator[Event]:
        action = pressure.beside(state, state.need_plan().step(step_id))
        if action is None:
            return
        denial = yield from hooking.may_compact(self._world, state, action)
        if denial is not None:
            yield Noted("background_failed", f"a hook put off the compaction ({action.trigger}): {denial}", step_id)
            return
        source = summarising.source_of(state, action)
        request, sent = summarising.request_of(state, action, source, summaries.levels(source.level)[0])
        pending = Pending(action, source, self._world.models(summarising.summariser(state, step_id)), request, sent)
        yield sent
        self._world.log.sync()
        pending.start()
        self._pending = pending

    def _end(self, state: State, pending: Pending) -> Iterator[Event]:
        answer, level = pending.answer, summaries.levels(pending.source.level)[0]
        if answer is None or isinstance(answer, ReplayMismatch) or not isinstance(answer, Reply | PlanrunError):
            raise answer or RuntimeError("a summary ended without an answer")
        why = summarising.refusal_of(answer, pending.source, level)
        if why is not None:
            yield Noted(
                "background_failed", summarising.described(pending.action, level, pending.source, why), pending.action.step
            )
        elif not _stands(state, pending.source):
            late = "what it covers is not in the context any more"
            yield Noted(
                "background_late", summarising.described(pending.action, level, pending.source, late), pending.action.step
            )
        else:
            yield from summarising.committed(state, pending.action, pending.source, summarising.text_of(answer))
        yield from summarising.responded(self._world, pending.sent, pending.sent.model or state.model, answer, pending.seconds)


def _stands(state: State, source: Source) -> bool:
    """Whether the view still has exactly what the summary covers, between the same records."""
    first, last = source.span
    now = [e for s in state.view for e in s.entries if first <= e.span[0] and e.span[1] <= last and e.message.role != "system"]
    return tuple(now) == source.entries
