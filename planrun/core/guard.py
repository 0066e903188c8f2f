"""The repeat guard: same calls with the same results, alone or in cycles of up to four."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress

NUDGE_AT = 3
STUCK_AT = 5
_LONGEST_CYCLE = 4

# What changes from one try to the next and says nothing: a counter that is named as one, a pause, and in results the time of day
# and how long it took.
_COUNTER = re.compile(r"\b(attempt|try|retry|round|iteration|poll|pid)\W{0,2}\d+|\bsleep \d+(?:\.\d+)?[smh]?", re.IGNORECASE)
_TIME = re.compile(r"\d(?:\d:\d\d(?::\d\d)?(?:\.\d+)?|\d{3}-\d\d-\d\d|[\d.]*\s?(?:ns|us|µs|ms|s|secs?|seconds?)\b)")
_ENDS = 2_000  # characters of a result, at its beginning and at its end, in which something may be cosmetic


def fingerprint(tool: str, arguments: str, result: str) -> str:
    """Equal for the same tool with the same arguments and the same result, whatever the order of keys; what is cosmetic aside."""
    with suppress(ValueError):
        arguments = json.dumps(json.loads(arguments), sort_keys=True)
    head, middle, tail = result[:_ENDS], result[_ENDS:-_ENDS], result[max(_ENDS, len(result) - _ENDS) :]
    parts = (tool, _COUNTER.sub("~", arguments), _plain(head), middle, _plain(tail))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _plain(result: str) -> str:
    return _TIME.sub("~", _COUNTER.sub("~", result))


def rounds(recent: tuple[str, ...]) -> int:
    """How many times in a row the newest call, or the newest cycle of two to four calls, came with the same results."""
    return max(_repeats(recent, period) for period in range(1, _LONGEST_CYCLE + 1))


def nudged(recent: tuple[str, ...]) -> bool:
    """Whether the newest result told the model that it repeats itself."""
    return rounds(recent) >= NUDGE_AT


def stuck(recent: tuple[str, ...], *, warned: bool) -> bool:
    """Whether the model goes on repeating itself although it was told (`warned`): calls of one message are made before their
    results are read."""
    return warned and rounds(recent) >= STUCK_AT


def _repeats(recent: tuple[str, ...], period: int) -> int:
    if len(recent) < period:
        return 0
    block = recent[-period:]
    count, at = 1, len(recent) - 2 * period
    while at >= 0 and recent[at : at + period] == block:
        count, at = count + 1, at - period
    return count
