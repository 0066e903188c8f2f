"""How a session has used its context, from its records: what was compacted and put off, how much of each request was the same
prefix as the one before, which is what a provider's prompt cache can hold."""

from __future__ import annotations

from dataclasses import dataclass

from planrun.core import context
from planrun.core.context import View
from planrun.core.events import Compacted, Noted, Requested
from planrun.core.plan import Step
from planrun.core.records import Record
from planrun.core.room import Room, room_of
from planrun.core.seen import step_of
from planrun.core.state import State
from planrun.core.strategies import ladder


@dataclass(frozen=True, slots=True)
class Compaction:
    """The last one: when (Unix seconds) and what came of it."""

    timestamp: float
    event: Compacted


@dataclass(frozen=True, slots=True)
class Use:
    """`shares` are of requests to steps, the first one left out: from 0 to 1 by tokens. `deferred` says why each compaction that
    was put off was."""

    state: State
    step: Step | None
    last: Compaction | None
    deferred: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def room(self) -> Room | None:
        return room_of(self.state, self.step) if self.step is not None else None

    @property
    def summaries(self) -> dict[int, int]:
        """How many summaries stand in the context, by level."""
        found: dict[int, int] = {}
        for note in self._notes():
            found[note.level] = found.get(note.level, 0) + 1
        return dict(sorted(found.items()))

    @property
    def deterministic(self) -> int:
        """How many of them no model wrote."""
        return sum(note.deterministic for note in self._notes())

    def _notes(self) -> list[context.Note]:
        notes = [e.note for e in context.entries(self.state.view)]
        return [n for n in notes if n is not None and n.level and not n.filler]

    @property
    def pinned(self) -> int:
        """Tokens of the messages that no compaction takes away, the system message among them."""
        raw = sum(g.raw for g in ladder.groups(self.state.view) if g.pinned)
        return round(raw * self.state.factor)


class Observer:
    """Sees every record of a session, with the state after it."""

    def __init__(self) -> None:
        self._last: Compaction | None = None
        self._deferred: list[str] = []
        self._shares: list[float] = []
        self._sent: tuple[View, tuple[str, ...] | None] | None = None

    def __call__(self, record: Record, state: State) -> None:
        match record.event:
            case Compacted() as event:
                self._last = Compaction(record.timestamp, event)
            case Noted(kind="deferred", text=text):
                self._deferred.append(text)
            case Requested(purpose="step", step=str(step)):
                tools = state.need_plan().step(step).tools
                if self._sent is not None:
                    view, offered = self._sent
                    # Tools stand before the messages: others leave nothing in common.
                    self._shares.append(share(view, state.view) if offered == tools else 0.0)
                self._sent = state.view, tools
            case _:
                pass

    def use(self, state: State) -> Use:
        step = step_of(state) if state.plan is not None else None
        return Use(state, step, self._last, tuple(self._deferred), tuple(self._shares))


def share(old: View, new: View) -> float:
    """The part of `new`, by tokens, that is the same as the beginning of `old`."""
    same = 0.0
    for before, now in zip(old, new, strict=False):
        if before is now or before.digests == now.digests:
            same += now.raw
            continue
        for a, b in zip(before.entries, now.entries, strict=False):
            if a.digest != b.digest:
                break
            same += b.raw
        break
    size = context.raw_size(new)
    return same / size if size else 0.0
