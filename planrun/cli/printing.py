"""Results on stdout. A reader that has gone away is no error of ours, a full disk is one that the exit code must tell; what a stream
cannot carry is escaped."""

from __future__ import annotations

import json
import sys

from planrun.errors import StorageError
from planrun.views.screen import Screen, drop, loss


def say(text: str) -> None:
    """A line or several for a person, on stdout. Raises StorageError."""
    _print(Screen(sys.stdout), text)


def say_json(value: object) -> None:
    """One JSON document. It stays JSON on a stream that is not Unicode. Raises StorageError."""
    screen = Screen(sys.stdout)
    _print(screen, json.dumps(value, ensure_ascii=not screen.unicode, indent=2))


def _print(screen: Screen, text: str) -> None:
    screen.line(text)
    if screen.lost:
        raise _lost(screen.lost)


def raw(data: bytes) -> bool:
    """Bytes as they are. False where nobody reads any more. Raises StorageError."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (OSError, ValueError) as error:
        drop(sys.stdout)
        if why := loss(error):
            raise _lost(why) from error
        return False
    return True


def _lost(why: str) -> StorageError:
    return StorageError(f"cannot write to stdout: {why}")


def complain(text: str) -> None:
    """A line on stderr."""
    Screen(sys.stderr).line(text)
