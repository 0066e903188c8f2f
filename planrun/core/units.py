"""Numbers and times that people write: in plans, settings, options, variables. ValueError says what is expected."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_DURATION = re.compile(r"(?:(?P<d>[0-9.]+)d)?(?:(?P<h>[0-9.]+)h)?(?:(?P<m>[0-9.]+)m)?(?:(?P<s>[0-9.]+)s)?")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LONGEST = 10 * 365 * 86_400
_LONGEST_TEXT = 1_000  # characters of a name


def integer(value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(text := value.replace("_", "")):
        return int(text)
    raise ValueError(f"expected an integer such as 400 or 2_000_000, found {shown(value)}")


def number(value: object) -> int | float:
    if isinstance(value, str):
        text = value.replace("_", "")
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text) and abs(found := float(text)) != float("inf"):
            return found
    raise ValueError(f"expected a number, found {shown(value)}")


def duration(value: object) -> float:
    """Seconds: `45`, `10s`, `90m`, `1h30m`."""
    if isinstance(value, str) and value:
        if _NUMBER.fullmatch(value):
            seconds = float(value)
        elif match := _DURATION.fullmatch(value):
            try:
                seconds = sum(float(match[unit]) * _SECONDS[unit] for unit in _SECONDS if match[unit])
            except ValueError:
                seconds = -1
        else:
            seconds = -1
        if 0 < seconds <= _LONGEST:
            return seconds
        if seconds >= 0:
            raise ValueError(f"expected more than nothing and at most ten years, found {shown(value)}")
    raise ValueError(f"expected a time such as 90m, 10s, 1h30m or a number of seconds, found {shown(value)}")


def words(value: object) -> str:
    """What names are made of: one line of text that can be seen."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected a text, found an empty one: give one or leave it out")
    if len(value) > _LONGEST_TEXT:
        raise ValueError(f"expected a text of at most {_LONGEST_TEXT:,} characters, found {shown(value)}")
    if not value.isprintable():
        raise ValueError(f"expected one line of UTF-8 without control characters, found {shown(value)}")
    return value


def shown(value: object) -> str:
    """A value as it stands in a fault: short, in quotes where it is text."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    text = repr(str(value)) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
