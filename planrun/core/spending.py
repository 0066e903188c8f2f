"""What requests and their answers cost: tokens, money, turns, and what reported usage teaches about the estimate."""

from __future__ import annotations

from dataclasses import replace

from planrun.core import context, room
from planrun.core.events import Requested, Responded
from planrun.core.evolve import evolve
from planrun.core.state import Spend, State, StepState, Unsettled, with_step, worked
from planrun.core.tokens import calibrate, raw_tokens


def requested(state: State, event: Requested) -> State:
    model = event.model or state.model
    cost = room.cost(state, model, event.tokens)
    sent = Unsettled(event.tokens, event.raw, event.step, event.purpose, model, state.seq, cost)
    return evolve(state, background=sent) if event.purpose == "background" else evolve(state, request=sent)


def responded(state: State, event: Responded) -> State:
    return _over(state, event, turn=event.error is None)


def _over(state: State, event: Responded, *, turn: bool) -> State:
    """The request's cost counts; where it was a step's and has its answer, it was a turn."""
    aside = event.purpose == "background"
    sent = (state.background if aside else state.request) or Unsettled(0, 0, None, event.purpose)
    cost, prompt, factors = _cost(state, sent, event), (event.usage or {}).get("prompt_tokens"), state.factors
    if prompt and sent.raw:
        factors = {**factors, sent.model: calibrate(factors.get(sent.model, 1.0), sent.raw, prompt)}
    request, background = (state.request, None) if aside else (None, state.background)
    state = evolve(state, request=request, background=background, spend=state.spend.plus(cost), factors=factors)
    if sent.step is None:
        return state
    index = state.need_plan().index[sent.step]
    state = with_step(state, index, lambda s: evolve(s, spend=s.spend.plus(cost)))
    return state if event.purpose != "step" else _turned(state, index, event, turn)


def settled(state: State, sent: Unsettled) -> State:
    """The state where a kill cut a request off: it was paid for, as far as anyone can tell, and so was an answer that is on record.
    Only with an answer it was a turn."""
    notes = [e for s in state.view for e in s.summaries if e.seq > sent.seq and e.note and not e.note.deterministic]
    text = notes[-1].message.content if notes and sent.purpose != "step" else None
    event = Responded(None, None, 0.0, purpose=sent.purpose, text=text)
    cost = room.cost(state, sent.model, sent.tokens, _answer_tokens(state, event))
    last = context.last(state.view)
    answered = last is not None and last.origin == "model" and last.seq > sent.seq
    return _over(state, replace(event, cost_usd=cost), turn=answered)


def _cost(state: State, sent: Unsettled, event: Responded) -> Spend:
    """What the request came to; by estimate, what the endpoint did not count."""
    usage, answered = event.usage or {}, event.error is None
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    unknown = sent.tokens if answered else 0  # what the endpoint did not answer it does not charge
    unseen = _answer_tokens(state, event) if completion is None and answered else 0
    return Spend(
        requests=1 + event.retries,
        prompt_tokens=prompt if prompt is not None else unknown,
        cached_tokens=usage.get("cached_tokens") or 0,
        completion_tokens=completion if completion is not None else unseen,
        estimated=answered and (prompt is None or completion is None),
        cost_usd=event.cost_usd,
    )


def _turned(state: State, index: int, event: Responded, turn: bool) -> State:
    """A step's request is over: a turn where it has its answer, not where the provider failed."""
    silent = event.empty or event.refusal is not None
    state = evolve(
        state,
        turns=state.turns + turn,
        replies=state.replies + silent,
        overflows=0 if turn else state.overflows,
        deferred=False,
    )

    def change(s: StepState) -> StepState:
        return evolve(
            s, turns=s.turns + turn, total_turns=s.total_turns + turn, empties=s.empties + event.empty, refusal=event.refusal
        )

    state = with_step(state, index, change)
    return worked(state, index) if turn else state


def _answer_tokens(state: State, event: Responded) -> int:
    """What an answer of unknown size counts: by its text, which was recorded just before (a summary's stands in the event)."""
    if event.text is not None:
        return round(raw_tokens(event.text))
    last = context.last(state.view)
    return round(last.raw) if event.purpose == "step" and last is not None and last.origin == "model" else 0
