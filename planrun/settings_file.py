"""`settings.json`: its form, and what is wrong with a file, with its place. Keys that are not planrun's are left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from planrun import jsontext
from planrun.core.hints import nearest
from planrun.core.rules import rule
from planrun.core.units import duration, shown, words
from planrun.endpoint import normalise_base_url
from planrun.errors import ConfigError
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
EVENTS = (
    "session_start",
    "session_end",
    "step_start",
    "step_end",
    "pre_tool_use",
    "post_tool_use",
    "post_tool_use_failure",
    "permission_denied",
    "pre_compact",
    "post_compact",
)


def _seconds(value: object) -> object:
    """A number is seconds already; text is a time such as 90m."""
    return duration(value) if isinstance(value, str) else value


def _hooks(value: object) -> object:
    items = value if isinstance(value, list) else [value]
    return [{"command": item} if isinstance(item, str) else item for item in items]


def _command(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("expected a command without NUL characters")
    return value


def _address(value: str) -> str:
    try:
        normalise_base_url(value)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return value


def _sandbox(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


class _Table(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, alias_generator=to_camel)


class _Own(_Table):
    """A table that is all planrun's: other keys are faults."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=100)]
Rule = Annotated[str, AfterValidator(rule)]
Name = Annotated[str, AfterValidator(words)]
Command = Annotated[str, AfterValidator(_command)]


class OverrideTable(_Own):
    context: int | None = Field(default=None, ge=1)
    max_output: int | None = Field(default=None, ge=1)
    input_price: Price | None = None
    output_price: Price | None = None
    cached_price: Price | None = None


class PermissionsTable(_Table):
    allow: list[Rule] = []
    ask: list[Rule] = []
    deny: list[Rule] = []


class HookTable(_Own):
    command: Command
    timeout: Seconds = 5.0
    fail_closed: bool = False


class LimitsTable(_Own):
    model_config = ConfigDict(alias_generator=None)

    cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1)
    time: Seconds | None = None
    turns: int | None = Field(default=None, ge=1)


class CompactionTable(_Table):
    summarize_token_percent: Percent | None = Field(default=None, gt=0)
    min_reclaim_percent: Percent | None = None
    tail_percent: Percent | None = None
    estimator: Name | None = None


class SandboxTable(_Own):
    type: Literal["bwrap"] = "bwrap"
    network: bool = False


class FileTable(_Table):
    """All keys are optional: what a file does not say is None."""

    model: Name | None = None
    base_url: Annotated[str, AfterValidator(_address)] | None = None
    plan_context_strategy: Literal["compact", "clear", "summary", "keep"] | None = None
    model_overrides: dict[str, OverrideTable] | None = None
    permissions: PermissionsTable | None = None
    hooks: dict[str, Annotated[list[HookTable], BeforeValidator(_hooks)]] | None = None
    limits: LimitsTable | None = None
    compaction: CompactionTable | None = None
    summary_model: Name | None = None
    sandbox: Annotated[SandboxTable, BeforeValidator(_sandbox)] | None = None
    mcp_servers: dict[str, dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """One settings file: `name` is how messages call it, `keys` the keys that it sets."""

    name: str
    table: FileTable
    keys: frozenset[str]


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
    return Loaded(name, table, frozenset(map(str, value)))


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
