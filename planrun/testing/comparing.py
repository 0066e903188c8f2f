"""What a resume of a cut log did, compared with the whole run: outputs, effects, totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from planrun import api
from planrun.core.events import CallStarted, Compacted, Noted, Requested, Responded, Said
from planrun.core.records import Record
from planrun.core.state import Spend, State

if TYPE_CHECKING:  # the matrix compares what it has made
    from planrun.testing.matrix import Resume, Whole


def outcome(expected: State, found: State) -> Iterator[str]:
    """Outputs, statuses and attempts of the steps, and how it ended."""
    for step, then, now in zip(expected.need_plan().steps, expected.steps, found.steps, strict=True):
        for name in ("status", "attempt", "output"):
            if getattr(then, name) != getattr(now, name):
                yield f"step {step.id}: {name} is {getattr(now, name)!r}, expected {getattr(then, name)!r}"
    due, ended = expected.ended, found.ended
    if due is None or ended is None or (due.outcome, due.output) != (ended.outcome, ended.output):
        yield f"it ended {ended and f'{ended.outcome}: {ended.reason}'}, expected {due and f'{due.outcome}: {due.reason}'}"


def effects(whole: Whole, given: int, found: Resume) -> Iterator[str]:
    """Each call ran as often as in the whole run; one that was cut off and may be repeated, once more."""
    names = {r.event.call_id: r.event.name for r in whole.records if isinstance(r.event, CallStarted)}
    expected = Counter(r.event.call_id for r in whole.records if isinstance(r.event, CallStarted))
    before = Counter(r.event.call_id for r in whole.records[:given] if isinstance(r.event, CallStarted))
    after = found.world.executed if found.world else Counter()
    repeated = {c for c in found.given.in_flight if c in after}
    for call_id in sorted(expected.keys() | after.keys()):
        name = names.get(call_id, "")
        times, due = before[call_id] + after[call_id], expected[call_id] + (call_id in repeated)
        if times != due or (call_id in repeated and name not in _repeatable()):
            yield f"{name} ({call_id}) was asked for {times} times, expected {expected[call_id]}"


def _repeatable() -> frozenset[str]:
    return frozenset({"run", "verify", *(t.name for t in api.all_tools() if t.read_only)})


def totals(whole: Whole, given: int, found: Resume) -> Iterator[str]:
    """Requests and tokens: those of the whole run, and what the resume counts for a request that was cut off."""
    if found.extra:
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
    failures of the endpoint, which a recording leaves out."""
    there = answered(whole.records[:given])
    for position, record in enumerate(whole.records[given:], given):
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
