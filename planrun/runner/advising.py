"""Advice to whoever runs a session that has grown too large for its own good: once in its life, as a note in the log."""

from __future__ import annotations

from collections.abc import Iterator

from planrun.core.asides import NEXT_TO_NOTHING
from planrun.core.events import Noted
from planrun.core.state import State
from planrun.runner.world import World

LARGE = 20_000_000  # bytes of a log
MEAGRE = 3  # compactions in a row that free next to nothing


def advice(world: World, state: State) -> Iterator[Noted]:
    """The advice to fork, where there is a reason for it that was not told before. The last record of a run is how it ended, so
    nothing comes after that one."""
    if state.advised or state.ended is not None or state.header is None:
        return
    why = _reason(world, state)
    if why is not None:
        name = state.header.session
        yield Noted("fork", f"{why}. Stop it and `planrun fork {name}`: a new session goes on from a summary of this one.")


def _reason(world: World, state: State) -> str | None:
    size = world.log_bytes()
    if size > LARGE:
        return f"the session log has grown to {size / 1e6:,.0f} MB"
    if state.meagre >= MEAGRE:
        return f"compaction no longer keeps up: the last {state.meagre} freed less than {NEXT_TO_NOTHING:.0%} each"
    return None
