"""Cutting connections off. A read timeout ends a silence only: a server that sends a byte now and then is never silent."""

from __future__ import annotations

import math
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

_OPENED = ("connect_tcp.complete", "start_tls.complete", "connect_unix_socket.complete")


class Sockets:
    """The sockets that a client has open; `watch` is a hook for its requests. Once closed it cuts nothing off."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._deadlines: list[float] = []
        self._wakes = math.inf  # when the watcher looks at them next: at the earliest, or before it
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None
        self._closed = False

    def watch(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._traced

    def _traced(self, event: str, info: dict[str, Any]) -> None:
        if event.endswith(_OPENED):
            opened = info["return_value"].get_extra_info("socket")
            if isinstance(opened, socket.socket):
                with self._changed:
                    self._open.add(opened)

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """All of them are cut off when `deadline` (time.monotonic()) comes before the block ends."""
        with self._changed:
            self._deadlines.append(deadline)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="deadlines", daemon=True)
                self._watcher.start()
            if deadline < self._wakes:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._deadlines.remove(deadline)

    def close(self) -> None:
        """No more requests will be sent."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _watch(self) -> None:
        """One thread for all requests, which is not woken where a deadline went by unused or a later one came."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                if any(deadline <= now for deadline in self._deadlines):
                    for each in self._open:
                        shut(each)
                self._wakes = min((d for d in self._deadlines if d > now), default=math.inf)
                self._changed.wait(None if self._wakes == math.inf else self._wakes - now)


def shut(sock: socket.socket) -> None:
    """Whoever reads from it is at its end, in another thread too."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not by way of TLS, which may be in the middle of something
    except OSError:
        return  # already closed
