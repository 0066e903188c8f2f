"""What a step sees of the steps before it: under the strategy `summary` those that it `needs`; the others become a line each.

Nothing goes for good: what a step does not see stands aside, and comes back when the step has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from planrun.core import context, editing, pairing
from planrun.core.context import Segment, View
from planrun.core.edits import Insert
from planrun.core.plan import Plan, Step

_LINE = 200  # characters of what a step left that stand in its line


@dataclass(frozen=True)
class Hidden:
    """`segments` stand aside as long as `shown` is in their place."""

    shown: Segment
    segments: View


def project(view: View, step: Step, seq: int) -> tuple[View, tuple[Hidden, ...]]:
    """The view that `step` begins with, and what stands aside. `seq` is the record that begins it."""
    needs = frozenset(step.needs or ())
    goal = next((e.seq for e in context.entries(view) if e.message.role == "user" and e.note is None), 0)
    needed = [s.entries[-1].span[1] for s in view if s.step in needs and s.entries]
    hidden: list[Hidden] = []
    for run in _unseen(view, needs | {step.id}):
        gone = [e for s in run for e in s.entries if not (e.seq == goal and e.note is None)]
        if not gone or any(e.span[0] <= end <= e.span[1] for e in gone for end in needed):
            continue
        insert = Insert(_text(run, step, gone[0].span[0], gone[-1].span[1]), gone[0].span[0], gone[-1].span[1], 0)
        after = editing.apply(view, (insert,), seq)
        if context.raw_size(after) < context.raw_size(view):
            view = after
            hidden.append(Hidden(next(s for s in view if any(e.span == (insert.first, insert.last) for e in s.entries)), run))
    return view, tuple(hidden)


def _unseen(view: View, seen: frozenset[str]) -> Iterator[View]:
    """Neighbouring segments of steps that are not `seen`, the system message's aside."""
    for hide, run in groupby(view, lambda s: s.step is not None and s.step not in seen):
        if hide:
            yield tuple(run)


def _text(run: View, step: Step, first: int, last: int) -> str:
    lines = [f"- {s.step}: {_said(s)}" for s in run]
    return (
        f"[What step {step.id} does not need of earlier steps, a line each; "
        f'ExpandHistory(ids="{first}-{last}") gives the originals]\n' + "\n".join(lines)
    )


def _said(segment: Segment) -> str:
    """The beginning of a step's summary, or the last that the model said in it: mostly how it handed in its output."""
    notes = [e.message.content or "" for e in segment.summaries]
    if notes:
        text = notes[-1].partition("\n")[2]
    else:
        last = next((e.message for e in reversed(segment.entries) if e.origin == "model"), segment.entries[-1].message)
        text = last.content or " ".join(f"{call.name} {call.arguments}" for call in last.tool_calls)
    flat = " ".join(text.split())
    return flat if len(flat) <= _LINE else f"{flat[:_LINE]}…"


def restore(view: View, hidden: tuple[Hidden, ...], plan: Plan) -> View:
    """The view with everything back that stood aside, but where a compaction has edited what was shown instead, or its neighbours
    so that roles would not take turns."""
    for item in hidden:
        if item.shown in view:
            at = view.index(item.shown)
            back = tuple(s for s in item.segments if s.step in plan.index)
            whole = (*view[:at], *back, *view[at + 1 :])
            if set(pairing.faults(whole)) <= set(pairing.faults(view)):
                view = whole
    return view
