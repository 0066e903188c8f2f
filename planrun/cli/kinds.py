"""The kinds of values that options take. What cannot be one is refused at once, by the name of the option."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from planrun.core.units import duration, integer, number, shown, words
from planrun.endpoint import checked
from planrun.errors import named
from planrun.session.texts import name as named_session


class Kind(click.ParamType):  # type: ignore[type-arg]  # generic in the newest releases only
    """A value in the spelling that plans and settings take: what `read` makes of it."""

    def __init__(self, name: str, read: Callable[[object], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def split_envvar_value(self, rv: str) -> list[str]:
        """Several in one variable stand as they would on a command line: quotes hold what has blanks."""
        try:
            return shlex.split(rv)
        except ValueError as error:
            raise click.UsageError(f"{shown(rv)} cannot be taken apart: {error}") from None


def _positive(read: Callable[[object], float]) -> Callable[[object], float]:
    def found(value: object) -> float:
        amount = read(value)
        if amount <= 0:
            raise ValueError(f"expected more than 0, found {shown(value)}")
        return amount

    return found


def _pair(value: object) -> tuple[str, str]:
    name, equals, text = str(value).partition("=")
    if not equals or not name.strip():
        raise ValueError(f"expected NAME=VALUE, found {shown(value)}")
    if not all(character.isprintable() for character in name):
        raise ValueError(f"expected a name without control characters, found {shown(name)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: expected a value in UTF-8, found {shown(text)}") from None
    return name, text


def _path(value: object) -> Path:
    if not str(value).strip():
        raise ValueError("expected a path, found an empty one: give one or leave it out")
    return Path(str(value))


class Place(click.Path):
    """The path of a file or a folder, there or not; what it names is looked at without waiting for anything."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Path = PATH.convert(value, param, ctx)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            if path.is_symlink():
                self.fail(f"{named(str(path))}: is a link to what does not exist", param, ctx)
            return path
        except OSError as error:
            self.fail(f"{named(str(path))}: {error.strerror}", param, ctx)
        if stat.S_ISDIR(mode) != self.dir_okay:
            self.fail(f"{named(str(path))}: is {'not ' if self.dir_okay else ''}a directory", param, ctx)
        return path


PATH = Kind("PATH", _path)
COUNT, USD = Kind("N", _positive(integer)), Kind("USD", _positive(number))
TIME, TEXT, PAIR = Kind("TIME", duration), Kind("TEXT", words), Kind("NAME=VALUE", _pair)
SESSION, URL = Kind("ID", named_session), Kind("URL", lambda value: checked(str(value)))
FILE = Place(dir_okay=False)
FOLDER = Place(file_okay=False)
