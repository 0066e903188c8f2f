"""Edits of the active context: what a compaction does to messages. A closed union."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Elide:
    """Tool results whose text gives way to a placeholder (records by number)."""

    kind: ClassVar[str] = "elide"
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shorten:
    """Assistant messages whose long call arguments are shortened."""

    kind: ClassVar[str] = "shorten"
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """Messages that leave the active context: all from record `first` to record `last`, inclusive, the system message aside."""

    kind: ClassVar[str] = "drop"
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Insert:
    """A note in the place of what it covers."""

    kind: ClassVar[str] = "insert"
    text: str
    first: int
    last: int
    level: int = 0


Edit = Elide | Shorten | Drop | Insert
