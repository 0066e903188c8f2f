"""Which of several sources a setting is taken from, and how its spellings are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from planrun.core.plan import STRATEGIES, Sandbox, Strategy
from planrun.core.units import duration, integer, number, shown
from planrun.errors import ConfigError
from planrun.settings_file import Loaded
from planrun.settings_form import SandboxTable

T = TypeVar("T")
# Settings whose option has another name.
_OPTIONS = {
    "limits.cost_usd": "max_cost",
    "limits.tokens": "max_tokens",
    "limits.time": "max_time",
    "limits.turns": "max_turns",
}


@dataclass(slots=True)
class Picker:
    """Takes the first value in the order of precedence and remembers where it came from. `files` are project, then user;
    `asked` is what an earlier run of the session was asked for, by the names of settings."""

    environ: Mapping[str, str]
    files: list[Loaded]
    asked: Mapping[str, object] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def first(self, name: str, flag: object, plan: object, key: str | None, read: Callable[[Any], T]) -> T | None:
        """`name` is the setting's (`limits.tokens`), `key` its place in the files; `read` turns any spelling into the value."""
        option = _OPTIONS.get(name, name)
        variable = f"PLANRUN_{option.upper()}"
        sources: list[tuple[str, object]] = [(f"flag --{option.replace('_', '-')}", flag)]
        sources.append((f"environment {variable}", self.environ.get(variable) or None))
        sources += [("an earlier run", self.asked.get(name)), ("plan", plan)]
        sources += [(file.name, _inside(file.table, key)) for file in self.files if key]
        for origin, value in sources:
            if value is not None:
                self.origins[name] = origin
                return self.reading(origin, value, read)
        return None

    def reading(self, origin: str, value: object, read: Callable[[Any], T]) -> T:
        try:
            return read(value)
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"{origin}: {error}") from None

    def merged(self, key: str) -> dict[str, Any]:
        """A table whose entries are taken from all files, name by name."""
        found: dict[str, Any] = {}
        for file in self.files:
            for name, value in (getattr(file.table, key) or {}).items():
                if name not in found:
                    found[name] = value
                    self.origins.setdefault(key, file.name)
        return found


def _inside(table: object, key: str | None) -> object:
    for part in (key or "").split("."):
        table = getattr(table, part, None)
    return table


def positive(value: object) -> int:
    found = integer(str(value))
    if found < 1:
        raise ValueError(f"expected at least 1, found {found}")
    return found


def amount(value: object) -> float:
    found = float(number(str(value)))
    if found <= 0:
        raise ValueError(f"expected more than 0, found {found:g}")
    return found


def seconds(value: object) -> float:
    return duration(str(value))


def strategy(value: object) -> Strategy:
    for name in STRATEGIES:
        if value == name:
            return name
    raise ValueError(f"context: expected one of {', '.join(STRATEGIES)}, found {shown(value)}")


def sandbox(value: object) -> Sandbox:
    if isinstance(value, SandboxTable):
        return Sandbox(value.type, value.network)
    if isinstance(value, Sandbox):
        return value
    if value == "bwrap":
        return Sandbox()
    raise ValueError(f"sandbox: expected bwrap, found {shown(value)}")
