"""The bytes of a log: opened without waiting for anything, in lines of bounded length."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LONGEST = 64 << 20  # bytes of a line; an answer of a model, the longest thing there is, may have as many


def opened(path: Path) -> BinaryIO:
    """The log for reading. Raises OSError, also for what is no regular file: a pipe would be waited for, a device has no end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"it is a {'folder' if stat.S_ISDIR(mode) else 'device or a pipe'}, no file")
    return os.fdopen(descriptor, "rb")


def lines(file: BinaryIO) -> Iterator[bytes]:
    """What is left of a log, line by line; one that is longer than any record comes in pieces without a newline."""
    return iter(lambda: file.readline(LONGEST), b"")


def too_long(line: bytes) -> bool:
    return len(line) >= LONGEST and not line.endswith(b"\n")
