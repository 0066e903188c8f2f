"""SIGINT, SIGTERM and SIGHUP (the terminal is gone) become an `Interrupted` raised at a safe place; a second signal ends the
process at once, also where the first one is dealt with (`heard`). One that whoever started the process ignores (`nohup`, a job in the background) stays ignored."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Generic, Self, TypeVar

from planrun.errors import Interrupted

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL = 1.0  # seconds: a signal that another thread was interrupted for does not wake this one
_GRACE = 2.0  # seconds for a call whose commands were killed to see it and to clear away


class _Call(Generic[T]):
    """A call on another thread. `over` gets one item when it has ended, and one when a signal comes: whichever is first wakes who
    waits for it. (Putting is safe in a signal handler.)"""

    def __init__(self, call: Callable[[], T]) -> None:
        self.over: SimpleQueue[bool] = SimpleQueue()
        self._call = call
        self._error: BaseException | None = None

    def work(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # it is raised where the result is waited for
            self._error = error
        self.over.put(True)

    def first(self) -> bool:
        """What came first: True for the end of the call."""
        while True:
            with suppress(Empty):
                return self.over.get(timeout=_POLL)

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value

    def wait(self, seconds: float) -> None:
        """For the end of a call for which a signal came."""
        with suppress(Empty):
            while not self.over.get(timeout=seconds):
                pass


class _Worker:
    """A thread that works on one call after the other, as every turn makes one."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name="call", daemon=True)
        self.thread.start()

    def give(self, call: _Call[Any]) -> None:
        self._calls.put(call)

    def end(self) -> None:
        """Once it is idle."""
        self._calls.put(None)
        self.thread.join(_GRACE)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.work()
            del call  # what it came to may be large


class Signals:
    """Use as a context manager in the main thread. Between records a signal waits; a call under `abandonable` it ends. Nothing is
    raised inside of such a call: an exception that comes up anywhere is lost in a destructor or an import, or becomes a library's
    own error."""

    def __init__(self, kill_all: Callable[[threading.Thread | None], bool]) -> None:
        self._kill_all = kill_all  # ends every command that runs, and all that the thread may start; False where none runs
        self._received = False
        self._pending: int | None = None  # the signal that has come and was not heard yet
        self._open = False
        self._call: _Call[Any] | None = None
        self._idle: _Worker | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            heard = [s for s in _SIGNALS if signal.getsignal(s) != signal.SIG_IGN]
            self._previous = {s: signal.signal(s, self._handle) for s in heard}
        return self

    def __exit__(self, *_: object) -> None:
        if self._idle is not None:
            self._idle.end()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self._received:
            self._kill_all(None)
            os._exit(128 + signum)
        self._received, self._pending = True, signum
        if self._call is not None:
            self._call.over.put(False)
        if self._open:
            self._open = False
            raise Interrupted(signum)

    def check(self) -> None:
        """Raise Interrupted if a signal has come."""
        if self._pending is not None:
            raise Interrupted(self._pending)

    def heard(self) -> None:
        """The signal that has come does not stop what is done from now on."""
        self._pending = None

    def abandonable(self, call: Callable[[], T]) -> T:
        """What `call`, which may take long, returns or raises. Interrupted where a signal comes first: the commands that it runs
        are killed, all else of it goes on unseen until the process ends."""
        self.check()
        worker, self._idle = self._idle or _Worker(), None
        self._call = running = _Call(call)
        worker.give(running)
        try:
            if self._pending is None and running.first():
                self._idle = worker
                return running.result()
        finally:
            self._call = None
        if self._kill_all(worker.thread):
            running.wait(_GRACE)
        raise Interrupted(self._pending or signal.SIGINT)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Around a read from the terminal, which no thread could be left alone with: here a signal raises."""
        self._open = True
        try:
            self.check()
            yield
        finally:
            self._open = False
