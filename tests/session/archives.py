"""Logs to search in, written by the real log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from planrun.core.archive import Found, Search
from planrun.core.edits import Edit
from planrun.core.events import CallEnded, Compacted, Event, Said, Session
from planrun.core.messages import Message, Origin, Role, ToolCall
from planrun.session import index
from planrun.session import log as logs
from planrun.session import search as searching
from planrun.session.reader import Reader

ORIGINS: dict[Role, Origin] = {"system": "runner", "user": "user", "assistant": "model", "tool": "tool"}


def said(
    text: str | None, role: Role = "user", step: str | None = "one", calls: tuple[ToolCall, ...] = (), name: str | None = None
) -> Said:
    call_id = "c1" if role == "tool" else None
    return Said.of(Message(role, text, calls, call_id), ORIGINS[role], step, 1, name=name)


def compacted(*edits: Edit, boundary: str | None = None) -> Compacted:
    return Compacted("leaf", "budget", edits, 1, 2, 1, 20, 10, boundary)


def ran(text: str, step: str) -> CallEnded:
    return CallEnded("run:1", "run", "ok", 0.1, step, text)


def header(name: str, cwd: str = "/w") -> Session:
    return Session(1, name, cwd, f"{cwd}/p.yaml", "steps: []", "d", {}, "m", {})


def write(folder: Path, events: Iterable[Event], name: str = "s", cwd: str = "/w") -> Path:
    """A log of a header, which is record 1, and these events."""
    log = logs.create(folder / f"{name}.jsonl")
    for event in (header(name, cwd), *events):
        log.append(event)
    log.close()
    return log.path


def append(path: Path, events: Iterable[Event]) -> None:
    file = logs.open_locked(path)
    reader = Reader(file, path)
    floor = max(r.timestamp for r in reader)
    log = logs.continue_at(file, path, reader, floor)
    for event in events:
        log.append(event)
    log.close()


def find(where: Path | list[Path], pattern: str, *, indexed: bool = True, busy: float = index.BUSY, **asked: object) -> Found:
    paths = where if isinstance(where, list) else [where]
    return searching.search(paths, Search(pattern, **asked), indexed=indexed, busy=busy)  # type: ignore[arg-type]


def numbers(found: Found) -> list[int]:
    return sorted(hit.record for hit in found.hits)
