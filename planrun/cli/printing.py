"""Results on stdout. A reader that has gone away is no error of ours; what a stream cannot carry is escaped."""

from __future__ import annotations

import json
import sys

from planrun.views.screen import Screen, drop


def say(text: str) -> None:
    """A line or several for a person, on stdout."""
    _print(Screen(sys.stdout), text)


def say_json(value: object) -> None:
    """One JSON document. It stays JSON on a stream that is not Unicode."""
    screen = Screen(sys.stdout)
    _print(screen, json.dumps(value, ensure_ascii=not screen.unicode, indent=2))


def _print(screen: Screen, text: str) -> None:
    screen.line(text)
    if screen.lost:
        complain(f"planrun: cannot write to stdout: {screen.lost}")


def raw(data: bytes) -> bool:
    """Bytes as they are. False where nobody reads any more."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (OSError, ValueError):
        drop(sys.stdout)
        return False
    return True


def complain(text: str) -> None:
    """A line on stderr."""
    Screen(sys.stderr).line(text)
