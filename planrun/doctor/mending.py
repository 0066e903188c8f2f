"""What a log that has lost records needs so that its session can go on, as events to append. Pure.

Nothing is invented: an attempt whose messages have a gap counts as failed, and the next one is told so; what a finished step
left of a conversation that no endpoint would take leaves the context."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planrun.core import context, pairing, prompts
from planrun.core.context import Segment, View
from planrun.core.edits import Drop
from planrun.core.events import Compacted, Event, Said, StepChanged
from planrun.core.messages import ToolCall
from planrun.core.state import State

GAP = "part of the record of this attempt is lost; what it did may have taken effect"
Append = Callable[[Event], State]


def mend(state: State, lost_at: int, append: Append) -> State:
    """The state once `append` has appended what it takes; `lost_at` is the number of the newest record that is lost."""
    for step in _reopened(state):
        state = append(step)
    for segment in _broken(state.view):
        for event in _without(state, segment):
            state = append(event)
    for result in _unsure(state, lost_at):
        state = append(result)
    return state


def _reopened(state: State) -> Iterator[StepChanged]:
    """Steps that nobody knows the end of, and the one under way behind them, which may need what they leave."""
    reopened = False
    for position, (step, now) in enumerate(zip(state.need_plan().steps, state.steps, strict=True)):
        if now.status == "in_progress" and position != state.current:
            reopened = True
            yield StepChanged(step.id, "todo", now.attempt, GAP)
        elif reopened and position == state.current:
            yield StepChanged(step.id, "todo", now.attempt, "an earlier step has to be run again")


def _broken(view: View) -> list[Segment]:
    """The segments that have to go so that the rest is a list that an endpoint takes."""
    kept: View = ()
    gone: list[Segment] = []
    headless = bool(view) and view[0].step is not None  # the system message is lost: everything has to be said anew
    for segment in view:
        over = segment is not view[-1] and bool(segment.faults or (segment.step and segment.ends[1] != "assistant"))
        if segment.step is not None and (headless or over or pairing.faults((*kept, segment), resting=True)):
            gone.append(segment)
        else:
            kept = (*kept, segment)
    return gone


def _without(state: State, segment: Segment) -> Iterator[Event]:
    """The events that take a step's messages out of the context, and begin it anew where it was not over."""
    step = state.need_plan().step(segment.step or "")
    now = state.step_state(step.id)
    before = context.count(state.view)
    spans = [e.span for e in segment.entries]
    yield Compacted(
        strategy="drop",
        trigger="repair",
        edits=(Drop(min(a for a, _ in spans), max(b for _, b in spans)),),
        replaces_count=len(segment.entries),
        messages_before=before,
        messages_after=before - len(segment.entries),
        tokens_before=round(context.raw_size(state.view) * state.factor),
        tokens_after=round((context.raw_size(state.view) - segment.raw) * state.factor),
    )
    if now.status not in ("done", "skipped", "failed"):
        # The next attempt is told of one that failed; where the plan goes on after a failure there would be none.
        if now.status == "in_progress" and step.on_failure == "stop":
            yield StepChanged(step.id, "failed", now.attempt, GAP, reason="step_failed")
        else:
            yield StepChanged(step.id, "todo", now.attempt, GAP)


def _unsure(state: State, lost_at: int) -> Iterator[Said]:
    """Results for calls that wait for one, if what is lost may have been their beginning or their end."""
    calls = context.unanswered(state.view)
    segment = state.view[-1] if state.view else None
    if segment is None or segment.step is None or not calls or segment.entries[-1].seq > lost_at:
        return
    for call in calls:
        yield _interrupted(state, segment.step, call)


def _interrupted(state: State, step: str, call: ToolCall) -> Said:
    return Said(
        role="tool",
        content=prompts.INTERRUPTED,
        origin="tool",
        step=step,
        attempt=state.step_state(step).attempt,
        tool_call_id=call.id,
        name=call.name,
        status="interrupted",
    )
