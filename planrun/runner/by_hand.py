"""Performing a compaction by hand: summaries as anywhere else, but all of them in one record, and only if there is a gain."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core.actions import Compact, Summarise
from planrun.core.edits import Edit
from planrun.core.events import Compacted, Event, Noted
from planrun.core.state import State
from planrun.core.strategies import manual
from planrun.runner import hooking
from planrun.runner.compacting import compacted
from planrun.runner.summarising import insert_of, source_of, written
from planrun.runner.world import World


def compact(world: World, state: State, actions: tuple[Summarise, ...]) -> Iterator[Event]:
    """Ask the hooks, make the summaries, record them. `actions` are those that are worth it with a digest."""
    denial = yield from hooking.may_compact(world, state, actions[0])
    if denial is not None:
        yield Noted("deferred", f"a hook put off the compaction (manual): {denial}", actions[0].step)
        return
    edits: list[Edit] = []
    model = True
    for action in actions:
        source = source_of(state, action)
        text = (yield from written(world, state, action, source)) if model else None
        model = text is not None  # one that failed is not waited for again
        edits += manual.worthwhile(state.view, (insert_of(source, text),)) or with_digest(state, action)
    yield record_of(state, actions[0].step, tuple(edits))


def with_digest(state: State, action: Summarise) -> tuple[Edit, ...]:
    """What the digest comes to, which costs nothing; nothing where it is no gain."""
    return manual.worthwhile(state.view, (insert_of(source_of(state, action), None),))


def record_of(state: State, step: str, edits: tuple[Edit, ...]) -> Compacted:
    return compacted(state, Compact(step, "summary", "manual", edits))
