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
from planrun.runner.summarising import Task
from planrun.runner.world import World


@dataclass(slots=True)
class Job:
    """One request under way. Only the thread writes `answer` and `seconds`, and only before `over` is set."""

    action: Summarise
    task: Task
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
        self._job: Job | None = None

    def due(self, state: State, step_id: str) -> Iterator[Event]:
        """What is due before the next request of this step: the end of a summary, the beginning of one, mostly nothing."""
        if self._job is None:
            yield from self._begin(state, step_id)
        elif self._job.done():
            job, self._job = self._job, None
            yield from self._end(state, job)

    def _begin(self, state: State, step_id: str) -> Iterator[Event]:
        action = pressure.beside(state, state.need_plan().step(step_id))
        if action is None:
            return
        denial = yield from hooking.may_compact(self._world, state, action)
        if denial is not None:
            yield Noted("background_failed", f"a hook put off the compaction ({action.trigger}): {denial}", step_id)
            return
        task = summarising.task_of(state, action)
        request, sent = summarising.request_of(state, action, task, summaries.levels(task.level)[0])
        job = Job(action, task, self._world.models(summarising.summariser(state, step_id)), request, sent)
        yield sent
        self._world.log.sync()
        job.start()
        self._job = job

    def _end(self, state: State, job: Job) -> Iterator[Event]:
        answer, level = job.answer, summaries.levels(job.task.level)[0]
        if answer is None or isinstance(answer, ReplayMismatch) or not isinstance(answer, Reply | PlanrunError):
            raise answer or RuntimeError("a summary ended without an answer")
        why = summarising.refusal_of(answer, job.task, level)
        if why is not None:
            yield Noted("background_failed", summarising.described(job.action, level, job.task, why), job.action.step)
        elif not _stands(state, job.task):
            late = "what it covers is not in the context any more"
            yield Noted("background_late", summarising.described(job.action, level, job.task, late), job.action.step)
        else:
            yield from summarising.committed(state, job.action, job.task, summarising.text_of(answer))
        yield from summarising.responded(self._world, job.sent, job.sent.model or state.model, answer, job.seconds)


def _stands(state: State, task: Task) -> bool:
    """Whether the view still has exactly what the summary covers, between the same records."""
    first, last = task.span
    now = [e for s in state.view for e in s.entries if first <= e.span[0] and e.span[1] <= last and e.message.role != "system"]
    return tuple(now) == task.entries
