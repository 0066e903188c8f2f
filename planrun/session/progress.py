"""How far a session came, without folding it: the last status of each step, read from lines of status changes alone."""

from __future__ import annotations

import json
from typing import Any

from planrun.core.state import PlanReader
from planrun.errors import PlanInvalid
from planrun.session.store import Found

_CHEAP = 4 << 20  # bytes of a log that are looked through
_MARK = b'"type":"step"'


def of(found: Found, read_plan: PlanReader) -> tuple[int | None, int | None, str | None]:
    """Steps done, steps in all, and the plan's name; None for what cannot be had at once."""
    try:
        plan = read_plan(found.header)
    except PlanInvalid:
        return None, None, None
    return _done(found), len(plan.steps), plan.name


def _done(found: Found) -> int | None:
    try:
        if found.path.stat().st_size > _CHEAP:
            return None
        lines = found.path.read_bytes().split(b"\n")
    except OSError:
        return None
    status: dict[str, str] = {}
    for line in lines:
        if _MARK in line[:80]:
            body = _decoded(line)
            if body is not None:
                status[body["step"]] = body["status"]
    return sum(s in ("done", "skipped") for s in status.values())


def _decoded(line: bytes) -> Any:
    try:
        body = json.loads(line)
    except ValueError:
        return None
    return (
        body if isinstance(body, dict) and isinstance(body.get("step"), str) and isinstance(body.get("status"), str) else None
    )
