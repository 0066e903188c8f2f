"""`settings.json`: what is in a file, and what is wrong with it, with its place. Keys that are not planrun's are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from planrun import jsontext
from planrun.core.hints import nearest
from planrun.core.units import shown
from planrun.errors import ConfigError
from planrun.settings_form import EVENTS, CompactionTable, FileTable, PermissionsTable
from planrun.textfile import Missing, Unreadable, decode, read_bytes

_NEAR = 0.8
_MOST = 5_000  # keys and values of a file
_MOST_FAULTS = 100
_EXPECTED = {
    "dict_type": "an object, {...}",
    "model_type": "an object, {...}",
    "list_type": "a list, [...]",
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
}
_LONGEST = 60  # characters of a name that is compared with ours, or shown


@dataclass(frozen=True, slots=True)
class Loaded:
    """One settings file: `name` is how messages call it."""

    name: str
    table: FileTable


def load(path: Path) -> Loaded | None:
    """The file, or None where there is none. Raises ConfigError with every fault."""
    try:
        return parse(read_bytes(path), str(path))
    except Missing as error:
        if path.is_symlink():
            raise ConfigError(error.told(str(path))) from None
        return None
    except Unreadable as error:
        raise ConfigError(error.told(str(path))) from None


def parse(data: bytes, name: str) -> Loaded:
    """The settings in the bytes of a file that messages call `name`. Raises ConfigError with every fault, each with its place."""
    try:
        text = decode(data)
        if not text.strip():
            raise ConfigError(f"{name}:1:1: the file is empty: write {{}} or delete it")
        value, places = jsontext.parse(text, _MOST)
    except Unreadable as error:
        raise ConfigError(error.told(name)) from None
    except jsontext.JsonFault as fault:
        raise ConfigError(f"{name}:{fault.line}:{fault.column}: {fault}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{name}:1:1: expected an object with settings, {{...}}")
    faults = list(_near_misses(value))
    table = FileTable()
    # Events of other programs may have hooks of another form.
    hooks = value.get("hooks")
    mine = {**value, "hooks": {k: v for k, v in hooks.items() if k in EVENTS}} if isinstance(hooks, dict) else value
    try:
        table = FileTable.model_validate(mine)
    except ValidationError as error:
        faults += [_words(detail) for detail in error.errors(include_url=False)]
    if faults:
        raise ConfigError("\n".join(_told(name, faults, places)))
    return Loaded(name, table)


def _told(
    name: str, faults: Sequence[tuple[jsontext.Path, str]], places: Mapping[jsontext.Path, tuple[int, int]]
) -> Iterator[str]:
    for at, message in faults[:_MOST_FAULTS]:
        yield f"{name}{_place(at, places)}: {message}"
    if len(faults) > _MOST_FAULTS:
        yield f"{name}{_place(faults[_MOST_FAULTS][0], places)}: there are more faults than these {_MOST_FAULTS}"


def _place(at: jsontext.Path, places: Mapping[jsontext.Path, tuple[int, int]]) -> str:
    while at and at not in places:
        at = at[:-1]
    line, column = places.get(at, (1, 1))
    return f":{line}:{column}"


def _near_misses(value: Mapping[str, Any]) -> Iterator[tuple[jsontext.Path, str]]:
    """Keys that were surely meant to be planrun's. A misspelt setting must not be ignored."""
    tables: list[tuple[jsontext.Path, Any, list[str]]] = [((), value, _aliases(FileTable))]
    tables.append((("permissions",), value.get("permissions"), _aliases(PermissionsTable)))
    tables.append((("compaction",), value.get("compaction"), _aliases(CompactionTable)))
    tables.append((("hooks",), value.get("hooks"), list(EVENTS)))
    for path, table, known in tables:
        for key in table if isinstance(table, dict) else ():
            if key not in known and len(key) <= _LONGEST and (meant := _meant(key, known)):
                yield (*path, key), f"unknown key {key!r}: did you mean {meant}?"


def _aliases(table: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in table.model_fields.items()]


def _meant(key: str, known: list[str]) -> str | None:
    def letters(word: str) -> str:
        return re.sub(r"[\W_]", "", word).lower()

    for name in known:
        if letters(name) == letters(key) or SequenceMatcher(None, name.lower(), key.lower()).ratio() >= _NEAR:
            return name
    return None


def _spelled(part: str | int) -> str:
    """A part of a path as it stands in a fault: on one line, whatever is in it."""
    text = str(part)
    return text if text.isprintable() and len(text) <= _LONGEST else shown(text)


def _words(detail: Any) -> tuple[jsontext.Path, str]:
    path: jsontext.Path = detail["loc"]
    name = ".".join(_spelled(part) for part in path)
    found = shown(detail["input"])
    if detail["type"] == "value_error":
        message = detail["msg"].removeprefix("Value error, ")
        return path, f"{name}: {message}" + (
            f", found {found}" if message.startswith("expected") and "found" not in message else ""
        )
    if detail["type"] in ("greater_than", "greater_than_equal", "less_than_equal"):
        return path, f"{name}: expected a number {detail['msg'].removeprefix('Input should be ')}, found {found}"
    message = _EXPECTED.get(detail["type"]) or detail["msg"].removeprefix("Input should be ").replace("'", "")
    if detail["type"] == "extra_forbidden":
        return path, f"unknown key {name}"
    if detail["type"] == "missing":
        return path[:-1], f"{name} is missing"
    choices = message.replace(" or ", ", ").split(", ") if detail["type"] == "literal_error" else ()
    hint = nearest(str(detail["input"]), choices)
    return path, f"{name}: expected {message}, found {found}" + (f" ({hint})" if hint else "")
