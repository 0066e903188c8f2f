"""Steps under pressure without a run: states with any history in them, and what `relieve` does to them until it is content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from planrun.core import context, pressure
from planrun.core.actions import Action, Compact, End, Summarise
from planrun.core.context import Entry, Segment, View
from planrun.core.events import Compacted, Event, Noted, Session
from planrun.core.fold import apply
from planrun.core.messages import Message, ToolCall
from planrun.core.plan import Json, Step
from planrun.core.records import Record
from planrun.core.room import MARGIN, RESERVE
from planrun.core.state import State, StepState
from planrun.runner import compacting, summarising
from tests.strategies import PLAN, STEPS, Draw

STEP: Step = PLAN.steps[2]
SUMMARY = "Facts: seen\nDone: read\nFiles: none\nOpen: none"
TOOLS = {"Bash": 60}


def state_of(view: View, window: int, **more: Any) -> State:
    """A state in the midst of the last step with this history. `window` in tokens."""
    settings: dict[str, Json] = {"window": window, **more.pop("settings", {})}
    header = Session(1, "s", "/w", "/w/p.yaml", "", "d", {}, "m", settings, tools=TOOLS)
    steps = (*(StepState("done", 1) for _ in STEPS[:-1]), StepState("in_progress", 1, briefed=True))
    last = max((e.seq for e in context.entries(view)), default=0)
    return State(header=header, plan=PLAN, seq=last, settings=settings, model="m", steps=steps, current=2, view=view, **more)


def window_for(budget: int, view: View) -> int:
    """The window that leaves so many tokens for the messages, as good as exactly."""
    fixed = next(e.raw for e in context.entries(view)) + sum(TOOLS.values())
    window = round((budget + fixed) / (1 - MARGIN - 1 / 4))
    return window if window < 4 * RESERVE else round((budget + fixed + RESERVE) / (1 - MARGIN))


def built(*turns: tuple[str, ...] | str, system: str = "Be brief.") -> View:
    """One step's history: a text is what the model says, to be nudged for it; a tuple holds the results of calls made at once."""
    seq, entries = iter(range(3, 100_000)), []
    for number, turn in enumerate(turns):
        if isinstance(turn, str):
            entries += [
                Entry(next(seq), Message("assistant", turn), "model"),
                Entry(next(seq), Message("user", "Go on."), "runner"),
            ]
            continue
        calls = tuple(ToolCall(f"c{number}.{n}", "Bash", json.dumps({"command": f"do {number}.{n}"})) for n in range(len(turn)))
        entries.append(Entry(next(seq), Message("assistant", None, calls), "model"))
        entries += [Entry(next(seq), Message("tool", r, (), c.id), "tool", "Bash") for r, c in zip(turn, calls, strict=True)]
    return (
        Segment(None, (Entry(1, Message("system", system), "runner"),)),
        Segment("three", (Entry(2, Message("user", "Goal: all of it.\n\nStep three."), "user"), *entries)),
    )


# --- any history --------------------------------------------------------------------------------------------------------

short = st.text(max_size=12)
long = st.builds(lambda piece, n: piece * n, st.text(min_size=1, max_size=8), st.integers(1, 1500))
results = st.one_of(short, st.text(max_size=300), long)
arguments = st.dictionaries(short, st.one_of(short, long), max_size=2).map(lambda body: json.dumps(body, ensure_ascii=False))
tools = st.sampled_from(["Bash", "Read", "UpdatePlanStep"])


@st.composite
def histories(draw: Draw) -> View:
    """Up to three steps, the last one under way: it ends with a user message or a tool result."""
    seq = iter(range(2, 10_000))
    segments = [Segment(None, (Entry(1, Message("system", draw(short) or "S"), "runner"),))]
    for index in range(draw(st.integers(0, 2)), 3):
        under_way = index == 2
        entries = [Entry(next(seq), Message("user", f"Step {STEPS[index]}: {draw(short)}"), "user")]
        for turn in range(draw(st.integers(0, 5))):
            entries += draw(_turn(seq, f"{index}.{turn}", draw(st.integers(1, 3))))
        if not under_way:
            entries.append(Entry(next(seq), Message("assistant", f"Step {STEPS[index]} is done."), "runner"))
        segments.append(Segment(STEPS[index], tuple(entries)))
    return tuple(segments)


@st.composite
def _turn(draw: Draw, seq: Iterator[int], name: str, calls: int) -> list[Entry]:
    if draw(st.integers(0, 5)) == 0:
        said = Message("assistant", draw(long) if draw(st.booleans()) else "Well.")
        if not (said.content or "").strip():
            said = Message("assistant", "Hm.")
        return [Entry(next(seq), said, "model"), Entry(next(seq), Message("user", "Call a tool."), "runner")]
    made = tuple(ToolCall(f"c{name}.{n}", draw(tools), draw(arguments)) for n in range(calls))
    out = [Entry(next(seq), Message("assistant", draw(st.none() | short), made), "model")]
    return out + [Entry(next(seq), Message("tool", draw(results), (), c.id), "tool", c.name) for c in made]


# --- until it is content ------------------------------------------------------------------------------------------------

Answer = Callable[[Summarise], str | None]


@dataclass
class Relieved:
    """What came of it: the state, the actions, the end where there was one, and how often a model was asked."""

    state: State
    actions: list[Action]
    end: End | None
    events: list[Event]

    @property
    def asked(self) -> int:
        return sum(isinstance(a, Summarise) and a.model for a in self.actions)


def relieved(state: State, answer: Answer = lambda action: None, most: int = 400) -> Relieved:
    """Do what `relieve` wants until it wants nothing more. `answer` plays the summariser: None for a summary that is refused."""
    actions: list[Action] = []
    events: list[Event] = []
    while (action := pressure.relieve(state, STEP)) is not None:
        actions.append(action)
        assert len(actions) < most, "it does not come to an end"
        if isinstance(action, End):
            return Relieved(state, actions, action, events)
        for event in performed(state, action, answer):
            events.append(event)
            state = apply(state, Record(state.seq + 1, 0.0, event), lambda header: PLAN)
    return Relieved(state, actions, None, events)


def performed(state: State, action: Action, answer: Answer) -> Iterator[Event]:
    if isinstance(action, Compact):
        yield compacting.compacted(state, action)
        return
    assert isinstance(action, Summarise)
    text = answer(action) if action.model else None
    if action.model and text is None:
        yield Noted("summary", "refused", action.step)
        if action.tight:
            yield Noted("summary_failed", "given up", action.step)
        return
    yield from summarising.committed(state, action, summarising.source_of(state, action), text)


def overflowing(state: State, rounds: int = 1) -> State:
    return replace(state, overflows=rounds)


def compactions(events: list[Event]) -> list[Compacted]:
    return [e for e in events if isinstance(e, Compacted)]
