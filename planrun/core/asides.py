"""What the fold does with records beside the work itself: compactions, approvals, limits, notes, resumes."""

from __future__ import annotations

from typing import Any

from planrun.core import editing, spending
from planrun.core.events import Approval, Compacted, Ended, LimitNeared, Noted, Stopped
from planrun.core.evolve import evolve
from planrun.core.state import State, worked
from planrun.errors import Outcome

NEXT_TO_NOTHING = 0.05  # of the tokens: a compaction that frees less does not keep up


def compacted(state: State, event: Compacted) -> State:
    copied = state.archived if event.messages is not None else state.copied_at
    view = editing.apply(state.view, event.edits, state.seq)
    poor = event.boundary is None and event.tokens_after > event.tokens_before * (1 - NEXT_TO_NOTHING)
    meagre = state.meagre + 1 if poor else 0
    stairs = 0 if event.strategy == "summary" else state.stairs
    return evolve(state, view=view, compactions=state.compactions + 1, copied_at=copied, stairs=stairs, meagre=meagre)


def approval(state: State, event: Approval) -> State:
    if event.decision == "asked":
        return evolve(state, question=event)
    question = state.question if state.question and state.question.subject != event.subject else None
    return evolve(state, question=question, approvals=(*state.approvals, event))


def limit(state: State, event: LimitNeared) -> State:
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


def stopped(state: State, event: Stopped) -> State:
    return evolve(state, stop=event, stopped_at=state.elapsed, held=state.current, current=None)


def ended(state: State, event: Ended) -> State:
    return evolve(_going_on(state), ended=event)


def _going_on(state: State) -> State:
    """What a stop held is under way again."""
    return state if state.stop is None else evolve(state, stop=None, current=state.held, held=None)


def noted(state: State, event: Noted) -> State:
    match event.kind:
        case "summary":
            return evolve(state, stairs=state.stairs + 1)
        case "summary_failed":
            return evolve(state, digest_only=event.step, stairs=0)
        case "background_failed":
            return evolve(state, no_background=event.step)
        case "deferred":
            return evolve(state, deferred=True)
        case "fork":
            return evolve(state, advised=True)
        case "rerun" if event.step is not None:
            return worked(state, state.need_plan().index[event.step])
        case "resumed":
            return _resumed(state, event)
    return state


def _resumed(state: State, event: Noted) -> State:
    for sent in state.unsettled:
        state = spending.settled(state, sent)
    state = _going_on(state)  # where a crash came between the stop and the end
    # A run that ended for want of room asks anew how much there is: a refusal that named no window made one up.
    no_room = state.ended is not None and state.ended.outcome == Outcome.CONTEXT
    merged: dict[str, Any] = {**state.options, **event.options}
    return evolve(
        state,
        ended=None,
        windows={} if no_room else state.windows,
        overflows=0,
        stairs=0,
        digest_only=None,
        no_background=None,
        deferred=False,
        resumed_at=state.seq,
        options=merged,
        settings=event.settings or state.settings,
        model=event.model or state.model,
        approvals=tuple(a for a in state.approvals if a.decision == "approved"),
    )
