"""What the model saw with one request, or would see with the next: the messages, and the proof that they are those on record."""

from __future__ import annotations

from dataclasses import dataclass

from planrun.core import context
from planrun.core.context import Entry
from planrun.core.plan import Step
from planrun.core.room import Room, room_of, tools_raw
from planrun.core.state import State


def step_of(state: State) -> Step:
    """The step under way, else the next one, else the last."""
    steps = state.need_plan().steps
    return steps[state.current if state.current is not None else min(state.frontier, len(steps) - 1)]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that is on record: number `turn` of those to steps, in record `record`, with the `digest` that it carries.
    `same_tools` says whether the tools that it offered are still what they were."""

    turn: int
    record: int
    digest: str
    same_tools: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """`state` is what the request of `step` finds, `digest` names its messages with today's tools; records up to `logged` are in
    the log. Without `sent` it is the next one; `before_it` says what comes before it, and then its messages may still change."""

    state: State
    step: Step
    digest: str
    logged: int
    sent: Sent | None = None
    before_it: str = ""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(context.entries(self.state.view))

    @property
    def room(self) -> Room:
        return room_of(self.state, self.step)

    @property
    def proved(self) -> bool | None:
        """Whether these are the messages that were sent, byte for byte. None where nothing is on record, or the tools, which
        the digest covers too, are not the ones of then."""
        if self.sent is None:
            return None
        if self.sent.digest == self.digest:
            return True
        return False if self.sent.same_tools else None

    @property
    def tools_raw(self) -> float:
        return tools_raw(self.state, self.step)

    def tokens(self, raw: float) -> int:
        """Raw tokens by what was known of the model's own count."""
        return round(raw * self.state.factor)

    @property
    def total(self) -> int:
        return self.tokens(round(context.raw_size(self.state.view) + self.tools_raw))
