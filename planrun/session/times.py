"""Moments that people write, as Unix seconds. A time without an offset, and a date, are local."""

from __future__ import annotations

import re
from datetime import datetime

from planrun.core.archive import Search, Unclear

_AGE = re.compile(r"([0-9]{1,6})\s*(min|h|d|w|m|y)")
_SECONDS = {"min": 60, "h": 3_600, "d": 86_400, "w": 604_800, "m": 2_592_000, "y": 31_536_000}


def span(asked: Search, now: float) -> tuple[float | None, float | None]:
    """From when on, and before when. Raises Unclear."""
    starts = []
    if asked.last:
        starts.append(now - age(asked.last))
    if asked.since:
        starts.append(moment(asked.since))
    return max(starts, default=None), moment(asked.before) if asked.before else None


def age(text: str) -> float:
    """`30min`, `6h`, `7d`, `2w`, `1m` (30 days), `1y` in seconds."""
    found = _AGE.fullmatch(text.strip())
    if not found:
        raise Unclear(f"expected an age such as 30min, 6h, 7d, 2w, 1m (a month), found {text[:60]!r}")
    return int(found[1]) * _SECONDS[found[2]]


def moment(text: str) -> float:
    """`2026-01-31`, `2026-01-31T09:15`, with any offset: `Z`, `+05:30`, `-0800`."""
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise Unclear(
            f"expected a date such as 2026-01-31 or a time such as 2026-01-31T09:15:00+01:00, found {text[:60]!r}"
        ) from None
