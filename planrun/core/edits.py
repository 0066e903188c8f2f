"""Edits of the active context: what a compaction does to messages. A closed union; records are named by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Elide:
    """Tool results whose text gives way to a placeholder. `by` says which wording: at a boundary, or to fit the window."""

    kind: ClassVar[str] = "elide"
    seqs: tuple[int, ...]
    by: Literal["boundary", "window"] = "boundary"


@dataclass(frozen=True, slots=True)
class Shorten:
    """Assistant messages whose long call arguments are shortened."""

    kind: ClassVar[str] = "shorten"
    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """One message that is too long by itself: its first and last characters stay with a line in between, `keep` characters in all."""

    kind: ClassVar[str] = "cut"
    seq: int
    keep: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Messages that leave the active context: all from record `first` to record `last`, inclusive, the system message aside."""

    kind: ClassVar[str] = "drop"
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Insert:
    """A note in the place of the messages `first` to `last`, which leave, notes among them included. `level` 0 is a notice, 1 a summary of messages, 2 and more a summary of summaries. `deterministic` says that no model wrote it."""

    kind: ClassVar[str] = "insert"
    text: str
    first: int
    last: int
    level: int = 0
    deterministic: bool = False


Edit = Elide | Shorten | Cut | Drop | Insert
