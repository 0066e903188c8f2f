"""Opening what a path names and nothing else, though links may be swapped meanwhile. The standard library's light modules only."""

from __future__ import annotations

import errno
import os
import sys

FOLDER = os.O_RDONLY | os.O_DIRECTORY


def open_real(path: str, flags: int) -> int:
    """A descriptor of what the real `path` (no link in it) names, never blocking. Raises OSError; ESTALE where a link took the
    place of a part of the path."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if _place(descriptor, path) != path:
        os.close(descriptor)
        raise OSError(errno.ESTALE, "was moved or replaced by a link meanwhile, or its folder was", path)
    return descriptor


def _place(descriptor: int, path: str) -> str:
    """Where the opened file lies."""
    if sys.platform == "darwin":
        import fcntl

        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # no /proc
        return os.path.realpath(path)
