"""SIGINT and SIGTERM become an `Interrupted` raised at a safe place; a second signal ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from planrun.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Use as a context manager in the main thread. Between records a signal waits; inside `interruptible()` it raises."""

    def __init__(self, last_resort: Callable[[], None]) -> None:
        self._last_resort = last_resort
        self._received: int | None = None
        self._open = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = {s: signal.signal(s, self._handle) for s in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self._received is not None:
            self._last_resort()
            os._exit(128 + signum)
        self._received = signum
        if self._open:
            self._open = False
            raise Interrupted(signum)

    def check(self) -> None:
        """Raise Interrupted if a signal has come."""
        if self._received is not None:
            raise Interrupted(self._received)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Around a call that may take long and that may be abandoned at any point."""
        self._open = True
        try:
            self.check()
            yield
        finally:
            self._open = False
