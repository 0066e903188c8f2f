"""The centre: decide, perform, append. A run and a resume are this one loop, on an empty log or on one that is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from planrun.core.actions import (
    Action,
    Answer,
    AskHuman,
    AskModel,
    Begin,
    Brief,
    Compact,
    End,
    EndCall,
    RunCalls,
    RunCommand,
    Say,
    Settle,
    Skip,
    Summarise,
    Verify,
)
from planrun.core.decide import decide, ending
from planrun.core.events import Approval, CallEnded, Ended, Event, Said, StepChanged
from planrun.core.fold import apply
from planrun.core.messages import Message
from planrun.core.records import Record
from planrun.core.state import State
from planrun.errors import Interrupted, Outcome, PlanrunError, StorageError, known
from planrun.runner import advising, asking, calling, checking, compacting, hooking
from planrun.runner.background import Background
from planrun.runner.world import World

Observer = Callable[[Record, State], None]


class Runner:
    """Drives one session to its end. `state` is always the fold of what the log holds."""

    def __init__(self, world: World, state: State, observers: tuple[Observer, ...] = ()) -> None:
        self.world = world
        self.state = state
        self.observers = observers
        self._background = Background(world)

    def run(self) -> State:
        """Go on until there is nothing to do; the last record says why. Storage errors are raised: nothing more can be recorded."""
        try:
            for hooked in hooking.begun(self.world, self.state):
                self.append(hooked)
            self._go_on()
        except Interrupted as stop:
            self.world.signals.heard()
            self._record(ending(self.state, End(Outcome.INTERRUPTED, str(stop), exit_code=stop.exit_code)))
            self._go_on()
        self.world.log.sync()
        return self.state

    def _go_on(self) -> None:
        while (action := decide(self.state)) is not None:
            self.world.signals.check()
            before = self.state.seq
            for event in self._guarded(self.perform(action)):
                self._record(event)
            if self.state.seq == before:
                raise RuntimeError(f"{action} changed nothing")
            for advice in advising.advice(self.world, self.state):
                self.append(advice)

    def _record(self, event: Event) -> None:
        """Append what an action yielded, with the hooks that belong to it around it."""
        if not self.world.hooks:
            self.append(event)
            return
        for hooked in hooking.before(self.world, self.state, event):
            self.append(hooked)
        self.append(event)
        for hooked in hooking.after(self.world, self.state, event):
            self.append(hooked)

    def append(self, event: Event) -> None:
        """Write, fold, publish. What has effects outside calls `log.sync` first, so nothing is announced before it is durable."""
        record = self.world.log.append(event)
        if isinstance(event, Ended):  # how it ended is told by those who see the record
            self.world.log.sync()
        self.state = apply(self.state, record, self.world.read_plan)
        for observe in self.observers:
            observe(record, self.state)

    def perform(self, action: Action) -> Iterator[Event]:  # noqa: C901 - a case for each action
        """The events that the action comes to. Each may be the last one that reaches the disk, so each leaves a resting state."""
        state, world = self.state, self.world
        match action:
            case AskModel():
                return self._ask(action)
            case RunCalls():
                return calling.run(world, state, action)
            case RunCommand():
                return checking.run_command(world, state, action)
            case Verify():
                return checking.verify(world, state, action)
            case Brief():
                return checking.brief(world, state, action)
            case Begin():
                return checking.begin(world, state, action)
            case Settle():
                return checking.settle(world, state, action)
            case Compact() | Summarise():
                return compacting.compact(world, state, action)
            case AskHuman():
                return ask_human(world, state, action)
            case Answer():
                return calling.answer(world, state, action)
            case Say(step, role, text):
                attempt = state.step_state(step).attempt
                said = Said.of(Message(role, text), "runner", None if role == "system" else step, attempt)
                return iter([said])
            case EndCall(call_id, name, status):
                return iter([CallEnded(call_id, name, status, None)])
            case Skip(step, note):
                return iter([StepChanged(step, "skipped", state.step_state(step).attempt, note)])
            case End():
                return iter([ending(state, action)])
            case _:
                assert_never(action)

    def _ask(self, action: AskModel) -> Iterator[Event]:
        """The request, unless a summary beside the run comes first: then it is decided anew."""
        before = self.state.seq
        yield from self._background.due(self.state, action.step)
        if self.state.seq == before:
            yield from asking.ask(self.world, self.state, action)

    def _guarded(self, events: Iterator[Event]) -> Iterator[Event]:
        """A model that cannot be reached ends the run, resumable, and so does a machine that cannot say how things are: what was
        recorded until then stays, and nothing is made of it."""
        try:
            yield from events
        except (Interrupted, StorageError):
            raise
        except (PlanrunError, OSError) as error:
            why = known(error)
            yield ending(self.state, End(why.outcome, str(why), exit_code=why.exit_code))


def ask_human(world: World, state: State, action: AskHuman) -> Iterator[Event]:
    """Record the question, then the answer of whoever can give one; nobody ends the run, resumable."""
    if not action.asked:
        yield Approval("asked", action.subject, action.step, action.digest, action.text)
        return
    world.log.sync()
    with world.signals.interruptible():
        answer = world.human.ask(action.text)
    if answer is None:
        reason = f"{action.text} Nobody can answer here; resume with --approve all, or on a terminal with --approve ask."
        yield ending(state, End(Outcome.NEEDS_HUMAN, reason))
        return
    yield Approval("approved" if answer.yes else "denied", action.subject, action.step, action.digest, action.text, answer.by)
