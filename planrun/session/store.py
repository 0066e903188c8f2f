"""All sessions of a folder: their names, which one is meant, how to read one."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from planrun.core.events import Ended, Session
from planrun.core.records import Record
from planrun.errors import Outcome, SessionDamaged, UsageError
from planrun.session.raw import LONGEST, opened, too_long
from planrun.session.reader import UNREADABLE, Reader, read_record
from planrun.session.texts import name

_TAIL = 1 << 16


def new_id() -> str:
    """Sorts by time; never made from anything in the plan."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2)


@dataclass(frozen=True, slots=True)
class Found:
    """One session of the folder, from its first and its last record. `ended` is None where the last record is not an end."""

    path: Path
    header: Session
    started: float
    touched: float
    ended: Ended | None

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def finished(self) -> bool:
        return self.ended is not None and self.ended.outcome == Outcome.FINISHED and not self.ended.partial


class Store:
    """The folder that holds the logs of sessions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, session_id: str) -> Path:
        """Where a session of this name lies or would lie. Raises UsageError for a name that is not one."""
        try:
            return self.folder / f"{name(session_id)}.jsonl"
        except ValueError as error:
            raise UsageError(str(error)) from None

    def all(self) -> list[Found]:
        """Every readable session, newest last. A file that is no session is passed over here; naming it gives its error."""
        return self._survey()[0]

    def _survey(self) -> tuple[list[Found], list[tuple[Path, SessionDamaged]]]:
        """The readable sessions, newest last, and why others are none."""
        found, faults = [], []
        for path in sorted(self.folder.glob("*.jsonl")):
            try:
                found.append(self.look(path))
            except SessionDamaged as error:
                faults.append((path, error))
        return sorted(found, key=lambda f: (f.touched, f.id)), faults

    def look(self, path: Path) -> Found:
        """A session's first and last record. Raises SessionDamaged where it has no readable header."""
        try:
            with opened(path) as file:
                head = _record(file.readline(LONGEST))
                tail = _last_line(file) if head is not None else b""
        except OSError as error:
            raise SessionDamaged(f"cannot read the session log {path}: {error.strerror or error}") from error
        if head is None or not isinstance(head.event, Session):
            raise SessionDamaged(f"{path}, line 1: it is not the header of a session", 1)
        last = _record(tail)
        ended = last.event if last is not None and isinstance(last.event, Ended) else None
        touched = last.timestamp if last is not None else _changed(path)
        return Found(path, head.event, head.timestamp, touched, ended)

    def find(self, name: str) -> Path:
        """The log that a name or a unique beginning of one means. Raises UsageError where it is none or several."""
        exact = self.path(name)
        if exact.exists() or exact.is_symlink():
            return exact
        close = sorted(self.folder.glob("*.jsonl"))
        meant = [p for p in close if p.stem.startswith(name)]
        if len(meant) == 1:
            return meant[0]
        if meant:
            raise UsageError(f"{name!r} means several sessions: {', '.join(p.stem for p in meant)}")
        known = f"there are: {', '.join(p.stem for p in close[-10:])}" if close else "there are none yet"
        raise UsageError(f"there is no session {name!r} in {self.folder}; {known}")

    def newest_unfinished(self, cwd: Path) -> Path:
        """The session that `resume` without a name means, among those of this working directory only. What a log that cannot be
        read at all would say is not guessed, where it may be newer."""
        found, faults = self._survey()
        here = [f for f in found if not f.finished and f.header.cwd == str(cwd)]
        for path, fault in faults:
            unread = isinstance(fault.__cause__, OSError)
            if unread and (not here or _changed(path) > here[-1].touched):
                raise UsageError(f"{fault}; it may be the newest session: name the one to resume")
        if not here:
            others = [f"{f.id} ({f.header.cwd})" for f in found if not f.finished]
            more = f"; unfinished ones elsewhere, to be named: {', '.join(others)}" if others else ""
            raise UsageError(f"there is no unfinished session of {cwd} in {self.folder}{more}")
        newest = [f for f in here if f.touched == here[-1].touched]
        if len(newest) > 1:
            raise UsageError(f"several sessions are equally new, name one: {', '.join(f.id for f in newest)}")
        return newest[0].path


def _changed(path: Path) -> float:
    """When a file was written last, in Unix seconds; in the far future where nobody can tell."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return float("inf")


def _last_line(file: BinaryIO) -> bytes:
    """The last line of a file, read from its end: as much as it takes."""
    size = os.fstat(file.fileno()).st_size
    room = _TAIL
    while True:
        file.seek(max(0, size - room))
        _, newline, line = file.read(room).rstrip(b"\n").rpartition(b"\n")
        if newline or room >= min(size, LONGEST):
            return line
        room *= 4


def _record(line: bytes) -> Record | None:
    if too_long(line):
        return None
    try:
        body: Any = json.loads(line)
        return read_record(body)
    except UNREADABLE:
        return None


def records(path: Path) -> Iterator[Record]:
    """Every record of a log, for reading only; a torn last line is passed over. Raises SessionDamaged."""
    try:
        with opened(path) as file:
            yield from Reader(file, path)
    except OSError as error:
        raise SessionDamaged(f"cannot read the session log {path}: {error.strerror or error}") from error
