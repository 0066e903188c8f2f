"""Crash points: a log that dies at a chosen record, the way a SIGKILL or a power cut would."""

from __future__ import annotations

import os
from typing import Literal

from planrun.core.events import Event
from planrun.core.records import Record
from planrun.session.log import Log

Moment = Literal["before", "half", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "half", "after")


class Crash(BaseException):
    """Nothing in planrun catches this: what is on disk is all that is left."""


class CrashingJournal:
    """Stands before a log and raises Crash at the `at`-th append of its life (1, 2, …): before anything is written, with half
    of the line written, or with the whole line on disk."""

    def __init__(self, log: Log, at: int, moment: Moment) -> None:
        self._log, self._at, self._moment = log, at, moment
        self._count = 0

    def append(self, event: Event) -> Record:
        self._count += 1
        if self._count < self._at:
            return self._log.append(event)
        if self._moment != "before":
            start = self._log.size
            self._log.append(event)
            self._log.sync()
            if self._moment == "half":
                os.truncate(self._log.path, start + (self._log.size - start) // 2)
        raise Crash(f"at record {self._at}, {self._moment}")

    def sync(self) -> None:
        self._log.sync()
