"""Cutting connections off. A read timeout ends a silence only: a server that sends a byte now and then is never silent."""

from __future__ import annotations

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
    """The sockets that a client has open; `watch` is a hook for its requests."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()

    def watch(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._traced

    def _traced(self, event: str, info: dict[str, Any]) -> None:
        if event.endswith(_OPENED):
            opened = info["return_value"].get_extra_info("socket")
            if isinstance(opened, socket.socket):
                with self._lock:
                    self._open.add(opened)

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        """All of them are cut off when `deadline` (time.monotonic()) comes before the block ends."""
        timer = threading.Timer(max(0.0, deadline - time.monotonic()), self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        with self._lock:
            for each in self._open:
                shut(each)


def shut(sock: socket.socket) -> None:
    """Whoever reads from it is at its end, in another thread too."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not by way of TLS, which may be in the middle of something
    except OSError:
        return  # already closed
