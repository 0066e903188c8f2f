"""Results on stdout. A reader that has gone away is no error of ours; what a stream cannot carry is escaped."""

from __future__ import annotations

import json
import os
import sys

from planrun.views.screen import Screen


def say(text: str) -> None:
    """A line or several for a person, on stdout."""
    _settled(Screen(sys.stdout), f"{text}\n")


def say_json(value: object) -> None:
    """One JSON document. It stays JSON on a stream that is not Unicode."""
    screen = Screen(sys.stdout)
    _settled(screen, json.dumps(value, ensure_ascii=not screen.unicode, indent=2) + "\n")


def raw(data: bytes) -> bool:
    """Bytes as they are. False where nobody reads any more."""
    if sys.stdout is None:
        return False
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (OSError, ValueError):
        _drop_stdout()
        return False
    return True


def complain(text: str) -> None:
    """A line on stderr."""
    Screen(sys.stderr).line(text)


def _settled(screen: Screen, text: str) -> None:
    screen.write(text)
    screen.flush()
    if not screen.alive:
        _drop_stdout()


def _drop_stdout() -> None:
    """What is still in the buffer goes nowhere; the interpreter would complain about it when it exits."""
    if sys.stdout is not None:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (OSError, ValueError):
            return
