"""The fold's step: what each record does to the state. Nothing else makes a state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from planrun.core import context, editing
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
    Unknown,
)
from planrun.core.evolve import evolve
from planrun.core.plan import Plan
from planrun.core.records import Record
from planrun.core.state import RECENT, CheckResult, PlanReader, Spend, State, StepState, Unsettled, fingerprint
from planrun.core.tokens import calibrate

NEXT_TO_NOTHING = 0.05  # of the tokens: a compaction that frees less does not keep up


def fold(records: Iterable[Record], state: State, read_plan: PlanReader) -> State:
    return reduce(lambda s, r: apply(s, r, read_plan), records, state)


def apply(state: State, record: Record, read_plan: PlanReader) -> State:
    """The state after one more record. `read_plan` turns a session record's plan text into the plan (it must be pure)."""
    passed = 0.0
    if state.header is not None and not (isinstance(record.event, Noted) and record.event.kind == "resumed"):
        passed = max(0.0, record.timestamp - state.timestamp)
    steps = state.steps
    if passed and (at := state.current) is not None:
        now = steps[at]
        now = evolve(now, seconds=now.seconds + passed, attempt_seconds=now.attempt_seconds + passed)
        steps = (*steps[:at], now, *steps[at + 1 :])
    timestamp = max(state.timestamp, record.timestamp)
    state = evolve(state, seq=record.seq, timestamp=timestamp, elapsed=state.elapsed + passed, steps=steps)
    match record.event:
        case Session() as event:
            return _session(state, event, read_plan(event))
        case Said() as event:
            return _said(state, event)
        case Requested() as event:
            return _requested(state, event)
        case Responded() as event:
            return _responded(state, event)
        case CallStarted(call_id=call_id):
            return evolve(state, in_flight=(*state.in_flight, call_id))
        case CallEnded() as event:
            return _call_ended(state, event)
        case StepChanged() as event:
            return _step_changed(state, event)
        case Compacted() as event:
            return _compacted(state, event)
        case Approval() as event:
            return _approval(state, event)
        case LimitNeared() as event:
            return _limit(state, event)
        case Noted() as event:
            return _noted(state, event)
        case Ended() as event:
            return evolve(state, ended=event)
        case Hooked() | Unknown():
            return state


def _on_step(state: State, index: int, change: Callable[[StepState], StepState]) -> State:
    steps = (*state.steps[:index], change(state.steps[index]), *state.steps[index + 1 :])
    return evolve(state, steps=steps)


def _session(state: State, event: Session, plan: Plan) -> State:
    known = {s.id: old for s, old in zip(state.plan.steps, state.steps, strict=True)} if state.plan else {}
    return evolve(
        state,
        header=event,
        plan=plan,
        model=event.model,
        options=event.options,
        settings=event.settings,
        steps=tuple(known.get(s.id, StepState()) for s in plan.steps),
        frontier=0,
    )


def _said(state: State, event: Said) -> State:
    entry = Entry(state.seq, event.message, event.origin, event.name)
    state = evolve(
        state,
        view=context.add(state.view, event.step, entry),
        archived=state.archived + len(event.content or "") + sum(len(c.arguments) for c in entry.message.tool_calls),
        replies=state.replies + (event.origin == "model"),
    )
    if event.step is None:
        return state
    index = state.need_plan().index[event.step]
    match event.origin, event.role:
        case "user" | "runner", "user":
            nudge = state.steps[index].briefed
            return _on_step(state, index, lambda s: evolve(s, briefed=True, nudges=s.nudges + nudge, empties=0))
        case "model", _:
            return _on_step(state, index, lambda s: evolve(s, checks=(), empties=0, nudges=0 if event.tool_calls else s.nudges))
        case "tool", _:
            return _answered(state, index, event)
    return state


def _answered(state: State, index: int, event: Said) -> State:
    call_id = event.tool_call_id or ""
    started = call_id in state.in_flight
    tool = event.name or ""
    ended = (*state.unended, (call_id, tool, event.status or "ok")) if started else state.unended
    state = evolve(state, in_flight=tuple(c for c in state.in_flight if c != call_id), unended=ended)
    call = next((c for e in reversed(state.view[-1].entries) for c in e.message.tool_calls if c.id == call_id), None)
    said = (event.content or "")[: len(event.content or "") - event.aside]
    print_ = fingerprint(tool, call.arguments if call else "", said)

    def change(s: StepState) -> StepState:
        recent = (*s.recent, print_)[-RECENT:]
        broken = next((c.text for c in s.checks if not c.ok), None) if tool in context.PINNED else None
        told = s.told_landing or event.landing
        if broken is None:
            return evolve(s, recent=recent, told_landing=told)
        return evolve(s, recent=recent, told_landing=told, fixes=s.fixes + 1, failure=broken, checks=())

    return _on_step(state, index, change)


def _requested(state: State, event: Requested) -> State:
    sent = Unsettled(event.tokens, event.raw, event.step, event.purpose, event.model or state.model)
    return evolve(state, background=sent) if event.purpose == "background" else evolve(state, request=sent)


def _responded(state: State, event: Responded) -> State:
    aside = event.purpose == "background"
    sent = (state.background if aside else state.request) or Unsettled(0, 0, None, event.purpose)
    usage = event.usage or {}
    unknown = sent.tokens if event.error is None else 0  # what the endpoint did not answer it does not charge
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    factors = state.factors
    if prompt and sent.raw:
        factors = {**factors, sent.model: calibrate(factors.get(sent.model, 1.0), sent.raw, prompt)}

    def add(spend: Spend) -> Spend:
        cost = spend.cost_usd
        if event.cost_usd is not None:
            cost = (cost or 0.0) + event.cost_usd
        return Spend(
            requests=spend.requests + 1 + event.retries,
            prompt_tokens=spend.prompt_tokens + (prompt if prompt is not None else unknown),
            cached_tokens=spend.cached_tokens + (usage.get("cached_tokens") or 0),
            completion_tokens=spend.completion_tokens + (completion or 0),
            estimated=spend.estimated or (prompt is None and event.error is None),
            cost_usd=cost,
        )

    request, background = (state.request, None) if aside else (None, state.background)
    state = evolve(state, request=request, background=background, spend=add(state.spend), factors=factors)
    if sent.step is None:
        return state
    if event.purpose != "step":
        return _on_step(state, state.need_plan().index[sent.step], lambda s: evolve(s, spend=add(s.spend)))
    turn = event.error is None  # a failure of the provider is no turn
    silent = event.empty or event.refusal is not None
    state = evolve(state, turns=state.turns + turn, replies=state.replies + silent, overflows=0 if turn else state.overflows)

    def change(s: StepState) -> StepState:
        return evolve(
            s,
            turns=s.turns + turn,
            total_turns=s.total_turns + turn,
            empties=s.empties + event.empty,
            refusal=event.refusal,
            spend=add(s.spend),
        )

    return _on_step(state, state.need_plan().index[sent.step], change)


def _call_ended(state: State, event: CallEnded) -> State:
    state = evolve(
        state,
        in_flight=tuple(c for c in state.in_flight if c != event.call_id),
        unended=tuple(u for u in state.unended if u[0] != event.call_id),
    )
    if event.step is None or event.name not in ("run", "verify"):
        return state
    index = state.need_plan().index[event.step]
    if event.call_id.startswith("recheck:"):
        return evolve(state, rechecked=state.rechecked + 1) if event.status == "ok" else state
    if event.name == "run":
        return _on_step(state, index, lambda s: evolve(s, ran=event, checks=()))
    result = CheckResult(event.status == "ok", event.text or "")
    return _on_step(state, index, lambda s: evolve(s, checks=(*s.checks, result)))


def _step_changed(state: State, event: StepChanged) -> State:
    index = state.need_plan().index[event.step]
    old = state.steps[index]
    state = evolve(state, rechecked=0, meagre=0)
    if event.status == "in_progress":
        fresh = StepState(
            status="in_progress",
            attempt=event.attempt,
            tries=old.tries + 1,
            total_turns=old.total_turns,
            note=event.note,
            baseline=event.baseline if event.baseline is not None else old.baseline,
            seconds=old.seconds,
            spend=old.spend,
        )
        # A new attempt starts from the step's starting context: what the last one left in the view goes.
        kept = tuple(s for s in state.view if s.step != event.step)
        return evolve(_on_step(state, index, lambda _: fresh), current=index, view=kept, in_flight=(), unended=())

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
            failed_at=state.seq if event.status == "failed" else s.failed_at,
        )

    state = evolve(_on_step(state, index, change), current=None if state.current == index else state.current)
    return evolve(state, frontier=_frontier(state, min(index, state.frontier)))


def _frontier(state: State, start: int) -> int:
    plan = state.need_plan()
    for index in range(start, len(plan.steps)):
        status = state.steps[index].status
        over = status in ("done", "skipped") or (status == "failed" and plan.steps[index].on_failure == "continue")
        if not over:
            return index
    return len(plan.steps)


def _compacted(state: State, event: Compacted) -> State:
    copied = state.archived if event.messages is not None else state.copied_at
    view = editing.apply(state.view, event.edits, state.seq)
    poor = event.boundary is None and event.tokens_after > event.tokens_before * (1 - NEXT_TO_NOTHING)
    meagre = state.meagre + 1 if poor else 0
    return evolve(state, view=view, compactions=state.compactions + 1, copied_at=copied, stairs=0, meagre=meagre)


def _approval(state: State, event: Approval) -> State:
    if event.decision == "asked":
        return evolve(state, question=event)
    question = state.question if state.question and state.question.subject != event.subject else None
    return evolve(state, question=question, approvals=(*state.approvals, event))


def _limit(state: State, event: LimitNeared) -> State:
    if event.limit == "window":
        return _overflowed(state, event)
    return evolve(state, landing=(*state.landing, event.limit)) if event.landing else state


def _overflowed(state: State, event: LimitNeared) -> State:
    """A request was too long: `used` is what had been estimated for it. Where that is below the window, so is the estimate."""
    model = event.model or state.model
    windows, factors = {**state.windows, model: int(event.maximum)}, state.factors
    if 0 < event.used <= event.maximum:
        factors = {**factors, model: factors.get(model, 1.0) * event.maximum / event.used * 1.05}
    overflows = state.overflows + (event.purpose == "step")
    return evolve(state, windows=windows, factors=factors, overflows=overflows)


def _noted(state: State, event: Noted) -> State:
    match event.kind:
        case "summary":
            return evolve(state, stairs=state.stairs + 1)
        case "summary_failed":
            return evolve(state, digest_only=event.step, stairs=0)
        case "background_failed":
            return evolve(state, no_background=event.step)
        case "fork":
            return evolve(state, advised=True)
        case "resumed":
            return _resumed(state, event)
    return state


def _resumed(state: State, event: Noted) -> State:
    for sent in (state.request, state.background):
        if sent is not None:  # a kill cut it off: it was paid for, as far as anyone can tell
            state = _responded(state, Responded(usage=None, model=None, seconds=0.0, purpose=sent.purpose))
    merged: dict[str, Any] = {**state.options, **event.options}
    return evolve(
        state,
        ended=None,
        overflows=0,
        stairs=0,
        digest_only=None,
        no_background=None,
        resumed_at=state.seq,
        options=merged,
        settings=event.settings or state.settings,
        model=event.model or state.model,
        approvals=tuple(a for a in state.approvals if a.decision == "approved"),
    )
