"""How far a session came, without folding it: the last status of each step, from its snapshot where the log is long, and from lines of
status changes alone."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from planrun.core.events import Session
from planrun.core.records import decode
from planrun.core.state import PlanReader
from planrun.errors import PlanInvalid
from planrun.session import snapshot
from planrun.session.raw import opened
from planrun.session.store import Found

_CHEAP = 4 << 20  # bytes of a log that are looked through
_MARK = re.compile(rb'"type":"(?:step|session)"')


def of(found: Found, read_plan: PlanReader) -> tuple[int | None, int | None, str | None]:
    """Steps done, steps in all, and the plan's name; None for what cannot be had at once."""
    try:
        header, statuses = _standing(found, read_plan)
        plan = read_plan(header)
    except PlanInvalid:
        return None, None, None
    done = None if statuses is None else sum(statuses.get(s.id) in ("done", "skipped") for s in plan.steps)
    return done, len(plan.steps), plan.name


def _standing(found: Found, read_plan: PlanReader) -> tuple[Session, dict[str, str] | None]:
    """The session record in force, which an adopted plan renews, and the last status of each step."""
    header, statuses, offset = found.header, dict[str, str](), 0
    try:
        with opened(found.path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > _CHEAP:
                state, reader = snapshot.load(found.path, file, read_plan)
                offset = reader.offset
                if size - offset > _CHEAP:
                    return header, None
                header = state.header or header
                statuses = {s.id: now.status for s, now in zip(state.need_plan().steps, state.steps, strict=True)}
            file.seek(offset)
            lines = file.read().split(b"\n")
    except OSError:
        return header, None
    for line in lines:
        if _MARK.search(line, 0, 80):
            match _decoded(line):
                case {"type": "step", "step": str(step), "status": str(status)}:
                    statuses[step] = status
                case {"type": "session"} as body:
                    header = _header(body) or header
    return header, statuses


def _header(body: dict[str, Any]) -> Session | None:
    try:
        event = decode(body)
    except (ValueError, TypeError, KeyError):
        return None
    return event if isinstance(event, Session) else None


def _decoded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
