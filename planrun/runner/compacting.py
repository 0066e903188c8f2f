"""Performing Compact: one record of edits, with what went and what it saved."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core import context, editing
from planrun.core.actions import Begin, Compact
from planrun.core.events import Compacted, Event, Noted
from planrun.core.state import State
from planrun.runner import checking, hooking
from planrun.runner.world import World


def compact(world: World, state: State, action: Compact) -> Iterator[Event]:
    """Record the edits. The whole new list goes along whenever the archive has grown by at least its size since the last copy:
    the log stays linear, and a reader may begin at the newest such record."""
    after = editing.apply(state.view, action.edits, state.seq + 1)
    size = sum(len(s.wire) for s in after)
    copied = state.archived - state.copied_at >= size
    planned = Compacted(
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
    denial = yield from hooking.may_compact(world, state, planned)
    if denial is None:
        yield planned
    else:
        yield from _deferred(world, state, action, denial)


def _deferred(world: World, state: State, action: Compact, reason: str) -> Iterator[Event]:
    """Nothing is cut: the step begins with the context as it is, and the next boundary proposes the same edits and more."""
    yield Noted("deferred", f"a hook put off the compaction before step {action.step}: {reason}", action.step)
    now = state.step_state(action.step)
    note = now.note if now.status == "failed" else None
    yield from checking.begin(world, state, Begin(action.step, now.attempt + 1, note))


def _edited(state: State, after: context.View) -> int:
    old = {e.seq: e for e in context.entries(state.view)}
    return sum(1 for e in context.entries(after) if old.get(e.seq) is not e)
