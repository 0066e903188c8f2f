"""The sessions of a folder as rows of a table."""

from __future__ import annotations

import time
from dataclasses import dataclass

from planrun.core.plan import Json
from planrun.core.state import PlanReader
from planrun.session import progress
from planrun.session.lock import writer
from planrun.session.store import Found
from planrun.views.words import one_line


@dataclass(frozen=True, slots=True)
class Row:
    """One session. `writer` is whoever runs it right now; `done` and `total` count steps, and are None, as is the plan's name, where
    they cannot be had at once."""

    found: Found
    writer: str | None
    done: int | None
    total: int | None
    plan: str | None

    @property
    def outcome(self) -> str:
        """`running` while somebody writes it, `unfinished` where it was cut off."""
        if self.writer:
            return "running"
        return one_line(self.found.ended.outcome, 40) if self.found.ended else "unfinished"

    @property
    def partial(self) -> bool:
        return bool(self.found.ended and self.found.ended.partial) and not self.writer


def row(found: Found, read_plan: PlanReader) -> Row:
    return Row(found, writer(found.path), *progress.of(found, read_plan))


def as_json(row: Row) -> dict[str, Json]:
    return {
        "session": row.found.id,
        "plan": row.plan,
        "outcome": row.outcome,
        "partial": row.partial,
        "writer": row.writer,
        "done": row.done,
        "steps": row.total,
        "started": row.found.started,
        "touched": row.found.touched,
        "cwd": row.found.header.cwd,
        "log": str(row.found.path),
    }


def table(rows: list[Row], here: str) -> str:
    """Columns as wide as they need to be; the plan's name, which may be anything, comes last."""
    lines = [("SESSION", "OUTCOME", "STEPS", "STARTED", "PLAN"), *(_cells(row, here) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join("  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[4]]) for line in lines)


def _cells(row: Row, here: str) -> tuple[str, str, str, str, str]:
    steps = "/".join("?" if count is None else str(count) for count in (row.done, row.total))
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.found.started))
    cwd = row.found.header.cwd
    elsewhere = f"  (in {one_line(cwd, 200)})" if cwd != here else ""
    outcome = row.outcome + (" (partial)" if row.partial else "")
    return row.found.id, outcome, steps, started, one_line(row.plan or "?", 60) + elsewhere
