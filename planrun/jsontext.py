"""JSON text with the place of every key and value."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field

from planrun.core.plan import Json

Path = tuple[str | int, ...]
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)', re.DOTALL)
_DEEPEST = 64


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


def parse(text: str) -> tuple[Json, dict[Path, tuple[int, int]]]:
    """The value and the places, by path: of the key where a value has one, else of the value. Raises JsonFault, for keys that
    stand twice too."""
    try:
        value: Json = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise JsonFault(error.msg, error.lineno, error.colno) from None
    except (ValueError, RecursionError) as error:
        raise JsonFault(str(error), 1, 1) from None
    return value, _places(text)


def _refuse(word: str) -> Json:
    raise ValueError(f"{word} is not JSON")


def _places(text: str) -> dict[Path, tuple[int, int]]:
    """By the tokens alone: the text is known to be JSON."""
    places: dict[Path, tuple[int, int]] = {}
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    levels: list[_Level] = [_Level(())]
    objects = [False]
    for match in _TOKEN.finditer(text):
        token, place = match[1], _line_column(starts, match.start(1))
        level = levels[-1]
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
                raise JsonFault(f"the key {token} appears twice", *place)
            level.keys.add(str(level.key))
            places[(*level.path, level.key)] = place
        else:
            path = (*level.path, level.key) if len(levels) > 1 else ()
            places.setdefault(path, place)
            if token in "{[":
                if len(levels) > _DEEPEST:
                    raise JsonFault("nested too deeply", *place)
                levels.append(_Level(path))
                objects.append(token == "{")
    return places


def _line_column(starts: list[int], offset: int) -> tuple[int, int]:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
