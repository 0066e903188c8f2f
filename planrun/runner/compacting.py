"""Performing Compact and Summarise: one record of edits, with what went and what it saved, unless a hook puts it off."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core import context, editing
from planrun.core.actions import AskModel, Begin, Compact, Summarise
from planrun.core.events import Compacted, Event, Noted
from planrun.core.state import State
from planrun.runner import asking, checking, hooking, summarising
from planrun.runner.world import World


def compact(world: World, state: State, action: Compact | Summarise) -> Iterator[Event]:
    """Ask the hooks, before a summary costs anything, then cut. Where a hook denies, the run goes on with what the compaction
    stood before, and the next boundary or turn asks again; once the endpoint has refused a request as too long, it cannot wait."""
    again = isinstance(action, Summarise) and state.stairs > 0  # the hooks have let it pass
    denial = None if again else (yield from hooking.may_compact(world, state, action))
    if denial is not None and action.trigger != "overflow":
        yield Noted("deferred", f"a hook put off the compaction ({action.trigger}): {denial}", action.step)
        yield from _without(world, state, action)
        return
    if denial is not None:
        yield Noted("notice", f"a hook denied a compaction that cannot wait, as the window is full: {denial}", action.step)
    if isinstance(action, Summarise):
        yield from summarising.summarise(world, state, action)
    else:
        yield compacted(state, action)


def _without(world: World, state: State, action: Compact | Summarise) -> Iterator[Event]:
    if action.trigger != "boundary":
        return asking.ask(world, state, AskModel(action.step))
    now = state.step_state(action.step)
    note = now.note if now.status == "failed" else None
    return checking.begin(world, state, Begin(action.step, now.attempt + 1, note))


def compacted(state: State, action: Compact) -> Compacted:
    """The record of the edits."""
    after = editing.apply(state.view, action.edits, state.seq + 1)
    replaced = context.count(state.view) - context.count(after) + _edited(state, after)
    return summarising.record(state, action, action.edits, replaced, after)


def _edited(state: State, after: context.View) -> int:
    old = {e.seq: e for e in context.entries(state.view)}
    return sum(1 for e in context.entries(after) if old.get(e.seq) is not e)
