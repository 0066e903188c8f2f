"""The repeat guard: same calls with the same results, alone or in cycles of up to four."""

from __future__ import annotations

NUDGE_AT = 3
STUCK_AT = 5
_LONGEST_CYCLE = 4


def rounds(recent: tuple[str, ...]) -> int:
    """How many times in a row the newest call, or the newest cycle of two to four calls, came with the same results."""
    return max(_repeats(recent, period) for period in range(1, _LONGEST_CYCLE + 1))


def _repeats(recent: tuple[str, ...], period: int) -> int:
    if len(recent) < period:
        return 0
    block = recent[-period:]
    count, at = 1, len(recent) - 2 * period
    while at >= 0 and recent[at : at + period] == block:
        count, at = count + 1, at - period
    return count
