"""Server-sent events out of a stream of bytes that may be cut anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its type ("" where none was named) and its data lines."""

    type: str
    data: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.data)


def events(chunks: Iterable[bytes]) -> Iterator[Event]:
    """The events of the stream, comments and events without data left out. An event that the end of the stream cut off
    before its blank line is given too. `data: [DONE]` is given at once: some servers hold the line open after it."""
    kind, data = "", list[str]()
    for line in _lines(chunks):
        if not line:
            if data:
                yield Event(kind, tuple(data))
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
            if value.strip() == "[DONE]":
                yield Event(kind, tuple(data))
                kind, data = "", []
    if data:
        yield Event(kind, tuple(data))


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines ended by CRLF, LF or CR, decoded one by one, so that a character cut between two chunks stays whole."""
    parts: list[bytes] = []
    for chunk in chunks:
        parts.append(chunk)
        if b"\n" not in chunk and b"\r" not in chunk:
            continue
        lines = b"".join(parts).splitlines(keepends=True)
        # The last line may go on, and a final CR may be the first half of a CRLF.
        parts = [] if lines[-1].endswith(b"\n") else [lines.pop()]
        yield from map(_text, lines)
    yield from map(_text, b"".join(parts).splitlines())


def _text(line: bytes) -> str:
    return line.rstrip(b"\r\n").decode("utf-8", "replace")
