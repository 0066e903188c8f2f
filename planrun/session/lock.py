"""One writer for a session: an operating system lock on its log, held as long as the process lives, and a note beside the log
(`ID.lock`) that says who holds it, to others that want to write and to those who only look."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from pathlib import Path
from typing import BinaryIO

from planrun.errors import SessionBusy
from planrun.session.raw import opened

_LONGEST = 400  # bytes of a note
_TRIES, _PAUSE = 10, 0.01  # somebody who only looks whether the session is running holds the lock for a moment too


def owner_of(path: Path) -> Path:
    return path.with_suffix(".lock")


def acquire(file: BinaryIO, path: Path) -> None:
    """Lock the log at `path`, open as `file`. Raises SessionBusy where another process has it; then nothing was written."""
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if not left:
                raise busy(path, _who(path)) from error
            time.sleep(_PAUSE)
        except OSError as error:
            raise OSError(
                error.errno, f"{error.strerror} (this file system cannot lock files, which a session needs)"
            ) from error
    with contextlib.suppress(OSError):  # it only tells others; on a full disk the log itself says what is wrong
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW
        with os.fdopen(os.open(owner_of(path), flags, 0o666), "wb") as note:
            note.write(f"pid {os.getpid()} on {socket.gethostname()}\n".encode())


def busy(path: Path, who: str) -> SessionBusy:
    return SessionBusy(f"session {path.stem} is being run by {who}; wait for it or stop it first")


def _who(path: Path) -> str:
    """Who holds the lock. The note may be a moment late: it is written once the lock is held."""
    for _ in range(_TRIES):
        with contextlib.suppress(OSError):
            who = noted(path)
            if who:
                return who
        time.sleep(_PAUSE)
    return "another process"


def noted(path: Path) -> str:
    """What the note says of the log at `path`. Raises OSError where there is none."""
    with opened(owner_of(path)) as note:
        return note.read(_LONGEST).decode("utf-8", "replace").strip()


def release(file: BinaryIO, path: Path) -> None:
    """Give the log back. The note goes first: once the lock is free it may be another process's."""
    with contextlib.suppress(OSError):
        owner_of(path).unlink(missing_ok=True)
    file.close()


def writer(path: Path) -> str | None:
    """Who is writing the log at `path` right now, as `pid 123 on HOST`; None where nobody is."""
    try:
        who = noted(path)
        # Only where a writer left its name is the lock tried at all: for that moment nobody else could take it.
        with opened(path) as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return who or "another process"
    except OSError:
        return None
    return None
