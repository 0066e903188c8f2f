"""The session log: one JSON object a line, append-only, each line naming the digest of the line before.

No byte is ever rewritten. The one exception proves the rule: a torn last line (a crash in the middle of a write, so never
announced to anybody) is cut off before anything is appended, and a note says so."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from planrun.core.events import Event
from planrun.core.messages import compact_json, well_formed
from planrun.core.records import Record, encode
from planrun.errors import ConfigError, SessionDamaged, StorageError
from planrun.masking.masker import NOTHING, Masker
from planrun.masking.records import masked
from planrun.session import lock
from planrun.session.raw import LONGEST, opened
from planrun.session.reader import GENESIS, Reader, line_digest, never_synced, read_record

_FIRST = b'{"seq":1,"type":"session",'  # how a log begins


class Clock:
    """Unix time that never steps: taken once from the `wall`, then carried on by a `steady` clock, and never before `floor`."""

    def __init__(
        self, floor: float = 0.0, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._steady = steady
        self._base = max(wall(), floor) - steady()

    def now(self) -> float:
        return round(self._base + self._steady(), 3)


class Log:
    """The one writer of a session. `append` writes a record and returns it; `sync` makes everything so far durable."""

    def __init__(self, file: BinaryIO, path: Path, *, seq: int, prev: str, clock: Clock, mask: Masker = NOTHING) -> None:
        self.path = path
        self.start = self.size = file.tell()  # where the newest line begins and ends, in bytes
        self.prev = prev
        self._file = file
        self._seq = seq
        self._clock = clock
        self._mask = mask
        self._dirty = False
        self._broken: StorageError | None = None

    def append(self, event: Event) -> Record:
        """Write one record. What it returns is what was written: secrets masked, text well-formed."""
        record = Record(self._seq + 1, self._clock.now(), event)
        body = {"seq": record.seq, **encode(event), "timestamp": record.timestamp}
        plain = compact_json(body)
        safe = masked(body, self._mask) if self._mask.suspects(plain) else body
        if safe is not body:
            plain = compact_json(safe)
        text = well_formed(plain)
        self._write(f'{text[:-1]},"prev":"{self.prev}"}}'.encode())
        self._seq = record.seq
        return record if safe is body and text == plain else read_record(json.loads(text))

    def _write(self, line: bytes) -> None:
        self._check()
        raw = line + b"\n"
        try:
            if self._file.write(raw) != len(raw):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise self._failed(error) from error
        self.start, self.size = self.size, self.size + len(raw)
        self.prev = line_digest(line)
        self._dirty = True

    def sync(self) -> None:
        """Everything appended so far is on disk, under the log's name, when this returns. Costs nothing where nothing was
        appended."""
        self._check()
        if not self._dirty:
            return
        try:
            os.fsync(self._file.fileno())
            self._still_there()
        except OSError as error:
            raise self._failed(error) from error
        self._dirty = False

    def _still_there(self) -> None:
        """What was deleted, replaced or changed by somebody else is no record that a resume could go on from."""
        named, ours = os.stat(self.path), os.fstat(self._file.fileno())
        if not os.path.samestat(named, ours):
            raise OSError(errno.ESTALE, "another file has taken its place")
        if ours.st_size != self.size:
            raise OSError(errno.ESTALE, f"somebody else changed it: it has {ours.st_size:,} bytes, {self.size:,} were written")

    def _check(self) -> None:
        """After one failure nothing is written any more: the last line may be torn, and what was not synced may be lost."""
        if self._broken is not None:
            raise self._broken

    def _failed(self, error: OSError) -> StorageError:
        self._broken = StorageError(
            f"cannot write the session log {self.path}: {error.strerror or error}. "
            "The run stopped; free the disk or mend the folder, then resume."
        )
        return self._broken

    def close(self) -> None:
        if not self._file.closed:
            lock.release(self._file, self.path)


def create(path: Path, mask: Masker = NOTHING) -> Log:
    """A new, empty log at `path` (mode 0600), locked; a file that a crash left there without a record is taken over. Raises
    SessionBusy, ConfigError where the folder cannot be written to or there is a log already."""
    with contextlib.ExitStack() as undo:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
            file = undo.enter_context(os.fdopen(fd, "ab", buffering=0))
            lock.acquire(file, path)
            if begun(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            file.truncate(0)
            file.seek(0)  # opening it to append had put us behind what a crash left
            os.fsync(fd)
            _sync_folder(path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                if not path.stat().st_size:
                    path.unlink()
            raise ConfigError(
                f"cannot create the session log {path}: {error.strerror or error}. Name another folder with --session-dir."
            ) from error
        undo.pop_all()  # it lives as long as the log
    return Log(file, path, seq=0, prev=GENESIS, clock=Clock(), mask=mask)


def begun(path: Path) -> bool:
    """Whether there is a log at `path`, or anything else that is not planrun's to take over. A run that was killed before its first
    record was whole has left an empty file, or a part of that record: nothing that was ever in force. Raises OSError."""
    if not os.path.lexists(path):
        return False
    if not stat.S_ISREG(path.lstat().st_mode):
        return True
    with opened(path) as file:
        first = file.readline(LONGEST)
        if not _FIRST.startswith(first[: len(_FIRST)].rstrip(b"\0")):
            return True
        whole = first.endswith(b"\n") and b"\0" not in first
        return whole or not never_synced(file)


def name(half: Path, path: Path) -> None:
    """Call the whole and synced log at `half` `path` from now on; the old name is left to be removed. Raises ConfigError where
    something has that name by now."""
    try:
        try:
            os.link(half, path)
        except FileExistsError:
            raise
        except OSError:  # no hard links here
            half.rename(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise ConfigError(f"cannot create the session log {path}: {error.strerror or error}") from error


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def open_locked(path: Path) -> BinaryIO:
    """The log file, locked for writing, at offset 0. Raises SessionBusy, or SessionDamaged where it cannot be opened."""
    with contextlib.ExitStack() as undo:
        try:
            file = undo.enter_context(open(path, "r+b", buffering=0))
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            lock.acquire(file, path)
        except OSError as error:
            raise SessionDamaged(f"cannot open the session log {path}: {error.strerror or error}") from error
        undo.pop_all()  # it lives as long as the log
    return file


def continue_at(file: BinaryIO, path: Path, reader: Reader, floor: float, mask: Masker = NOTHING) -> Log:
    """The log, ready to append after the last whole record that `reader` saw; a torn last line is cut off first."""
    try:
        if reader.torn:
            file.truncate(reader.offset)
        file.seek(reader.offset)
        if reader.open_end:
            file.write(b"\n")
            file.seek(0, os.SEEK_END)
        if reader.torn or reader.open_end:
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot write the session log {path}: {error.strerror or error}") from error
    return Log(file, path, seq=reader.seq, prev=reader.prev, clock=Clock(floor), mask=mask)
