"""What a resume of a cut log did, compared with the whole run: outputs, effects, totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planrun import api
from planrun.core.events import CallStarted, Compacted, Noted, Requested, Responded, Said
from planrun.core.plan import Step
from planrun.core.records import Record
from planrun.core.state import Spend

if TYPE_CHECKING:  # the matrix compares what it has made
    from planrun.testing.matrix import Resume
    from planrun.testing.whole import Whole


def outcome(whole: Whole, found: Resume) -> Iterator[str]:
    """Outputs, statuses and attempts of the steps, and how it ended; where the record ended before the resume did, what that ended
    with is no part of it. A limit may stop it sooner."""
    expected, state = whole.end, found.state
    if found.sooner:
        return
    for at, (step, then, now) in enumerate(zip(expected.need_plan().steps, expected.steps, state.steps, strict=True)):
        if not step.final and found.given.steps[at].status == "failed":
            continue  # a resume tries it again
        if whole.cut_short and then.status in ("todo", "in_progress"):
            continue  # it had not come to anything
        for name in ("status", "output") if _may_repeat(whole, found, step) else ("status", "attempt", "output"):
            if getattr(then, name) != getattr(now, name):
                yield f"step {step.id}: {name} is {getattr(now, name)!r}, expected {getattr(then, name)!r}"
    due, ended = expected.ended, state.ended
    if found.stopped or whole.cut_short:
        return
    if due is None or ended is None or (due.outcome, due.output) != (ended.outcome, ended.output):
        yield f"it ended {ended and f'{ended.outcome}: {ended.reason}'}, expected {due and f'{due.outcome}: {due.reason}'}"


def effects(whole: Whole, given: int, found: Resume) -> Iterator[str]:
    """Each call ran as often as in the whole run; one that was cut off and may be repeated, once more. Commands under `finally` run
    again after more work."""
    started = [r.event for r in whole.records if isinstance(r.event, CallStarted)]
    known, expected = {e.call_id: e for e in started}, Counter(e.call_id for e in started)
    before = Counter(r.event.call_id for r in whole.records[:given] if isinstance(r.event, CallStarted))
    after = found.world.executed
    repeated = {c for c in found.given.in_flight if c in after}
    again = {s.id for s in whole.end.need_plan().steps if _may_repeat(whole, found, s)} & found.world.again.keys()
    for call_id in sorted(expected.keys() | after.keys()):
        event = known.get(call_id)
        name, step = (event.name, event.step) if event else ("", None)
        times, due = before[call_id] + after[call_id], expected[call_id] + (call_id in repeated)
        off = times > due if found.sooner or step in again else times != due
        if off or (call_id in repeated and name not in _repeatable()):
            yield f"{name} ({call_id}) was asked for {times} times, expected {expected[call_id]}"
    yield from (f"step {step} ran again, and no work was done since" for step in found.world.again.keys() - again)


def _may_repeat(whole: Whole, found: Resume, step: Step) -> bool:
    """Whether a command under `finally` runs again: it had failed, or the resume did work that is not on record."""
    more = found.given.seq >= whole.worked and found.state.worked > found.given.seq
    return step.final and (more or found.given.step_state(step.id).status == "failed")


def _repeatable() -> frozenset[str]:
    return frozenset({"run", "verify", *(t.name for t in api.all_tools() if t.read_only)})


def totals(whole: Whole, given: int, found: Resume) -> Iterator[str]:
    """Requests and tokens: those of the whole run, and what the resume counts for a request that was cut off."""
    if found.extra or found.sooner or whole.killed or whole.anew(given):
        return
    expected = whole.end.spend
    for lost in _not_asked(whole, given):
        expected = _sum(expected, lost, -1)
    expected = _sum(expected, _sum(found.settled, found.given.spend, -1), 1)
    now = found.state.spend
    names = ("requests",) if expected.estimated or now.estimated else ("requests", "prompt_tokens", "completion_tokens")
    for name in names:
        if getattr(now, name) != getattr(expected, name):
            yield f"{name}: {getattr(now, name):,}, expected {getattr(expected, name):,}"


def _not_asked(whole: Whole, given: int) -> Iterator[Spend]:
    """What recorded answers behind the cut had cost that a resume does not ask for: an answer that is on record already, and
    failures of the endpoint, which a recording leaves out; and what a recorded resume counted."""
    there = answered(whole.records[:given])
    for position, record in enumerate(whole.records[given:], given):
        if isinstance(record.event, Noted) and record.event.kind == "resumed":
            yield _sum(whole.states[position + 1].spend, whole.states[position].spend, -1)
        if not isinstance(record.event, Responded):
            continue
        beside = record.event.purpose == "background"
        failed = record.event.error is not None and record.event.purpose == "step" and not _taught(whole.records, position)
        if failed or (there and not beside):
            yield _sum(whole.states[position + 1].spend, whole.states[position].spend, -1)
        there = there and beside


def answered(given: Sequence[Record]) -> bool:
    """Whether the last request has its answer on record, but not what it cost."""
    for record in reversed(given):
        match record.event:
            case Responded(purpose=purpose) if purpose != "background":
                return False
            case Said(origin="model") | Compacted(strategy="summary") | Noted(kind="summary"):
                return True
            case Requested(purpose=purpose) if purpose != "background":
                return False
    return False


def unanswered(records: Sequence[Record]) -> tuple[int, str] | None:
    """Record and digest of a step's request, the last one, that got no answer."""
    for record in reversed(records):
        match record.event:
            case Said(origin="model") | Responded(purpose="step", error=None):
                return None
            case Requested(purpose="step", digest=digest):
                return record.seq, digest
    return None


def _taught(records: Sequence[Record], position: int) -> bool:
    follower = records[position + 1].event if position + 1 < len(records) else None
    return follower is not None and follower.type == "limit"


def _sum(one: Spend, other: Spend, sign: int) -> Spend:
    return Spend(
        requests=one.requests + sign * other.requests,
        prompt_tokens=one.prompt_tokens + sign * other.prompt_tokens,
        completion_tokens=one.completion_tokens + sign * other.completion_tokens,
        estimated=one.estimated and other.estimated if sign < 0 else one.estimated or other.estimated,
    )
