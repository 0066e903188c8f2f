"""The record of a compaction: what went, what it saved, and whose summary it is."""

from __future__ import annotations

from planrun.core import context
from planrun.core.actions import Compact, Summarise
from planrun.core.context import View
from planrun.core.edits import Edit, Insert
from planrun.core.events import Compacted
from planrun.core.state import State


def record(state: State, action: Compact | Summarise, edits: tuple[Edit, ...], replaced: int, after: View) -> Compacted:
    """The record of edits that lead to the view `after`. The whole new list goes along whenever the archive has grown by at least
    its size since the last copy: the log stays linear, and a reader may begin at the newest such record."""
    size = sum(len(s.wire) for s in after)
    copied = state.archived - state.copied_at >= size
    return Compacted(
        strategy=action.strategy if isinstance(action, Compact) else "summary",
        trigger=action.trigger,
        edits=edits,
        replaces_count=replaced,
        messages_before=context.count(state.view),
        messages_after=context.count(after),
        tokens_before=round(context.raw_size(state.view) * state.factor),
        tokens_after=round(context.raw_size(after) * state.factor),
        boundary=action.step if action.trigger == "boundary" else None,
        step=_summed_up(state.view, edits),
        messages=tuple(m.wire() for m in context.messages(after)) if copied else None,
    )


def _summed_up(view: View, edits: tuple[Edit, ...]) -> str | None:
    """The newest step of which these edits sum up messages."""
    last = max((e.last for e in edits if isinstance(e, Insert) and e.level), default=0)
    return next((s.step for s in reversed(view) if any(e.span[1] <= last for e in s.entries)), None)
