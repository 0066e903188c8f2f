"""One page of a text file, read as a stream: memory does not depend on the size of the file, and the time is bounded."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field
from io import StringIO
from typing import TextIO

from planrun.masking.masker import NOTHING, Masker
from planrun.tools.text import strip_controls

LINE_CAP = 10_000  # characters of a line that are shown, its middle left out
SECONDS = 10.0  # that reading may take; a sparse file can be larger than any disk
_PIECE = 1 << 16
_CHUNK = 1 << 20


@dataclass(slots=True)
class Page:
    """Lines `first` to `last` (1-based; last < first: none) of `total`, or of at least so many where `partial`: then the time was
    over before the end of the file."""

    lines: list[str] = field(default_factory=list)
    first: int = 1
    last: int = 0
    total: int = 0
    partial: bool = False


def read_page(
    text: TextIO, offset: int, limit: int, room: int, name: str, seconds: float = SECONDS, mask: Masker = NOTHING
) -> Page:
    """The lines of `text` from line `offset` on: at most `limit` of them and `room` characters (a first line is always
    given, cut if it must be, and no secret with it). `name` is the file's, for the hint at a line that was cut."""
    source = _Source(text, time.monotonic() + seconds)
    page = Page(first=offset, last=offset - 1, total=source.skip(offset - 1))
    cap = max(200, min(LINE_CAP, room - 200))
    used = 0
    while piece := source.piece():
        page.total += 1
        line = strip_controls(_whole_line(source, piece, cap, page.total, name, mask))
        used += len(line) + 1
        if page.lines and (used > room or len(page.lines) >= limit):
            break
        page.lines.append(line)
        page.last = page.total
    page.total += source.skip(None)
    page.partial = source.late
    return page


class _Source:
    """Lines of a stream in bounded pieces; skipping reads whole chunks, because a call for each line would take
    seconds for a large file. It ends at `end`, a time.monotonic() value, and is `late` then."""

    def __init__(self, text: TextIO, end: float) -> None:
        self._text = text
        self._end = end
        self.late = False
        self._ahead: TextIO = StringIO()

    def piece(self) -> str:
        """The next part of a line, its end if it ends with a newline; empty at the end of the stream."""
        return self._ahead.readline(_PIECE) or ("" if self._over() else self._text.readline(_PIECE))

    def skip(self, lines: int | None) -> int:
        """Pass over `lines` lines, or all there are; how many that were."""
        skipped, last = 0, "\n"
        while (lines is None or skipped < lines) and (
            chunk := self._ahead.read() or ("" if self._over() else self._text.read(_CHUNK))
        ):
            count = chunk.count("\n")
            if lines is not None and skipped + count >= lines:
                start = 0
                for _ in range(lines - skipped):
                    start = chunk.index("\n", start) + 1
                self._ahead = StringIO(chunk[start:], newline="")
                return lines
            skipped += count
            last = chunk[-1]
        return skipped + (last != "\n")

    def _over(self) -> bool:
        self.late = self.late or time.monotonic() > self._end
        return self.late


def _whole_line(source: _Source, piece: str, cap: int, number: int, name: str, mask: Masker) -> str:
    """The line that `piece` begins, its middle left out where it is longer than `cap`."""
    most = cap + mask.reach
    head, tail, length = piece[:most], piece[-most:], len(piece)
    while not piece.endswith("\n") and (following := source.piece()):
        piece = following
        length += len(piece)
        head += piece[: most - len(head)]
        tail = (tail + piece)[-most:]
    length -= piece.endswith("\n")
    if length <= cap:
        return head.removesuffix("\n")
    tail, half = tail.removesuffix("\n"), cap // 2 - 80
    way = f"Bash: sed -n {number}p {shlex.quote(name)} | cut -c {half + 1}-{half + cap}"
    first, last = mask.part(head, 0, half), mask.part(tail, len(tail) - half, len(tail))
    return f"{first} [... {length - 2 * half:,} characters of this line left out; {way} ...] {last}"
