"""The fold's step: what each record does to the state. Nothing else makes a state."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from planrun.core import asides, context, guard, projection, spending
from planrun.core.context import Entry
from planrun.core.events import (
    Approval,
    CallEnded,
    CallStarted,
    Compacted,
    Ended,
    Hooked,
    LimitNeared,
    Noted,
    Requested,
    Responded,
    Said,
    Session,
    StepChanged,
    Stopped,
    Unknown,
)
from planrun.core.evolve import evolve
from planrun.core.plan import Plan, Step
from planrun.core.records import Record
from planrun.core.scope import strategy_of
from planrun.core.state import RECENT, CheckResult, PlanReader, State, StepState, replaced, with_step, worked


def fold(records: Iterable[Record], state: State, read_plan: PlanReader) -> State:
    return reduce(lambda s, r: apply(s, r, read_plan), records, state)


def apply(state: State, record: Record, read_plan: PlanReader) -> State:  # noqa: C901 - a case for each event
    """The state after one more record. `read_plan` turns a session record's plan text into the plan (it must be pure)."""
    state = _reached(state, record)
    match record.event:
        case Session() as event:
            return _session(state, event, read_plan(event))
        case Said() as event:
            return _said(state, event)
        case Requested() as event:
            return spending.requested(state, event)
        case Responded() as event:
            return spending.responded(state, event)
        case CallStarted() as event:
            return _call_started(state, event)
        case CallEnded() as event:
            return _call_ended(state, event)
        case StepChanged() as event:
            return _step_changed(state, event)
        case Compacted() as event:
            return asides.compacted(state, event)
        case Approval() as event:
            return asides.approval(state, event)
        case LimitNeared() as event:
            return asides.limit(state, event)
        case Noted() as event:
            return asides.noted(state, event)
        case Stopped() as event:
            return asides.stopped(state, event)
        case Ended() as event:
            return asides.ended(state, event)
        case Hooked() | Unknown():
            return state


def _reached(state: State, record: Record) -> State:
    """The state at the number and the time of the record. The pause before a resume is no part of the run."""
    passed = 0.0
    if state.header is not None and not (isinstance(record.event, Noted) and record.event.kind == "resumed"):
        passed = max(0.0, record.timestamp - state.timestamp)
    steps = state.steps
    if passed and (at := state.current) is not None:
        now = steps[at]
        now = evolve(now, seconds=now.seconds + passed, attempt_seconds=now.attempt_seconds + passed)
        steps = replaced(steps, at, now)
    timestamp = max(state.timestamp, record.timestamp)
    return evolve(state, seq=record.seq, timestamp=timestamp, elapsed=state.elapsed + passed, steps=steps)


def _session(state: State, event: Session, plan: Plan) -> State:
    """The header; again where a resume adopts a changed plan: progress goes with the ids, what belongs to steps that are gone goes."""
    old = state.plan
    known = {s.id: now for s, now in zip(old.steps, state.steps, strict=True)} if old else {}
    current = old.steps[state.current].id if old and state.current is not None else None
    question = state.question if state.question and state.question.step in plan.index else None
    state = evolve(
        state,
        header=event,
        plan=plan,
        model=event.model,
        options=event.options,
        settings=event.settings,
        steps=tuple(known.get(s.id, StepState()) for s in plan.steps),
        current=plan.index.get(current) if current is not None else None,
        view=tuple(s for s in state.view if s.step is None or s.step in plan.index),
        question=question,
        rechecked=0,
    )
    if current is not None and current not in plan.index:
        state = evolve(state, in_flight=(), unended=())
    return evolve(state, frontier=_frontier(state, 0))


def _said(state: State, event: Said) -> State:
    entry = Entry(state.seq, event.message, event.origin, event.name, counted=event.counted)
    state = evolve(
        state,
        view=context.add(state.view, event.step, entry),
        archived=state.archived + len(event.content or "") + sum(len(c.arguments) for c in entry.message.tool_calls),
        replies=state.replies + (event.origin == "model"),
    )
    if event.step is None:
        return state
    index = state.need_plan().index[event.step]
    now = state.steps[index]
    match event.origin, event.role:
        case "user" | "runner", "user":
            told = now.told_landing or event.landing
            now = evolve(now, briefed=True, nudges=now.nudges + now.briefed, empties=0, told_landing=told)
        case "model", _:
            nudges = 0 if event.tool_calls else now.nudges
            now = evolve(now, checks=(), empties=0, nudges=nudges, warned=guard.nudged(now.recent))
        case "tool", _:
            return _answered(state, index, event)
    return with_step(state, index, lambda _: now)


def _answered(state: State, index: int, event: Said) -> State:
    call_id = event.tool_call_id or ""
    started = call_id in state.in_flight
    tool = event.name or ""
    ended = (*state.unended, (call_id, tool, event.status or "ok")) if started else state.unended
    state = evolve(state, in_flight=tuple(c for c in state.in_flight if c != call_id), unended=ended)
    call = next((c for e in reversed(state.view[-1].entries) for c in e.message.tool_calls if c.id == call_id), None)
    said = (event.content or "")[: len(event.content or "") - event.aside]
    print_ = guard.fingerprint(tool, call.arguments if call else "", said)

    def change(s: StepState) -> StepState:
        recent = () if event.poll else (*s.recent, print_)[-RECENT:]  # around a poll nothing counts as a repeat
        s = evolve(s, recent=recent, warned=s.warned and guard.nudged(recent), told_landing=s.told_landing or event.landing)
        broken = next((c.text for c in s.checks if not c.ok), None) if tool in context.PINNED else None
        return s if broken is None else evolve(s, fixes=s.fixes + 1, failure=broken, checks=())

    return with_step(state, index, change)


def _call_started(state: State, event: CallStarted) -> State:
    """What is about to run may have had its effect, also where nobody sees it end."""
    state = evolve(state, in_flight=(*state.in_flight, event.call_id))
    if event.step is None or event.call_id.startswith("recheck:"):
        return state
    return worked(state, state.need_plan().index[event.step])


def _call_ended(state: State, event: CallEnded) -> State:
    state = evolve(
        state,
        in_flight=tuple(c for c in state.in_flight if c != event.call_id),
        unended=tuple(u for u in state.unended if u[0] != event.call_id),
    )
    if event.step is None:
        return state
    if event.call_id.startswith("recheck:"):
        return evolve(state, rechecked=state.rechecked + 1) if event.status == "ok" else state
    index = state.need_plan().index[event.step]
    state = worked(state, index)
    if event.name not in ("run", "verify"):
        return state
    if event.status == "interrupted":
        return state  # a limit of the run cut it off: it says nothing about the work
    if event.name == "run":
        return with_step(state, index, lambda s: evolve(s, ran=event, checks=()))
    result = CheckResult(event.status == "ok", event.text or "")
    return with_step(state, index, lambda s: evolve(s, checks=(*s.checks, result)))


def _step_changed(state: State, event: StepChanged) -> State:
    index = state.need_plan().index[event.step]
    # What `finally` does comes after the checks: it may tidy away what they look at.
    rechecked = state.rechecked if state.need_plan().steps[index].final else 0
    state = evolve(state, rechecked=rechecked, meagre=0, deferred=False)
    if state.hidden and state.stop is None:
        state = evolve(state, view=projection.restore(state.view, state.hidden, state.need_plan()), hidden=())
    if event.status == "in_progress":
        return _begun(state, index, event)
    if event.status in ("todo", "skipped"):
        asked = state.question if state.question and state.question.step != event.step else None
        state = evolve(state, view=tuple(s for s in state.view if s.step != event.step), question=asked)

    def change(s: StepState) -> StepState:
        return evolve(
            s,
            status=event.status,
            note=event.note,
            output=event.output,
            files=event.files,
            reason=event.reason,
            tries=0 if event.status == "todo" else s.tries,
            baseline=None if event.status == "todo" else s.baseline,
            changed_at=state.seq,
        )

    current = None if state.current == index else state.current
    held = None if state.held == index else state.held
    state = worked(evolve(with_step(state, index, change), current=current, held=held), index)
    return evolve(state, frontier=_frontier(state, min(index, state.frontier)))


def _begun(state: State, index: int, event: StepChanged) -> State:
    """A new attempt starts from the step's starting context: what the last one left in the view goes."""
    old, others = state.steps[index], tuple(s for s in state.view if s.step != event.step)
    fresh = StepState(
        status="in_progress",
        attempt=event.attempt,
        tries=old.tries + 1,
        total_turns=old.total_turns,
        note=event.note,
        baseline=event.baseline if event.baseline is not None else old.baseline,
        changed_at=state.seq,
        seconds=old.seconds,
        spend=old.spend,
    )
    state = evolve(state, steps=replaced(state.steps, index, fresh), current=index, view=others)
    # After a stop these are of the step that is held.
    state = state if state.stop is not None else evolve(state, in_flight=(), unended=())
    return _projected(state, state.need_plan().steps[index])


def _projected(state: State, step: Step) -> State:
    """The view as the step sees it."""
    if step.needs is None or step.prompt is None or strategy_of(state, step) != "summary":
        return state
    view, hidden = projection.project(state.view, step, state.seq)
    return evolve(state, view=view, hidden=hidden)


def _frontier(state: State, start: int) -> int:
    plan = state.need_plan()
    for index in range(start, len(plan.steps)):
        status = state.steps[index].status
        over = status in ("done", "skipped") or (status == "failed" and plan.steps[index].on_failure == "continue")
        if not over:
            return index
    return len(plan.steps)
