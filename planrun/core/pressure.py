"""When the messages of a step outgrow their room: which rung of the ladder comes next, or that nothing more can be done."""

from __future__ import annotations

from planrun.core import context, editing
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


def relieve(state: State, step: Step) -> Action | None:
    """The next thing to do about the room before a request: None while there is enough."""
    room = room_of(state, step)
    mark = room.budget * percent(state, "summarize_token_percent", 75)
    forced = state.overflows > 0
    if state.overflows > ROUNDS:
        return _no_room(state, room, f"the endpoint refused {ROUNDS} requests as too long")
    if room.used <= mark:
        return None
    must = forced or room.used > room.budget
    parts = ladder.groups(state.view)
    end = len(parts) - 1 if forced else ladder.tail_start(parts, room.budget * percent(state, "tail_percent", 25) / state.factor)
    trigger: Trigger = "overflow" if forced else "budget"
    excess = (room.used - AIM * mark) / state.factor
    least = room.budget * percent(state, "min_reclaim_percent", 5) / state.factor
    for name, edits in (("elide", ladder.elide(parts, end, excess)), ("shorten", ladder.shorten(parts, end, excess))):
        if _frees(state.view, edits, least):
            return Compact(step.id, name, trigger, edits)
    note = _summary(state, step, parts[:end], trigger, must)
    if note is not None:
        return note
    return _last_rungs(state, step, room, parts, end, excess) if must else None


def _last_rungs(state: State, step: Step, room: Room, parts: list[Group], end: int, excess: float) -> Action | None:
    """Over the budget itself: drop the oldest, cut the largest, then whatever frees anything; else there is no room."""
    trigger: Trigger = "overflow" if state.overflows else "budget"
    least = max(1.0, (room.used - room.budget) / state.factor)
    last = len(parts) - 1
    rungs = (
        ("drop", ladder.drop(parts, end, excess)),
        ("cut", ladder.cut(parts, excess)),
        ("elide", ladder.elide(parts, last, excess)),
        ("shorten", ladder.shorten(parts, last, excess)),
        ("drop", ladder.drop(parts, last, excess)),
    )
    for bar in (least, 1.0):  # first what is enough by itself, then whatever helps
        for name, edits in rungs:
            if _frees(state.view, edits, bar):
                return Compact(step.id, name, trigger, edits)
    if room.used > room.budget:
        return _no_room(state, room, "nothing more can be left out")
    return None


def _frees(view: View, edits: tuple[Edit, ...], least: float) -> bool:
    """Whether these edits free at least so many raw tokens."""
    return bool(edits) and context.raw_size(view) - context.raw_size(editing.apply(view, edits)) >= least


def _summary(state: State, step: Step, parts: list[Group], trigger: Trigger, must: bool) -> Summarise | None:
    """The oldest run of messages that is worth a summary, else neighbouring summaries that are worth one."""
    run = ladder.unpinned_run(parts, len(parts), lambda g: not g.is_note)
    messages = sum(len(g.entries) for g in run)
    tokens = sum(g.raw for g in run) * state.factor
    big = messages >= LEAF_MESSAGES or tokens >= LEAF_TOKENS
    model = state.digest_only != step.id
    if tokens >= WORTH and (big or must):
        first, last = ladder.span(run)
        return Summarise(step.id, trigger, first, last, 1, model)
    return condensable(state, step, parts, trigger, 2 if must else NEIGHBOURS)


def condensable(state: State, step: Step, parts: list[Group], trigger: Trigger, fewest: int) -> Summarise | None:
    """At least `fewest` summaries side by side, of the shallowest level that has them."""
    runs: list[list[Group]] = [[]]
    for group in parts:
        note = group.entries[0].note
        if note is None or note.level == 0:
            runs.append([])
        elif runs[-1] and _level(runs[-1][-1]) != note.level:
            runs.append([group])
        else:
            runs[-1].append(group)
    fit = [r for r in runs if len(r) >= fewest and sum(g.raw for g in r) * state.factor >= WORTH]
    if not fit:
        return None
    run = min(fit, key=lambda r: _level(r[0]))
    first, last = ladder.span(run)
    return Summarise(step.id, trigger, first, last, _level(run[0]) + 1, state.digest_only != step.id)


def _level(group: Group) -> int:
    note = group.entries[0].note
    return note.level if note else 0


def finished_steps(state: State, step: Step, others: View) -> Summarise | None:
    """At a boundary with the strategy `summary`: what finished steps have left becomes a summary."""
    parts = ladder.groups(others) if others else []
    if others:
        first_user = next((i for i, g in enumerate(parts) if g.pinned and g.entries[0].message.role == "user"), 0)
        parts = [g if i <= first_user else Group(g.entries, pinned=False) for i, g in enumerate(parts)]
    run = ladder.unpinned_run(parts, len(parts), lambda g: not g.is_note)
    if sum(g.raw for g in run) * state.factor < WORTH:
        return None
    first, last = ladder.span(run)
    return Summarise(step.id, "boundary", first, last, 1, state.digest_only != step.id)


def _no_room(state: State, room: Room, why: str) -> End:
    pinned = sum(g.raw for g in ladder.groups(state.view) if g.pinned and g.entries[0].message.role != "system") * state.factor
    floor = room.fixed + round(pinned)
    return End(
        Outcome.CONTEXT,
        f"the context does not fit: {why}. The floor is {floor:,} tokens (system message and tools {room.fixed:,}, pinned "
        f"messages {round(pinned):,}), messages take {room.used:,} of a budget of {max(0, room.budget):,}; the window is "
        f"{room.window:,} tokens by {room.origin}. Use a model with a larger window, or name it with --window.",
    )
