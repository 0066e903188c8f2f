"""Reading a log: what a line must be to be a record, and where the records that can be trusted end."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from planrun.core.messages import compact_json, well_formed
from planrun.core.records import Record, decode
from planrun.errors import SessionDamaged
from planrun.session.raw import LONGEST, lines, too_long

GENESIS = "A" * 20
UNREADABLE = (ValueError, TypeError, KeyError, RecursionError)  # what reading a line as a record may raise
_LATEST = 1e12  # Unix seconds: nothing that a clock says
_UNSYNCED = 64 << 20  # bytes: a longer tail than that was never written between two syncs
# What is synced before anything follows it; tools that only read are not. (In a text the quotes are escaped.)
_ANNOUNCED = re.compile(rb'"type":"(?:request"|tool_start".*"name":"(?:run|Bash|Write|Edit)")')


def line_digest(line: bytes) -> str:
    """What the next record's `prev` must say: the first 120 bits of the line's SHA-256 in base64url, its newline left out."""
    return urlsafe_b64encode(hashlib.sha256(line).digest()[:15]).decode("ascii")


def read_record(body: object) -> Record:
    """A record from the JSON of its line. Raises ValueError, TypeError or KeyError where it is not one."""
    if not isinstance(body, dict) or type(body.get("seq")) is not int:
        raise TypeError("an object with a number `seq` is expected")
    time = body.get("timestamp")
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < _LATEST:
        raise TypeError(f"its timestamp is {str(time)[:40]}, expected Unix seconds")
    if not isinstance(body.get("type"), str):
        raise TypeError("it has no type")
    return Record(body["seq"], float(time), decode(body))


class Reader:
    """Reads a log forward from an offset, checking numbers and the chain. After the loop `offset` is the end of the last whole
    record, `prev` its digest and `torn` what follows it, never announced, that may be cut off: an unfinished last line, or what a
    power cut left of records that were not synced."""

    def __init__(self, file: BinaryIO, path: Path, *, offset: int = 0, seq: int = 0, prev: str = GENESIS) -> None:
        self.offset, self.seq, self.prev, self.torn = offset, seq, prev, b""
        self.open_end = False  # the last record is whole, but its newline is missing
        self._file, self._path = file, path
        self._line = b""

    def __iter__(self) -> Iterator[Record]:
        import jsonlines  # a new session has nothing to read, and this takes longer to load than most logs to be read

        self._file.seek(self.offset)
        with open(self._file.fileno(), "rb", buffering=1 << 20, closefd=False) as buffered:
            reader = jsonlines.Reader(self._lines(buffered), loads=json.loads)  # exact numbers, whatever is installed
            while True:
                try:
                    body: Any = reader.read(allow_none=True)
                    if b"\\ud" in self._line or b"\\uD" in self._line:  # half a character, escaped: no request could carry it
                        body = json.loads(well_formed(compact_json(body)))
                    record = read_record(body)
                except EOFError:
                    return
                except (jsonlines.InvalidLineError, *UNREADABLE) as error:
                    if not self._line.endswith(b"\n") or (b"\0" in self._line and never_synced(buffered)):
                        self.torn = self._line + buffered.read()
                        return
                    raise self._damaged(f"it is not a record ({error})") from error
                self._check(record, body)
                yield record

    def _lines(self, file: BinaryIO) -> Iterator[str]:
        for line in lines(file):
            if too_long(line):
                raise self._damaged(f"it has more than {LONGEST:,} bytes")
            self._line = line
            yield line.decode("utf-8", "replace").removesuffix("\n")

    def _check(self, record: Record, body: dict[str, Any]) -> None:
        if record.seq != self.seq + 1:
            raise self._damaged(f"record {record.seq} stands where {self.seq + 1} is expected: a line is missing or doubled")
        if body.get("prev") != self.prev:
            raise self._damaged(f"it does not follow the line before it: line {self.seq} was altered or a line is missing")
        self.seq = record.seq
        self.open_end = not self._line.endswith(b"\n")
        self.offset += len(self._line)
        self.prev = line_digest(self._line.removesuffix(b"\n"))

    def _damaged(self, why: str) -> SessionDamaged:
        line = self.seq + 1
        return SessionDamaged(
            f"{self._path}, line {line}: {why}. Nothing was changed; `planrun doctor {self._path.stem} --repair` makes a copy that can go on.",
            line,
        )


def never_synced(file: BinaryIO) -> bool:
    """Whether the rest of the file, which stands behind a line with zeros in it (a page that did not reach the disk where later
    ones did), was not synced either. What a record announces comes after a sync, so where something follows such a record this is
    damage of another kind."""
    place = file.tell()
    rest = file.read(_UNSYNCED)
    file.seek(place)
    *before, _ = rest.removesuffix(b"\n").split(b"\n")
    return len(rest) < _UNSYNCED and not any(map(_ANNOUNCED.search, before))
