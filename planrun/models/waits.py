"""How long a server asks to wait, in seconds: every form of the header, and the hints that stand in the body."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz

_PART = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|hrs?|d|days?)(?![a-z])", re.IGNORECASE
)
_SECONDS = {"ms": 0.001, "mi": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_IN = re.compile(
    r"(?:try again|retry|available again|resets?|wait)\s*(?:in|after|for)?:?\s*(?:about|approximately|another|~)?\s*"
    r"((?:\d+(?:\.\d+)?\s*[a-z]+(?:\s*,|\s*\band\b)?\s*){1,4})",
    re.IGNORECASE,
)
_AT = re.compile(
    r"(?:try again|retry|available again|resets?|until|reached)\s*(?:at|on|after)?[:| ]\s*"
    r"(\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d)?(?:\.\d{1,6})?\s*(?:z|utc|gmt|[+-]\d\d:?\d\d)?|1\d{9}(?:\d{3})?(?!\d))",
    re.IGNORECASE,
)
# Fields of error bodies, lower case, without what joins words; the number is seconds, milliseconds where it ends so, or a moment.
_FIELDS = (
    "retrydelay", "retryafter", "retryafterseconds", "retryafterms", "resetsinseconds", "resetsin", "resetsat", "resetat",
    "xratelimitreset",
)  # fmt: skip
_EPOCH = 1e9  # anything larger is a moment, not a span


def header_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds asked for by `retry-after-ms` or `retry-after` (number, duration or date); 0 for the past; None without a
    usable one. Names of `headers` are lower case. A number too large for a float is infinity: longer than any cap."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return max(0.0, seconds)
    return span(text) if text and span(text) is not None else _until(_moment(text), now)


def reset_wait(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds until the limits that are used up come back (`x-ratelimit-reset…`); those with something left do not
    count."""
    waits = [_reset(name, value, headers, now) for name, value in headers.items() if "ratelimit" in name]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def text_wait(text: str, now: float | None = None) -> float | None:
    """Seconds in a sentence such as "try again in 1m30s" or "resets at 2026-01-31T09:00:00Z". A moment without a zone is
    UTC; one that is over says nothing."""
    found = _IN.search(text)
    seconds = span(found.group(1)) if found else None
    if seconds is not None:
        return seconds
    at = _AT.search(text)
    return (_value(at.group(1), now) or None) if at else None


def field_wait(fields: Mapping[str, object], now: float | None = None) -> float | None:
    """Seconds that a field of an error body names, such as Gemini's `retryDelay` or OpenRouter's `X-RateLimit-Reset`."""
    plain = {re.sub(r"[_-]", "", name).lower(): value for name, value in fields.items()}
    for name in _FIELDS:
        seconds = _value(str(plain[name]), now) if isinstance(plain.get(name), str | int | float) else None
        if seconds:
            return seconds / 1000 if name.endswith("ms") else seconds
    return None


def _reset(name: str, value: str, headers: Mapping[str, str], now: float | None) -> float | None:
    head, found, tail = name.partition("reset")
    # `x-ratelimit-reset-tokens` has its count in `x-ratelimit-remaining-tokens`; Anthropic puts the word last.
    left = _number(headers.get(f"{head}remaining{tail}")) if found else None
    if not found or (left is not None and left > 0):
        return None
    return _value(value, now)


def _value(text: str, now: float | None) -> float | None:
    """Seconds from a number of them, a duration, or a moment: a date, or seconds or milliseconds since 1970."""
    number = _number(text)
    if number is None:
        seconds = span(text)
        return seconds if seconds is not None else _until(_moment(text), now)
    if number > _EPOCH * 100:
        number /= 1000
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
    """Seconds in a duration such as `34s`, `1m30s` or `1 minute and 20 seconds`; None where it is anything else."""
    parts = _PART.findall(text)
    if not parts or re.sub(r"\band\b", "", _PART.sub("", text), flags=re.IGNORECASE).strip(" .,;"):
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
        parsed = parsedate_tz(text) if "," in text or not text[:4].isdigit() else None
        if parsed:
            return float(mktime_tz(parsed))
        read = datetime.fromisoformat(re.sub(r"\s*(utc|gmt)$", "Z", text.strip(), flags=re.IGNORECASE))
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _until(moment: float | None, now: float | None) -> float | None:
    return None if moment is None else max(0.0, moment - (time.time() if now is None else now))
