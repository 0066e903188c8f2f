"""One stream of a command, kept in bounded memory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from planrun.masking.masker import NOTHING, Masker
from planrun.tools.text import abridge, clean, clip, strip_controls

CAPTURE_LIMIT = 64 << 20
_UNSEEN = ("\x1b", "\x9b", "\b", "\r", "\0")
# What `strip_controls` leaves out, nearly, of bytes: a flood of them is looked through in a tenth of the time.
_SEQUENCE = re.compile(
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*+[ -/]*+[@-~]?|\x1b\][^\x07\x1b\n\r]*+(?:\x07|\x1b\\)?"
    rb"|\x1b[PX^_](?:[^\x1b]*+\x1b\\|[^\x1b\n\r]*+)|\x1b[ -/]*+[0-~]?"
)
_CONTROLS = bytes([*range(9), *range(11, 32), 127])


@dataclass(frozen=True, slots=True)
class Captured:
    """What a stream carried: `total` bytes, of which `head` and `tail` are here, secrets masked. `saved` is the file with its
    first `saved_bytes`, or None where it was short enough to be here whole, nobody asked, or the disk refused."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    saved: Path | None = None
    saved_bytes: int = 0
    mask: Masker = NOTHING

    @property
    def omitted(self) -> int:
        return self.total - len(self.head) - len(self.tail)

    def text(self, limit: int, where: str = "the rest was not kept") -> str:
        """The stream for the model: cleaned, masked (what escape sequences parted is whole now), at most `limit` characters."""
        if not self.omitted:
            return clip(self.mask(clean(self.head + self.tail)), limit, where)
        head, tail = self.mask(clean(self._whole_head())), self.mask(clean(self._whole_tail()))
        return abridge(head, tail, self.total, limit, where, "bytes")

    def _whole_head(self) -> bytes:
        """`head` without the character that the cut went through."""
        for back in range(1, min(4, len(self.head)) + 1):
            if self.head[-back] >= 0xC0:
                return self.head[:-back]
            if self.head[-back] < 0x80:
                break
        return self.head

    def _whole_tail(self) -> bytes:
        start = next((i for i, byte in enumerate(self.tail[:4]) if not 0x80 <= byte < 0xC0), 0)
        return self.tail[start:]


class Stream:
    """Takes chunks, holds the first `head` and last `tail` bytes, counts the rest, and writes all to `path` once they
    no longer fit. Around each cut it holds so much more that no secret is cut through: what leaves here is masked."""

    def __init__(self, head: int, tail: int, path: Path | None, mask: Masker = NOTHING) -> None:
        self._mask, self._margin = mask, 4 * mask.reach  # bytes of characters
        self._head_limit, self._tail_limit, self._limit = head, tail, head + tail
        self._path = path
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._file: BinaryIO | None = None
        self._saved = 0  # bytes that were given to the file
        self._waiting = b""  # for the file: what may be the beginning of a secret

    def feed(self, chunk: bytes) -> None:
        limit, head, tail = self._limit, self._head_limit + self._margin, self._tail_limit + self._margin
        if self._path and self._total <= limit < self._total + len(chunk):
            self._open(self._path)
        if self._file:
            self._save(chunk)
        self._total += len(chunk)
        room = head - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Cut rarely: moving the tail at every chunk would cost its size each time.
        if len(self._tail) > 2 * tail + len(chunk):
            del self._tail[: len(self._tail) - tail]

    def close(self) -> Captured:
        """What was held; closes the file."""
        self._save(b"", last=self._saved == self._total)
        if self._file:
            with suppress(OSError):
                self._file.close()
        saved = self._path if self._file else None
        head, tail = self._ends()
        total = len(head) + len(tail) if self._total <= self._limit else self._total
        return Captured(head, tail, total, saved, self._saved - len(self._waiting), self._mask)

    def _ends(self) -> tuple[bytes, bytes]:
        """Head and tail, masked; all as the head where nothing was left out."""
        whole = len(self._head) + len(self._tail) == self._total
        head = tail = self._head + self._tail if whole else self._head
        if self._total <= self._limit:
            masked = _bytes(self._mask(self._joined(_text(head))))
            return masked[: self._head_limit], masked[self._head_limit :]
        if not whole:
            tail = self._tail[-self._tail_limit - self._margin :]
        return self._part(head, 0, self._head_limit), self._part(tail, len(tail) - self._tail_limit, len(tail))

    def _joined(self, text: str) -> str:
        """The text; without all that a terminal does not show, where that parts a secret."""
        if not any(mark in text for mark in _UNSEEN):
            return text
        seen = _text(_SEQUENCE.sub(b"", _bytes(text)).translate(None, _CONTROLS))
        parted = self._mask(seen).count("[secret ") > self._mask(text).count("[secret ")
        return strip_controls(text) if parted else text

    def _part(self, data: bytearray, start: int, end: int) -> bytes:
        text = _text(data)
        before = len(_text(data[:start]))
        return _bytes(self._mask.part(text, before, before + len(_text(data[start:end]))))

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "xb", buffering=0, opener=_private)  # noqa: SIM115 (close() closes it)
        except OSError:
            self._path = None
            return
        self._save(bytes(self._head + self._tail))

    def _save(self, chunk: bytes, *, last: bool = False) -> None:
        """A full disk must not stop the command: the file goes, the counting goes on."""
        if self._file is None:
            return
        chunk = chunk[: CAPTURE_LIMIT - self._saved]
        if not chunk and not last:
            return
        self._saved += len(chunk)
        text = self._joined(_text(self._waiting + chunk))
        ready, waiting = (self._mask(text), "") if last else self._mask.begin(text)
        self._waiting = _bytes(waiting)
        try:
            self._file.write(_bytes(ready))
        except OSError:
            self._discard()

    def _discard(self) -> None:
        with suppress(OSError):
            if self._file:
                self._file.close()
            if self._path:
                self._path.unlink()
        self._file = self._path = None


def _text(data: bytes | bytearray) -> str:
    """As text and back (`_bytes`) every byte stays what it is."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
