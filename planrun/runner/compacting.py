"""Performing Compact: one record of edits, with what went and what it saved."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core import context
from planrun.core.actions import Compact
from planrun.core.events import Compacted, Event
from planrun.core.state import State
from planrun.core.strategies import boundary
from planrun.runner.world import World


def compact(world: World, state: State, action: Compact) -> Iterator[Event]:
    """Record the edits. The whole new list goes along whenever the archive has grown by at least its size since the last copy:
    the log stays linear, and a reader may begin at the newest such record."""
    after = boundary.apply(state.view, action.edits)
    size = sum(len(s.wire) for s in after)
    copied = state.archived - state.copied_at >= size
    yield Compacted(
        strategy=action.strategy,
        trigger="boundary",
        edits=action.edits,
        replaces_count=context.count(state.view) - context.count(after) + _edited(state, after),
        messages_before=context.count(state.view),
        messages_after=context.count(after),
        tokens_before=round(context.raw_size(state.view) * state.factor),
        tokens_after=round(context.raw_size(after) * state.factor),
        boundary=action.step,
        messages=tuple(m.wire() for m in context.messages(after)) if copied else None,
    )


def _edited(state: State, after: context.View) -> int:
    old = {e.seq: e for e in context.entries(state.view)}
    return sum(1 for e in context.entries(after) if old.get(e.seq) is not e)
