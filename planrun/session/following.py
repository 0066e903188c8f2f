"""Folding a log that may not fit itself: a record that the state before it has no place for is named, with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from planrun.core.events import Event
from planrun.core.fold import apply
from planrun.core.records import Record
from planrun.core.state import PlanReader, State
from planrun.errors import PlanInvalid, SessionDamaged
from planrun.session import snapshot
from planrun.session.raw import opened
from planrun.session.store import records

MISFITS = (PlanInvalid, LookupError, ValueError, TypeError, AttributeError, ArithmeticError)  # what `apply` may raise


def follow(
    path: Path, read_plan: PlanReader, found: Iterable[Record] | None = None, state: State = State()
) -> Iterator[tuple[Record, State]]:
    """Each record of the log at `path`, or those of it in `found` that come after `state`, with the state that it leads to.
    Raises SessionDamaged."""
    for record in records(path) if found is None else found:
        try:
            state = apply(state, record, read_plan)
        except MISFITS as error:
            why = misfit(state, record.event, error)
            raise SessionDamaged(f"{path}, line {record.seq}: {why}. {advice(path)}", record.seq) from error
        yield record, state


def folded(path: Path, read_plan: PlanReader, found: Iterable[Record] | None = None, state: State = State()) -> State:
    """The state at the end of it. Raises SessionDamaged."""
    for _, now in follow(path, read_plan, found, state):
        state = now
    return state


def latest(path: Path, read_plan: PlanReader) -> State:
    """The same state by way of the snapshot, where one fits: only what was written after it is read. For looking; raises SessionDamaged."""
    try:
        with opened(path) as file:
            state, reader = snapshot.load(path, file, read_plan)
            return folded(path, read_plan, reader, state)
    except OSError as error:
        raise SessionDamaged(f"cannot read the session log {path}: {error.strerror or error}") from error


def misfit(state: State, event: Event, error: Exception) -> str:
    """Why `state` has no place for `event`, where folding it raised `error`."""
    if isinstance(error, PlanInvalid):
        return f"the plan in it is not one: {error.faults[0].message if error.faults else error}"
    if state.plan is None:
        return f"a record of type {event.type} stands before the session record, which holds the plan"
    step = getattr(event, "step", None) or getattr(event, "boundary", None)
    if step is not None and step not in state.plan.index:
        return f"it belongs to step {step!r}, which the plan does not have"
    return f"a record of type {event.type} does not fit what was before it ({type(error).__name__}: {error})"


def advice(path: Path) -> str:
    return f"Nothing was changed; `planrun doctor {path.stem}` says more"
