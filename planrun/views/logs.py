"""A session log as text, one line a record, from the records alone: `planrun logs`."""

from __future__ import annotations

import time
from typing import assert_never

from planrun.core.events import (
    Approval,
    CallEnded,
    CallStarted,
    Compacted,
    Ended,
    Hooked,
    LimitNeared,
    Noted,
    Requested,
    Responded,
    Said,
    Session,
    StepChanged,
    Stopped,
    Unknown,
)
from planrun.core.records import Record
from planrun.views.edits import boundary
from planrun.views.words import amount, duration, money, one_line

_WIDE = 300  # characters


def log_line(record: Record) -> str:
    """`   12  14:03:07  survey      tool_start  Bash`: number, local time, step, type, what happened."""
    event = record.event
    day = time.strftime("%m-%d %H:%M:%S", time.localtime(record.timestamp))
    kind = str(event.body.get("type", "?")) if isinstance(event, Unknown) else event.type
    step = getattr(event, "step", None) or ""
    place = f"{record.seq:>5}  {day}  {one_line(step, 24):<12}  {one_line(kind, 16):<10}"
    return f"{place}  {one_line(_what(record), _WIDE)}".rstrip()


def _what(record: Record) -> str:  # noqa: C901 - a case for each event
    match record.event:
        case Session() as event:
            return f"session {event.session} of {event.plan_path} in {event.cwd}, model {event.model or 'none'}"
        case Said() as event:
            return _said(event)
        case Requested() as event:
            purpose = f", for a {event.purpose}" if event.purpose != "step" else ""
            return f"{event.messages} messages, {amount(event.tokens)} tokens{purpose}"
        case Responded() as event:
            return _responded(event)
        case CallStarted() as event:
            return f"{event.name} {event.call_id}"
        case CallEnded() as event:
            return _ended(event)
        case StepChanged() as event:
            attempt = f" (attempt {event.attempt})" if event.attempt else ""
            return f"{event.status}{attempt}" + (f": {event.note}" if event.note else "")
        case Compacted() as event:
            return boundary(event)
        case Approval() as event:
            return f"{event.decision}: {event.text}" + (f" ({event.by})" if event.by else "")
        case Hooked() as event:
            return f"{event.event} {event.status}: {event.text or event.command}"
        case LimitNeared() as event:
            return f"{event.limit}: {event.used:g} of {event.maximum:g}"
        case Stopped() as event:
            return f"{event.outcome}: {event.reason}"
        case Noted() as event:
            return f"{event.kind}: {event.text}"
        case Ended() as event:
            return f"{event.outcome}, exit code {event.exit_code}: {event.reason}"
        case Unknown():
            return "(a type that this version does not know)"
        case _:
            assert_never(record.event)


def _said(event: Said) -> str:
    calls = [f"{c['function']['name']} {c['function']['arguments']}" for c in event.tool_calls]
    status = f" ({event.status})" if event.status else ""
    who = f"{event.role} {event.name or ''}".strip() + status
    return f"{who}: {' '.join(filter(None, [event.content or '', *(f'-> {call}' for call in calls)]))}"


def _responded(event: Responded) -> str:
    if event.error is not None:
        return f"failed after {duration(event.seconds)}, {event.retries} retries: {event.error}"
    usage = event.usage or {}
    counts = ", ".join(f"{amount(v)} {k.replace('_', ' ')}" for k, v in usage.items() if v is not None) or "usage unknown"
    cost = f", {money(event.cost_usd)}" if event.cost_usd is not None else ""
    retries = f", {event.retries} retries" if event.retries else ""
    return f"after {duration(event.seconds)}{retries}: {counts}{cost}" + (
        f", {event.finish_reason}" if event.finish_reason else ""
    )


def _ended(event: CallEnded) -> str:
    took = f" after {duration(event.seconds)}" if event.seconds is not None else ""
    return f"{event.name} {event.status}{took}" + (f": {event.text}" if event.text else "")
