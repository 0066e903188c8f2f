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
    denial = yield from hooking.may_compact(world, state, action)
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
    """The record of the edits. The whole new list goes along whenever the archive has grown by at least its size since the last copy:
    the log stays linear, and a reader may begin at the newest such record."""
    after = editing.apply(state.view, action.edits, state.seq + 1)
    size = sum(len(s.wire) for s in after)
    copied = state.archived - state.copied_at >= size
    return Compacted(
        strategy=action.strategy,
        trigger=action.trigger,
        edits=action.edits,
        replaces_count=context.count(state.view) - context.count(after) + _edited(state, after),
        messages_before=context.count(state.view),
        messages_after=context.count(after),
        tokens_before=round(context.raw_size(state.view) * state.factor),
        tokens_after=round(context.raw_size(after) * state.factor),
        boundary=action.step if action.trigger == "boundary" else None,
        messages=tuple(m.wire() for m in context.messages(after)) if copied else None,
    )


def _edited(state: State, after: context.View) -> int:
    old = {e.seq: e for e in context.entries(state.view)}
    return sum(1 for e in context.entries(after) if old.get(e.seq) is not e)
