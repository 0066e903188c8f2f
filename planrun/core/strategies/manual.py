"""Compaction by hand: all but the newest messages become summaries. What is pinned stays where it is, so that there is one summary
before it and one behind it where both sides are long; mostly it is one."""

from __future__ import annotations

from planrun.core import context, editing
from planrun.core.actions import Summarise
from planrun.core.context import View
from planrun.core.edits import Edit
from planrun.core.state import State
from planrun.core.strategies import ladder
from planrun.core.strategies.ladder import Group

KEEP = 4  # messages at the end that stay
FEWEST = 8  # messages; a smaller context is left alone unless it is asked for


def unready(state: State) -> str | None:
    """Why nothing may be cut now: somebody has to answer something first. None where it may."""
    if state.question is not None:
        return f"an approval is pending: {state.question.text}"
    waiting = [c.name for c in context.unanswered(state.view)]
    if waiting:
        return f"the call of {', '.join(waiting)} has no result yet"
    return None


def summaries(state: State, step: str, keep: int) -> tuple[Summarise, ...]:
    """The summaries to be made, the oldest first. The newest `keep` messages stay, and with them the rest of a turn."""
    parts = ladder.groups(state.view)
    at, kept = len(parts), 0
    while at > 0 and kept < keep:
        at -= 1
        kept += len(parts[at].entries)
    return tuple([_summary(run, step) for run in ladder.runs(parts[:at]) if not (len(run) == 1 and run[0].is_note)])


def _summary(run: list[Group], step: str) -> Summarise:
    first, last = ladder.span(run)
    deepest = max([g.entries[0].note.level for g in run if g.entries[0].note], default=0)
    return Summarise(step, "manual", first, last, deepest + 1, model=False)


def worthwhile(view: View, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Those of the edits that make the view smaller, each by itself."""
    size = context.raw_size(view)
    return tuple([e for e in edits if context.raw_size(editing.apply(view, (e,))) < size])
