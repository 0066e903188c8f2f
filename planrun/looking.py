"""Looking at a session without touching it: what the model saw at a request, and what it would see next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planrun import building, resuming
from planrun.core import context
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
from planrun.core.decide import decide
from planrun.core.events import Event, Requested
from planrun.core.plan import Step
from planrun.core.records import Record
from planrun.core.room import offers
from planrun.core.seen import Seen, Sent, step_of
from planrun.core.state import State
from planrun.core.using import Observer, Use
from planrun.errors import UsageError
from planrun.front import Ask, Front
from planrun.planfile import read_plan
from planrun.runner import asking
from planrun.runner.loop import Runner
from planrun.runner.signals import Signals
from planrun.session.following import follow, latest
from planrun.session.lock import writer
from planrun.settings import Flags, Settings


def sent(path: Path, *, turn: int | None = None, step: str | None = None) -> Seen:
    """The context of the request number `turn`, those for summaries not counted, or of the last one of `step`: folded anew from
    the log up to that record. Raises UsageError where there is no such request."""
    state = before = State()
    count, found = 0, None
    for record, state in follow(path, read_plan):
        event = record.event
        if isinstance(event, Requested) and event.purpose == "step":
            count += 1
            if turn == count or (turn is None and event.step == step):
                found = before, record.seq, event, count
        before = state
    if found is None:
        raise UsageError(_no_request(state, path.stem, turn, step, count))
    return _seen_at(*found)


def _no_request(state: State, session: str, turn: int | None, step: str | None, count: int) -> str:
    if turn is not None:
        return f"session {session} has {count} requests to the model so far; there is no number {turn}"
    if state.plan is not None and step is not None:
        resuming.check_steps(state.plan, (step,))
    return f"step {step} of session {session} has sent no request to a model"


def _seen_at(state: State, seq: int, request: Requested, turn: int) -> Seen:
    step = state.need_plan().step(request.step or "")
    then, now = (state.header.tools if state.header else {}), building.tool_sizes()
    same = {n: s for n, s in then.items() if offers(step, n)} == {n: s for n, s in now.items() if offers(step, n)}
    return _seen(state, step, seq, Sent(turn, seq, request.digest, same))


def _seen(state: State, step: Step, logged: int, request: Sent | None = None, before_it: str = "") -> Seen:
    _, tools = asking.described({t.name: t for t in building.all_tools()}, step)
    return Seen(state, step, context.digest(state.view, tools), logged, request, before_it)


def use_of(path: Path) -> Use:
    """How the session has used its context so far."""
    state, observer = State(), Observer()
    for record, state in follow(path, read_plan):
        observer(record, state)
    return observer.use(state)


def upcoming(path: Path, flags: Flags, environ: Mapping[str, str]) -> Seen:
    """What the model would see next: the run goes on in memory, as a plain `planrun resume` would, as far as it gets without
    acting on anything. Nothing is written and no hook is asked."""
    state = latest(path, read_plan)
    _, plan = resuming.header_of(state, path)
    settings = resuming.settings_of(state, path, flags, environ)
    rehearsal = _rehearsal(path, state, settings, environ)
    if writer(path) is None:
        rehearsal.append(resuming.resumed(state, settings, Ask()))
    while isinstance(action := decide(rehearsal.state), _WITHOUT_EFFECT):
        for event in rehearsal.perform(action):
            rehearsal.append(event)
    if isinstance(action, AskModel):
        return _seen(rehearsal.state, plan.step(action.step), state.seq)
    return _seen(rehearsal.state, step_of(rehearsal.state), state.seq, before_it=_words(action))


_WITHOUT_EFFECT = (Answer, Begin, Brief, Compact, EndCall, Say, Settle, Skip)


class _Memory:
    """A journal that keeps nothing."""

    def __init__(self, state: State) -> None:
        self._seq, self._now = state.seq, state.timestamp

    def append(self, event: Event) -> Record:
        self._seq += 1
        return Record(self._seq, self._now, event)

    def sync(self) -> None:
        pass


def _rehearsal(path: Path, state: State, settings: Settings, environ: Mapping[str, str]) -> Runner:
    header, _ = resuming.header_of(state, path)
    world = building.world(
        _Memory(state),
        path,
        header,
        settings,
        environ,
        models=building.Models(settings, header, state.replies),
        signals=Signals(lambda left: False),
        front=Front(),
    )
    return Runner(replace(world, hooks={}), state)


def _words(action: Action | None) -> str:
    """What has to happen before there is another request."""
    match action:
        case RunCommand(step):
            return f"the command of step {step} runs first"
        case Verify(step):
            return f"a check of step {step} runs first"
        case RunCalls(step, calls):
            return f"step {step} has tool calls to run first: {', '.join(c.name for c in calls)}"
        case AskHuman(text=text):
            return f"an approval comes first: {text}"
        case Summarise(first=first, last=last):
            return f"a summary of records {first} to {last} is made first"
        case End(outcome=outcome, reason=reason):
            return f"there is no next request: the run ends {outcome}: {reason}"
    return "there is no next request: the session is over"
