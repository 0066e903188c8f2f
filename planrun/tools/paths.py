"""Confinement of the file tools to the workspace."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from planrun.core import names
from planrun.core.messages import well_formed
from planrun.opening import open_real
from planrun.tools.base import ToolContext, ToolResult
from planrun.tools.text import strip_controls


class Refused(ValueError):
    """The call may not or cannot be done; the text is for the model."""


def resolve(workspace: Path, text: str, *, write: bool, protected: tuple[str, ...] = (names.FOLDER,)) -> Path:
    """The real path that `text` names, all links resolved: inside `workspace` (a real path itself), whether it exists
    or not. For a write it is a regular file or nothing yet, and no folder on the way has a `protected` name. Raises
    Refused."""
    if not text or "\0" in text:
        raise Refused("the path is empty" if not text else "the path contains a NUL character")
    if text.startswith("~"):
        raise Refused(f"{text}: ~ is not expanded; give a path relative to the working directory")
    # Through bytes, so that a name beyond ASCII works in a C locale too.
    given = workspace / os.fsdecode(well_formed(text).encode("utf-8"))
    existing = given
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if existing.is_symlink() and not existing.exists():
        raise Refused(f"{text}: a link on the way leads nowhere")
    real = Path(os.path.realpath(given))
    if real != workspace and workspace not in real.parents:
        raise Refused(f"{text} is outside the working directory {workspace}; only paths inside it can be used")
    if write:
        _writable(real, real.relative_to(workspace), text, protected)
    return real


def shown(workspace: Path, path: Path) -> str:
    """`path` as the model should spell it: relative to `workspace` where it is inside, with `/`, well-formed and on one line."""
    inside = path == workspace or workspace in path.parents
    text = path.relative_to(workspace).as_posix() if inside else path.as_posix()
    return strip_controls(os.fsencode(text).decode("utf-8", "replace")).replace("\n", " ")


def open_regular(path: Path) -> BinaryIO:
    """The regular file at the resolved `path`, opened for reading without following a link that appeared since. Never
    blocks."""
    with _regular(path) as descriptor:
        return os.fdopen(os.dup(descriptor), "rb")


def guarded(run: Callable[[Any, ToolContext], ToolResult]) -> Callable[[Any, ToolContext], ToolResult]:
    """`run`, with refusals and errors of the file system turned into results that the model can read."""

    def safe(arguments: Any, ctx: ToolContext) -> ToolResult:
        try:
            return run(arguments, ctx)
        except Refused as error:
            return ToolResult(strip_controls(str(error)), "error")
        except OSError as error:
            name = shown(ctx.workspace, Path(os.fsdecode(error.filename))) if isinstance(error.filename, str | bytes) else ""
            return ToolResult(f"{name}: {error.strerror}" if name else str(error.strerror or error), "error")

    return safe


def _writable(real: Path, inside: Path, text: str, protected: tuple[str, ...]) -> None:
    # Folded, because .THCLAWS is the same folder on a file system that ignores case.
    if folder := next((part for part in inside.parts if part.casefold() in protected), None):
        raise Refused(f"{text}: {folder}/ holds planrun's own records and cannot be written")
    with suppress(FileNotFoundError, NotADirectoryError):
        mode = os.lstat(real).st_mode
        if stat.S_ISDIR(mode):
            raise Refused(f"{text} is a directory, not a file")
        if not stat.S_ISREG(mode):
            raise Refused(f"{text} is not a regular file (a pipe, a socket or a device)")


@contextmanager
def _regular(path: Path) -> Iterator[int]:
    _check(os.stat(path, follow_symlinks=False), path)  # before opening too: that alone can have effects on a device
    descriptor = open_real(str(path), os.O_RDONLY)
    try:
        _check(os.fstat(descriptor), path)
        yield descriptor
    finally:
        os.close(descriptor)


def _check(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise Refused(f"{path.name} is a directory; use Ls")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path.name} is not a regular file (a pipe, a socket, a device or a link)")
