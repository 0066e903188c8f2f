"""Writing to a stream that may go away: a closed pipe or a vanished terminal ends the output, never the run."""

from __future__ import annotations

from typing import TextIO

_PLAIN = {"…": "...", "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "→": "->"}
_ASCII = str.maketrans(_PLAIN)


class Screen:
    """The part of a text stream that is needed to print on. After the first failed write `alive` is false and nothing is written."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.alive = stream is not None
        self.encoding = getattr(stream, "encoding", None) or "utf-8"
        self.unicode = self.encoding.lower().replace("-", "").startswith("utf")

    def write(self, text: str) -> int:
        if self._stream is not None and self.alive:
            try:
                self._stream.write(text if self.unicode else self._narrowed(text))
            except (OSError, ValueError):
                self.alive = False
        return len(text)

    def flush(self) -> None:
        if self._stream is not None and self.alive:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self.alive = False

    def line(self, text: str) -> None:
        self.write(f"{text}\n")
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
