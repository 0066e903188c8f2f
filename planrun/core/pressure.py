"""When the messages of a step outgrow their room: which rung of the ladder comes next, or that nothing more can be done."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import inf

from planrun.core import context, editing, summaries
from planrun.core.actions import Action, Compact, End, Summarise, Trigger
from planrun.core.context import View
from planrun.core.edits import Edit
from planrun.core.plan import Step
from planrun.core.room import Room, percent, room_of
from planrun.core.state import State
from planrun.core.strategies import ladder
from planrun.core.strategies.ladder import Group
from planrun.errors import Outcome

ROUNDS = 20  # requests refused as too long before the run gives up
AIM = 0.6  # of the mark at which the ladder starts: where it stops again
LEAF_MESSAGES, LEAF_TOKENS = 8, 20_000
NEIGHBOURS = 4  # summaries side by side that are worth one of their own
WORTH = 200  # tokens; a smaller source stays as it is
WORTH_RAW = 100.0  # raw tokens, likewise: whatever the model, a note about the source is smaller

Rung = tuple[str, tuple[Edit, ...]]


def relieve(state: State, step: Step) -> Action | None:
    """The next thing to do about the room before a request: None while there is enough."""
    room = room_of(state, step)
    mark = room.budget * percent(state, "summarize_token_percent", 75)
    if state.overflows > ROUNDS:
        return _no_room(state, room, f"the endpoint refused {state.overflows} requests as too long")
    forced = state.overflows > 0
    if room.used <= mark or (state.deferred and not forced):
        return None
    must = forced or room.used > room.budget
    if room.used > room.budget and (end := _hopeless(state, room)):
        return end
    trigger: Trigger = "overflow" if forced else "budget"
    parts = ladder.groups(state.view)
    fresh = ladder.tail_start(parts, room.budget * percent(state, "tail_percent", 25) / state.factor)
    old = parts[: len(parts) - 1 if forced else fresh]
    excess = (room.used - AIM * mark) / state.factor
    least = max(1.0, room.budget * percent(state, "min_reclaim_percent", 5) / state.factor)
    for name, edits in (("elide", ladder.elide(old, excess)), ("shorten", ladder.shorten(old, excess))):
        if _frees(state.view, edits, least):
            return Compact(step.id, name, trigger, edits)
    note = _summary(state, step, old, trigger, least * state.factor, must=must)
    if note is not None or not must:
        return note
    over = (room.used - room.budget) / state.factor
    for bar in (max(1.0, over), 1.0) if over > 0 else (least,):  # first what is enough by itself, then whatever helps
        for name, edits in _last_rungs(parts, len(old), excess):
            if _frees(state.view, edits, bar):
                return Compact(step.id, name, trigger, edits)
    return _no_room(state, room, "nothing more can be left out") if over > 0 else None


def _last_rungs(parts: list[Group], old: int, excess: float) -> Iterator[Rung]:
    """Over the budget itself: drop the oldest, cut the largest, then without regard to the fresh tail."""
    yield "drop", ladder.drop(parts[:old], excess)
    yield "cut", ladder.cut(parts, excess)
    yield "elide", ladder.elide(parts[:-1], excess)
    yield "shorten", ladder.shorten(parts, excess)
    yield "drop", ladder.drop(parts[:-1], excess)


def _frees(view: View, edits: tuple[Edit, ...], least: float) -> bool:
    """Whether these edits free at least so many raw tokens."""
    return bool(edits) and context.raw_size(view) - context.raw_size(editing.apply(view, edits)) >= least


def smallest(view: View, seq: int) -> View:
    """What is left when every rung has done all that it can."""
    while True:
        parts = ladder.groups(view)
        edits = next((e for _, e in _last_rungs(parts, len(parts) - 1, inf) if _frees(view, e, 1.0)), None)
        if edits is None:
            return view
        view = editing.apply(view, edits, seq)


def _hopeless(state: State, room: Room) -> End | None:
    """The end, where even the smallest list is over the budget: found before anything is spent on a summary."""
    least = _messages_raw(smallest(state.view, state.seq + 1)) * state.factor
    return _no_room(state, room, "nothing that can be left out is enough") if least > room.budget else None


def _messages_raw(view: View) -> float:
    return sum(e.raw for e in context.entries(view) if e.message.role != "system")


def _summary(state: State, step: Step, parts: list[Group], trigger: Trigger, least: float, *, must: bool) -> Summarise | None:
    """The oldest run of messages that is worth a summary, one that should free `least` tokens, else neighbouring summaries."""
    for run in ladder.runs(parts, lambda g: not g.is_note):
        tokens = ladder.raw_of(run) * state.factor
        big = must or sum(len(g.entries) for g in run) >= LEAF_MESSAGES or tokens >= LEAF_TOKENS
        if big and _worth(state, run) and tokens - summaries.LEAF[0].target(tokens) >= least:
            return _summarise(state, step, run, trigger, 1)
    return condensable(state, step, parts, trigger, 2 if must else NEIGHBOURS)


def condensable(state: State, step: Step, parts: list[Group], trigger: Trigger, fewest: int) -> Summarise | None:
    """At least `fewest` summaries side by side, of the shallowest level that has them."""
    found = [run for run in _neighbours(parts) if len(run) >= fewest and _worth(state, run)]
    if not found:
        return None
    run = min(found, key=lambda r: r[0].level)
    return _summarise(state, step, run, trigger, run[0].level + 1)


def _neighbours(parts: list[Group]) -> Iterator[list[Group]]:
    """Unbroken runs of summaries of one level, the oldest first."""
    for run in ladder.runs(parts, lambda g: g.level > 0):
        at = 0
        for position in range(1, len(run) + 1):
            if position == len(run) or run[position].level != run[at].level:
                yield run[at:position]
                at = position


def beside(state: State, step: Step) -> Summarise | None:
    """The summary of summaries that is worth making beside the run, while there is room."""
    if state.background is not None or step.id in (state.no_background, state.digest_only):
        return None
    if sum(len(s.summaries) for s in state.view) < NEIGHBOURS:
        return None
    return condensable(state, step, ladder.groups(state.view), "background", NEIGHBOURS)


def _worth(state: State, run: list[Group]) -> bool:
    raw = ladder.raw_of(run)
    return raw >= WORTH_RAW and raw * state.factor >= WORTH


def _summarise(state: State, step: Step, run: list[Group], trigger: Trigger, level: int) -> Summarise:
    first, last = ladder.span(run)
    return Summarise(step.id, trigger, first, last, level, state.digest_only != step.id, tight=state.stairs > 0)


def finished_steps(state: State, step: Step, others: View) -> Summarise | None:
    """At a boundary with the strategy `summary`: what each finished step has left becomes a summary."""
    parts = ladder.groups(others)
    goal = next((i for i, g in enumerate(parts) if g.pinned and g.entries[0].message.role == "user"), len(parts))
    parts = [Group(g.entries, pinned=False) for g in parts[goal + 1 :]]
    owner = {e.seq: s.step for s in others for e in s.entries}
    for run in ladder.runs(parts, lambda g: not g.is_note):
        for _, of_step in groupby(run, lambda g: owner[g.entries[0].seq]):
            if _worth(state, own := list(of_step)):
                return _summarise(state, step, own, "boundary", 1)
    return None


def _no_room(state: State, room: Room, why: str) -> End:
    least = round(_messages_raw(smallest(state.view, state.seq + 1)) * state.factor)
    return End(
        Outcome.CONTEXT,
        f"the context does not fit: {why}. The floor is {room.fixed + least:,} tokens (system message and tools {room.fixed:,}, "
        f"messages that must stay {least:,}), messages take {room.used:,} of a budget of {max(0, room.budget):,}; the window is "
        f"{room.window:,} tokens by {room.origin}. Use a model with a larger window, or name it with --window.",
    )
