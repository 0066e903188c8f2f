"""Confinement of the file tools to the workspace, and writes that are whole or did not happen."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from planrun.core import names
from planrun.core.messages import well_formed
from planrun.tools.base import ToolContext, ToolResult
from planrun.tools.opening import FOLDER, open_real
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


def atomic_write(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Make `data` the content of the resolved `path`: written beside it, synced, renamed over it. An existing file
    keeps its mode (and its owner and extended attributes, where we may set them), a new one gets `mode` less the umask; missing parents are
    made. A link that took the place of a part of the path since it was resolved is refused, not followed. Raises
    Refused, OSError."""
    folder = _open_parent(path.parent)
    temporary = f".planrun-{secrets.token_hex(8)}.tmp"
    try:
        old = _old(path, folder)
        descriptor, named = _new(folder, temporary, mode)
        try:
            _fill(descriptor, data)
            if old is not None:
                _resemble(descriptor, old, path.name, folder)
            os.fsync(descriptor)
            if not named:
                os.link(f"/proc/self/fd/{descriptor}", temporary, dst_dir_fd=folder)
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(descriptor)
        os.fsync(folder)
    finally:
        os.close(folder)


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


def _open_parent(folder: Path) -> int:
    """A descriptor of `folder`, made where it is missing, each new part relative to its checked parent."""
    existing = folder
    while not os.path.lexists(existing):
        existing = existing.parent
    descriptor = open_real(str(existing), FOLDER)
    try:
        for part in folder.relative_to(existing).parts:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=descriptor)
            below = os.open(part, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _old(path: Path, folder: int) -> os.stat_result | None:
    """The file about to be replaced, None if there is none. A rename needs no permission on it, so that is asked
    here."""
    try:
        old = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old.st_mode):
        raise Refused(f"{path.name} is not a regular file any more")
    if not os.access(path.name, os.W_OK, dir_fd=folder):
        raise Refused(f"{path.name} is read-only")
    return old


def _new(folder: int, name: str, mode: int) -> tuple[int, bool]:
    """A new file in `folder`, and whether it is called `name` there: one without a name, of which a kill leaves nothing, where
    Linux and the file system have that."""
    if sys.platform == "linux" and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode, dir_fd=folder), False
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder), True


def _fill(descriptor: int, data: bytes) -> None:
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)


def _resemble(descriptor: int, old: os.stat_result, name: str, folder: int) -> None:
    """Owner, extended attributes (access lists are some) and mode of the file that is replaced, as far as we may."""
    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    if sys.platform == "linux":
        with suppress(OSError):  # no such file system, no /proc, or it changed again
            replaced = f"/proc/self/fd/{folder}/{name}"
            for attribute in os.listxattr(replaced, follow_symlinks=False):
                with suppress(OSError):
                    os.setxattr(descriptor, attribute, os.getxattr(replaced, attribute, follow_symlinks=False))
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
