"""JSON text with the place of every key and value."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field

from planrun.core.plan import Json
from planrun.core.units import shown

Path = tuple[str | int, ...]
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)', re.DOTALL)
_DEEPEST = 64
_LONGEST = 1_000  # digits
_CONSTANTS = ("NaN", "Infinity", "-Infinity")


class JsonFault(ValueError):
    """The text is not JSON; the place is 1-based."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(slots=True)
class _Level:
    path: Path
    key: str | int = 0
    named: bool = False  # a key has been read and its value has not
    keys: set[str] = field(default_factory=set)


def parse(text: str, most: int) -> tuple[Json, dict[Path, tuple[int, int]]]:
    """The value and the places, by path: of the key where a value has one, else of the value. Raises JsonFault, also for keys that
    stand twice and for more than `most` keys and values."""
    try:
        value: Json = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise JsonFault(f"not JSON: {error.msg}", error.lineno, error.colno) from None
    except (ValueError, RecursionError) as error:
        raise _beyond(text) or JsonFault(f"not JSON: {error}", 1, 1) from None
    if "\\u" in text:
        _check_characters(text)
    return value, _places(text, most)


def _check_characters(text: str) -> None:
    """Raise JsonFault at the first string with half a character in it: it cannot be written anywhere."""
    for match in _TOKEN.finditer(text):
        if match[1].startswith('"') and "\\u" in match[1] and re.search("[\ud800-\udfff]", json.loads(match[1])):
            raise JsonFault(
                "half of a character: \\ud800 to \\udfff stand in pairs only", *_line_column(_starts(text), match.start(1))
            )


def _refuse(word: str) -> Json:
    raise ValueError(f"{word} is not JSON")


def _beyond(text: str) -> JsonFault | None:
    """The first thing that Python's reader gives up on without saying where."""
    starts, depth = _starts(text), 0
    for match in _TOKEN.finditer(text):
        token, place = match[1], match.start(1)
        depth += (token in "{[") - (token in "}]")
        if depth > _DEEPEST:
            return JsonFault(f"nested more than {_DEEPEST} deep", *_line_column(starts, place))
        if token in _CONSTANTS:
            return JsonFault(f"not JSON: {token} is no number", *_line_column(starts, place))
        if len(token) > _LONGEST and token.lstrip("-").isdigit():
            return JsonFault(f"a number of more than {_LONGEST:,} digits", *_line_column(starts, place))
    return None


def _starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _places(text: str, most: int) -> dict[Path, tuple[int, int]]:
    """By the tokens alone: the text is known to be JSON."""
    places: dict[Path, tuple[int, int]] = {}
    starts = _starts(text)
    levels: list[_Level] = [_Level(())]
    objects = [False]
    for match in _TOKEN.finditer(text):
        token, place = match[1], _line_column(starts, match.start(1))
        level = levels[-1]
        if len(places) > most:
            raise JsonFault(f"more than {most:,} keys and values", *place)
        if token in "}]":
            levels.pop()
            objects.pop()
        elif token == ",":
            level.key = level.key + 1 if isinstance(level.key, int) else 0
            level.named = False
        elif token == ":":
            level.named = True
        elif objects[-1] and not level.named:
            level.key = json.loads(token)
            if level.key in level.keys:
                raise JsonFault(f"the key {shown(level.key)} appears twice", *place)
            level.keys.add(str(level.key))
            places[(*level.path, level.key)] = place
        else:
            path = (*level.path, level.key) if len(levels) > 1 else ()
            places.setdefault(path, place)
            if token in "{[":
                if len(levels) > _DEEPEST:
                    raise JsonFault(f"nested more than {_DEEPEST} deep", *place)
                levels.append(_Level(path))
                objects.append(token == "{")
    return places


def _line_column(starts: list[int], offset: int) -> tuple[int, int]:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
