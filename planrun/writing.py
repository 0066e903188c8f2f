"""Files that are whole or not there: written beside their place, synced, and only then given their name.

Every path is resolved: a link that took the place of a part of it since is refused, not followed. Missing parents are made."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from planrun.opening import FOLDER, open_real


def atomic_write(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Make `data` the content of `path`. An existing file keeps its mode (and its owner and extended attributes, where we may
    set them), a new one gets `mode` less the umask. Raises OSError; then nothing has changed."""
    with _parent(path) as folder:
        old = _old(path, folder)
        with _beside(folder, mode) as new:
            new.file.write(data)
            if old is not None:
                _resemble(new.file.fileno(), old, path.name, folder)
            new.sync()
            new.replace(path.name)


@contextmanager
def creating(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that becomes `path` when the block ends well. Raises OSError; FileExistsError where there is something by then."""
    with _parent(path) as folder:
        _absent(path, folder)
        with _beside(folder, mode) as new:
            yield new.file
            new.sync()
            _absent(path, folder)
            new.create(path.name)


def try_write(path: Path) -> None:
    """Raise the OSError that `atomic_write` would raise before it has written anything."""
    with _parent(path) as folder:
        _old(path, folder)
        with _beside(folder, 0o666):
            pass


@contextmanager
def _parent(path: Path) -> Iterator[int]:
    """A descriptor of the folder, which is synced in the end. What the system refuses meanwhile is told of `path`."""
    try:
        folder = _open_parent(path.parent)
        try:
            yield folder
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


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
        raise OSError(errno.EINVAL, "is not a regular file any more", str(path))
    if not os.access(path.name, os.W_OK, dir_fd=folder):
        raise OSError(errno.EACCES, "is read-only", str(path))
    return old


def _absent(path: Path, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


class _New(NamedTuple):
    """A file in `folder` that is being written, called `name` there once it has one."""

    file: BinaryIO
    folder: int
    name: str
    named: bool

    def sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def replace(self, name: str) -> None:
        if not self.named:
            self._link(self.name)
        os.rename(self.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def create(self, name: str) -> None:
        """Raises FileExistsError, where the file system has links; without them it replaces what has come in this moment."""
        if not self.named:
            self._link(name)
            return
        try:
            os.link(self.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except FileExistsError:
            raise
        except OSError:
            os.rename(self.name, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def _link(self, name: str) -> None:
        os.link(f"/proc/self/fd/{self.file.fileno()}", name, dst_dir_fd=self.folder)


@contextmanager
def _beside(folder: int, mode: int) -> Iterator[_New]:
    """A new file in `folder`, gone in the end but for the name that it was given: one without a name, of which a kill leaves
    nothing, where Linux and the file system have that."""
    name = f".planrun-{secrets.token_hex(8)}.tmp"
    descriptor, named = _opened(folder, name, mode)
    file = os.fdopen(descriptor, "wb")
    try:
        yield _New(file, folder, name, named)
    finally:
        with suppress(OSError):  # what could not be written was told before
            file.close()
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def _opened(folder: int, name: str, mode: int) -> tuple[int, bool]:
    if sys.platform == "linux" and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, mode, dir_fd=folder), False
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder), True


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
