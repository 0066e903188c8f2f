"""Each record as it is appended, in the bytes of the log: `--format jsonl`."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from planrun.core.records import Record
from planrun.core.state import State
from planrun.views.screen import drop, loss


class RawLines:
    """An observer that copies what a log grows by after it was opened. A closed pipe ends the copying, not the run."""

    def __init__(self, out: BinaryIO) -> None:
        self._out: BinaryIO | None = out
        self._path: Path | None = None
        self._offset = 0
        self.lost = ""  # why lines were lost, where it is not that their reader went away

    def opened(self, path: Path) -> None:
        self._path, self._offset = path, path.stat().st_size

    def __call__(self, record: Record, state: State) -> None:
        self._copy()

    def _copy(self) -> None:
        if self._path is None or self._out is None:
            return
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except OSError:  # a log that is not there any more stops the run where it is next synced, with the reason
            return
        self._offset += len(new)
        try:
            self._out.write(new)
            self._out.flush()
        except (OSError, ValueError) as error:
            self.lost = loss(error)
            drop(self._out)
            self._out = None
