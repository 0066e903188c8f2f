"""Performing a compaction by hand: summaries as anywhere else, but all of them in one record, and only if there is a gain."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

from planrun.core.actions import Compact, Summarise
from planrun.core.edits import Edit
from planrun.core.events import Compacted, Event, Noted
from planrun.core.state import State
from planrun.core.strategies import manual
from planrun.runner import hooking, summarising
from planrun.runner.compacting import compacted
from planrun.runner.world import World


def compact(world: World, state: State, actions: tuple[Summarise, ...]) -> Iterator[Event]:
    """Ask the hooks, make the summaries, record them. `actions` are those that are worth it."""
    denial = yield from hooking.may_compact(world, state, actions[0])
    if denial is not None:
        yield Noted("deferred", f"a hook put off the compaction (manual): {denial}", actions[0].step)
        return
    edits: list[Edit] = []
    for action in actions:
        made = yield from summary(world, state, action)
        edits += manual.worthwhile(state.view, made) or without_model(world, state, action)
    yield record_of(state, actions[0].step, tuple(edits))


def record_of(state: State, step: str, edits: tuple[Edit, ...]) -> Compacted:
    return compacted(state, Compact(step, "summary", "manual", edits))


def summary(world: World, state: State, action: Summarise) -> Generator[Event, None, tuple[Edit, ...]]:
    """Each attempt is on record; returns the edits that the last stair came to."""
    for event in summarising.summarise(world, state, action):
        if isinstance(event, Compacted):
            return event.edits
        yield event
    return without_model(world, state, action)


def without_model(world: World, state: State, action: Summarise) -> tuple[Edit, ...]:
    """What the digest comes to, which costs nothing."""
    for event in summarising.summarise(world, state, replace(action, model=False)):
        if isinstance(event, Compacted):
            return event.edits
    return ()
