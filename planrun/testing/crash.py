"""Crash points: a log that dies at a chosen record, the way a SIGKILL or a power cut would, or that cannot be written any more."""

from __future__ import annotations

import os
from typing import Literal

from planrun.core.events import Event
from planrun.core.records import Record
from planrun.errors import StorageError
from planrun.session.log import Log

Moment = Literal["before", "half", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "half", "after")
Loss = Literal["all", "half", "zeros", "pages"]
LOSSES: tuple[Loss, ...] = ("all", "half", "zeros", "pages")
Refusal = Literal["append", "short", "sync"]
REFUSALS: tuple[Refusal, ...] = ("append", "short", "sync")


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


class PowerCut:
    """Stands before a log and raises Crash at the `at`-th append of its life, as `CrashingJournal` does, but takes along what no
    `sync` made durable: all of it, its second half, or it is there in length only: as zeros, or with zeros in its middle, as
    where a later page reached the disk before an earlier one."""

    def __init__(self, log: Log, at: int, loss: Loss) -> None:
        self._log, self._at, self._loss = log, at, loss
        self._count = 0
        self._durable = log.size

    def append(self, event: Event) -> Record:
        self._count += 1
        record = self._log.append(event)
        if self._count < self._at:
            return record
        self._lose(self._log.size - self._durable)
        raise Crash(f"at record {self._at}, {self._loss} of what was not synced lost")

    def sync(self) -> None:
        self._log.sync()
        self._durable = self._log.size

    def _lose(self, size: int) -> None:
        if self._loss in ("all", "half"):
            os.truncate(self._log.path, self._durable + (size // 2 if self._loss == "half" else 0))
            return
        start, end = (0, size) if self._loss == "zeros" else (size // 3, size * 2 // 3)
        with self._log.path.open("r+b") as file:
            file.seek(self._durable + start)
            file.write(bytes(end - start))


class RefusingJournal:
    """Stands before a log on a disk that is full or broken from the `at`-th append or sync (1, 2, …) on: nothing is written, or
    half of a line, or it is written and cannot be synced. Raises StorageError, then and ever after."""

    def __init__(self, log: Log, at: int, refusal: Refusal) -> None:
        self._log, self._at, self._refusal = log, at, refusal
        self._count = {"append": 0, "sync": 0}
        self.refused = 0

    def append(self, event: Event) -> Record:
        if self._over("append", self._refusal != "sync"):
            if self._refusal == "short" and self.refused == 1:
                start = self._log.size
                self._log.append(event)
                os.truncate(self._log.path, start + (self._log.size - start) // 2)
            raise StorageError(f"cannot write the session log {self._log.path}: No space left on device")
        return self._log.append(event)

    def sync(self) -> None:
        if self._over("sync", self._refusal == "sync"):
            raise StorageError(f"cannot write the session log {self._log.path}: Input/output error")
        self._log.sync()

    def _over(self, what: str, counts: bool) -> bool:
        self._count[what] += counts
        self.refused += self.refused > 0 or (counts and self._count[what] >= self._at)
        return self.refused > 0
