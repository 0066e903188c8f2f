"""Writing to a stream that may go away: a closed pipe or a vanished terminal ends the output, never the run."""

from __future__ import annotations

import errno
import os
from typing import BinaryIO, TextIO

from planrun.views.inert import inert

_ASCII = str.maketrans(
    {
        "\N{HORIZONTAL ELLIPSIS}": "...",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHTWARDS ARROW}": "->",
    }
)


def drop(stream: TextIO | BinaryIO) -> None:
    """Lead what is still in the stream's buffer nowhere: the interpreter would fail on it when it exits."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


def loss(error: Exception) -> str:
    """Why text was lost that a stream did not take; empty where it is only that its reader went away."""
    if isinstance(error, OSError) and error.errno not in (errno.EPIPE, errno.EIO):
        return error.strerror or str(error)
    return ""


class Screen:
    """What printing needs of a text stream. After a failed write `alive` is false and nothing more is written."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.alive = stream is not None
        self.lost = ""  # why text was lost, where it is not that its reader went away
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.unicode = self.encoding.lower().replace("-", "").startswith("utf")

    def write(self, text: str) -> int:
        if self._stream is not None and self.alive:
            try:
                self._stream.write(text if self.unicode else self._narrowed(text))
            except (OSError, ValueError) as error:
                self._gone(error)
        return len(text)

    def flush(self) -> None:
        if self._stream is not None and self.alive:
            try:
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._gone(error)

    def _gone(self, error: Exception) -> None:
        self.alive = False
        self.lost = loss(error)
        if self._stream is not None:
            drop(self._stream)

    def line(self, text: str) -> None:
        """A line or several, which can do nothing to a terminal or a CI system."""
        self.write(f"{inert(text)}\n")
        self.flush()

    def isatty(self) -> bool:
        return self._stream is not None and self.alive and self._stream.isatty()

    def fileno(self) -> int:
        """Raises OSError where there is no file descriptor behind the stream."""
        if self._stream is None:
            raise OSError("no stream")
        return self._stream.fileno()

    def _narrowed(self, text: str) -> str:
        """Text that the stream's encoding can carry: everyday punctuation in ASCII, the rest as escapes."""
        return text.translate(_ASCII).encode(self.encoding, "backslashreplace").decode(self.encoding)
