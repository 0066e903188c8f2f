"""The snapshot of a session: its state at one place of the log, so that a resume reads only what was written after it.

It lies beside the log as `ID.state` and is derived from it: a line with the digest of the rest, a line that names the place,
the state. Where it is missing, torn, of another version or not of this log, the log is folded from its beginning; deleting
it loses nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from planrun import __version__
from planrun.core.codec import Codec, codec_of
from planrun.core.events import Ended
from planrun.core.messages import compact_json
from planrun.core.records import Record
from planrun.core.state import PlanReader, State
from planrun.session.log import Log
from planrun.session.raw import opened
from planrun.session.reader import Reader, line_digest
from planrun.writing import atomic_write

FORMAT = 2  # goes up with every change of what the fold makes of the same records
GROWTH = 1 << 20  # bytes that the log grows by, at least, from one snapshot to the next
RATIO = 8  # the log also grows by this many times the last snapshot's size: all of them stay small beside the log
WORTHWHILE = 1 << 18  # bytes of a log that are folded faster than anybody notices: it needs no snapshot when it ends


def path_of(log: Path) -> Path:
    return log.with_suffix(".state")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a log a snapshot stands: after the line from byte `start` to byte `offset`, whose digest is `prev`.
    `version` says which code can read the state."""

    version: str
    start: int
    offset: int
    seq: int
    prev: str


@cache
def _codec() -> Codec:
    return codec_of(State, without=frozenset({"plan"}))


@cache
def _version() -> str:
    """Another release may fold the same records to another state, another shape is other JSON: either is passed over."""
    return f"{FORMAT} {__version__} {_digest(_codec().shape.encode())[:16].decode()}"


def load(path: Path, file: BinaryIO, read_plan: PlanReader) -> tuple[State, Reader]:
    """Where folding the log at `path` (open as `file`) may begin: a state, and the reader of the records that follow it."""
    found = _read(path)
    if found is None or not _fits(found[0], file):
        return State(), Reader(file, path)
    place, body = found
    state: State = _codec().decode(json.loads(body))
    if state.header is not None:
        state = dataclasses.replace(state, plan=read_plan(state.header))
    return state, Reader(file, path, offset=place.offset, seq=place.seq, prev=place.prev)


def usable(path: Path) -> bool:
    """Whether a resume of the log at `path` can begin at its snapshot, or there is none. Raises OSError."""
    if not path_of(path).exists():
        return True
    found = _read(path)
    with opened(path) as file:
        return found is not None and _fits(found[0], file)


def _read(log: Path) -> tuple[Place, bytes] | None:
    """The snapshot of a log, its state still as JSON; None where there is none that this version can trust."""
    try:
        with opened(path_of(log)) as file:
            digest, _, rest = file.read().partition(b"\n")
        if digest != _digest(rest):
            return None
        head, _, body = rest.partition(b"\n")
        place = Place(**json.loads(head))
    except (OSError, ValueError, TypeError):
        return None
    return (place, body) if place.version == _version() else None


def _digest(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode("ascii")


def _fits(place: Place, file: BinaryIO) -> bool:
    """Whether the log still holds the line that the snapshot stands after. Each line names the digest of the one before,
    so this line names everything that was folded in."""
    line = os.pread(file.fileno(), place.offset - place.start, place.start)
    return len(line) == place.offset - place.start and line.endswith(b"\n") and line_digest(line[:-1]) == place.prev


class Keeper:
    """An observer that writes snapshots, rarely: their bytes are at most an eighth of those that the log grew by (one more
    where a long run ends). One that the log lost lines of is passed over."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._offset, self._size = 0, 0
        found = _read(log.path)
        if found is not None and found[0].offset <= log.size:
            self._offset, self._size = found[0].offset, len(found[1])

    def observe(self, record: Record, state: State) -> None:
        """`state` is the fold of the log up to `record`, its newest. A disk that refuses the snapshot is no error: the run
        does not need it."""
        grown = self._log.size - self._offset
        over = isinstance(record.event, Ended) and self._log.size >= WORTHWHILE
        if over or grown >= max(GROWTH, RATIO * self._size):
            self._offset = self._log.size  # also where writing fails: the next try is as far away
            with contextlib.suppress(OSError):
                self.keep(state)

    def keep(self, state: State) -> None:
        """Put the snapshot of `state`, the fold of the whole log, in the place of the one before. Raises OSError."""
        body = compact_json(_codec().encode(state)).encode("utf-8")
        place = Place(
            version=_version(),
            start=self._log.start,
            offset=self._log.size,
            seq=state.seq,
            prev=self._log.prev,
        )
        rest = compact_json(dataclasses.asdict(place)).encode("utf-8") + b"\n" + body
        path = path_of(self._log.path)
        atomic_write(path.parent.resolve() / path.name, _digest(rest) + b"\n" + rest, mode=0o600)
        self._size = len(body)
