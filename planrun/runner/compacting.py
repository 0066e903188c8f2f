"""Performing Compact and Summarise: one record of edits, with what went and what it saved, unless a hook puts it off."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core import compaction, context, editing
from planrun.core.actions import Compact, Summarise
from planrun.core.events import Compacted, Event, Noted
from planrun.core.state import State
from planrun.runner import hooking, summarising
from planrun.runner.world import World


def compact(world: World, state: State, action: Compact | Summarise) -> Iterator[Event]:
    """Ask the hooks, before a summary costs anything, then cut. Where a hook denies, that is on record and the run goes on without;
    the next boundary or turn asks again. Once the endpoint has refused a request as too long, it cannot wait."""
    again = isinstance(action, Summarise) and state.stairs > 0  # the hooks have let it pass
    denial = None if again else (yield from hooking.may_compact(world, state, action))
    if denial is not None and action.trigger != "overflow":
        yield Noted("deferred", f"a hook put off the compaction ({action.trigger}): {denial}", action.step)
        return
    if denial is not None:
        yield Noted("notice", f"a hook denied a compaction that cannot wait, as the window is full: {denial}", action.step)
    if isinstance(action, Summarise):
        yield from summarising.summarise(world, state, action)
    else:
        yield compacted(state, action)


def compacted(state: State, action: Compact) -> Compacted:
    """The record of the edits."""
    after = editing.apply(state.view, action.edits, state.seq + 1)
    replaced = context.count(state.view) - context.count(after) + _edited(state, after)
    return compaction.record(state, action, action.edits, replaced, after)


def _edited(state: State, after: context.View) -> int:
    old = {e.seq: e for e in context.entries(state.view)}
    return sum(1 for e in context.entries(after) if old.get(e.seq) is not e)
