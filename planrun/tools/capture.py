"""One stream of a command, kept in bounded memory."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from planrun.tools.text import abridge, clean, clip

CAPTURE_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class Captured:
    """What a stream carried: `total` bytes, of which `head` and `tail` are here. `saved` is the file with its first
    `saved_bytes`, or None where it was short enough to be here whole, nobody asked, or the disk refused."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    saved: Path | None = None
    saved_bytes: int = 0

    @property
    def omitted(self) -> int:
        return self.total - len(self.head) - len(self.tail)

    def text(self, limit: int, where: str = "the rest was not kept") -> str:
        """The stream for the model: cleaned, at most `limit` characters."""
        if not self.omitted:
            return clip(clean(self.head + self.tail), limit, where)
        return abridge(clean(self._whole_head()), clean(self._whole_tail()), self.total, limit, where, "bytes")

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
    no longer fit."""

    def __init__(self, head: int, tail: int, path: Path | None) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._path = path
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._file: BinaryIO | None = None
        self._written = 0

    def feed(self, chunk: bytes) -> None:
        head, tail = self._head_limit, self._tail_limit
        if self._path and self._total <= head + tail < self._total + len(chunk):
            self._open(self._path)
        if self._file:
            self._write(chunk)
        self._total += len(chunk)
        room = head - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Cut rarely: moving the tail at every chunk would cost its size each time.
        if len(self._tail) > 2 * tail + len(chunk):
            del self._tail[: len(self._tail) - tail]

    def close(self) -> Captured:
        """What was held; closes the file."""
        if self._file:
            with suppress(OSError):
                self._file.close()
        kept = bytes(self._tail[max(0, len(self._tail) - self._tail_limit) :])
        saved = self._path if self._file else None
        return Captured(bytes(self._head), kept, self._total, saved, self._written)

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "xb", buffering=0, opener=_private)  # noqa: SIM115 (close() closes it)
        except OSError:
            self._path = None
            return
        self._write(bytes(self._head))
        self._write(bytes(self._tail))

    def _write(self, chunk: bytes) -> None:
        """A full disk must not stop the command: the file goes, the counting goes on."""
        if self._file is None:
            return
        try:
            self._written += self._file.write(chunk[: CAPTURE_LIMIT - self._written]) or 0
        except OSError:
            self._discard()

    def _discard(self) -> None:
        with suppress(OSError):
            if self._file:
                self._file.close()
            if self._path:
                self._path.unlink()
        self._file = self._path = None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
