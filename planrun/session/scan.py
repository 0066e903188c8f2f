"""Searching without an index: read every line, keep what fits. Slow, simple, and what the index is measured against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from planrun.core.archive import Search
from planrun.session import terms
from planrun.session.query import Query, matches
from planrun.session.raw import opened
from planrun.session.texts import Doc, Lines, docs


class Filter(NamedTuple):
    """What a hit must be, beside its words. `since` is inclusive, `before` is not (Unix seconds)."""

    scope: str
    role: str | None
    step: str | None
    since: float | None
    before: float | None

    @classmethod
    def of(cls, asked: Search, since: float | None, before: float | None) -> Filter:
        return cls(asked.scope, asked.role, asked.step, since, before)

    def passes(self, doc: Doc) -> bool:
        return (
            self.scope in ("both", doc.kind)
            and self.role in (None, doc.role)
            and self.step in (None, doc.step)
            and (self.since is None or doc.timestamp >= self.since)
            and (self.before is None or doc.timestamp < self.before)
        )


def scan(path: Path, query: Query, only: Filter, damaged: dict[str, int]) -> Iterator[Doc]:
    """The records of a log that fit, the oldest first. Adds to `damaged` how many lines could not be read. Raises OSError."""
    with opened(path) as file:
        lines = Lines(file, texts_only=True)
        for doc in docs(lines):
            if only.passes(doc) and matches(query, terms.line(doc.text)):
                yield doc
        if lines.damaged:
            damaged[path.stem] = lines.damaged
