"""How long a server asks to wait, in seconds: every form of the header, and the hints that stand in the text."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import mktime_tz, parsedate_tz

_PART = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|d|days?)(?![a-z])", re.IGNORECASE
)
_SECONDS = {"ms": 0.001, "mi": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AGAIN = re.compile(
    r"(?:try again|retry|available again|resets?)\s*(?:in|after)\s*((?:\d+(?:\.\d+)?\s*[a-z]+\s*){1,4})", re.IGNORECASE
)
_EPOCH = 1e9  # anything larger is a moment, not a span


def header_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds asked for by `retry-after-ms` or `retry-after` (number or date); 0 for the past; None without a usable
    one. Names of `headers` are lower case. A number too large for a float is infinity: longer than any cap."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return max(0.0, seconds)
    return _until(_moment(text), now)


def reset_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds until the limits that are used up come back (`x-ratelimit-reset…`); those with something left do not
    count."""
    waits = [_reset(name, value, headers, now) for name, value in headers.items() if "ratelimit" in name]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def text_wait(text: str) -> float | None:
    """Seconds in a sentence such as "try again in 1m30s"."""
    match = _AGAIN.search(text)
    return span(match.group(1)) if match else None


def _reset(name: str, value: str, headers: Mapping[str, str], now: float | None) -> float | None:
    head, found, tail = name.partition("reset")
    # `x-ratelimit-reset-tokens` has its count in `x-ratelimit-remaining-tokens`; Anthropic puts the word last.
    left = _number(headers.get(f"{head}remaining{tail}")) if found else None
    if not found or (left is not None and left > 0):
        return None
    number = _number(value)
    if number is None:
        seconds = span(value)
        return seconds if seconds is not None else _until(_moment(value), now)
    if number > _EPOCH * 100:
        number /= 1000  # milliseconds since 1970
    return _until(number, now) if number > _EPOCH else max(0.0, number)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    # "inf" is no number of seconds, but 1e999 is one that nobody can wait for.
    literal = text is not None and "inf" in text.lower()
    return None if math.isnan(value) or literal else value


def span(text: str) -> float | None:
    """Seconds in a duration such as `34s`, `1m30s` or `20ms`; None where it is anything else."""
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip(" .,;"):
        return None
    return sum(float(amount) * _unit(unit.lower()) for amount, unit in parts)


def _unit(unit: str) -> float:
    if unit.startswith("min"):
        return 60.0
    return _SECONDS.get(unit[:2], _SECONDS[unit[0]])


def _moment(text: str | None) -> float | None:
    if not text:
        return None
    try:
        parsed = parsedate_tz(text)
        return float(mktime_tz(parsed)) if parsed else datetime.fromisoformat(text).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _until(moment: float | None, now: float | None) -> float | None:
    return None if moment is None else max(0.0, moment - (time.time() if now is None else now))
