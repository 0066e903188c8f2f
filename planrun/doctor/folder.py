"""What lies in a folder of sessions beside the logs: notes of writers, snapshots, the index, texts that tools saved.

All of it is derived or left over: nothing here is damage, and it says what may be deleted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from planrun.doctor.findings import Finding
from planrun.doctor.pieces import Piece
from planrun.session import index
from planrun.session.lock import writer

_SAVED = re.compile(rb"tool-output/([A-Za-z0-9._-]+)")


@dataclass(slots=True)
class Saved:
    """The names of the saved texts that logs speak of."""

    names: set[str] = field(default_factory=set)

    def look(self, piece: Piece) -> None:
        self.names.update(name.decode("ascii") for name in _SAVED.findall(piece.raw))


def beside(folder: Path, spill: Path, saved: Saved) -> Iterator[tuple[Path, Finding]]:
    """Files that may be deleted, and how the index stands. `spill` is where this project's tools save long texts."""
    for path in sorted(folder.glob("*")):
        what = _leftover(path)
        if what is not None:
            yield path, Finding("orphan", what, advice=f"rm {path}", damage=False)
    for path in sorted(path for place in (folder, spill.parent, spill) for path in place.glob(".planrun-*.tmp")):
        yield path, Finding("orphan", "a write that a crash cut off left it", advice=f"rm {path}", damage=False)
    yield from _unused(spill, saved)
    if (folder / index.NAME).exists():
        yield folder / index.NAME, _index(folder)


def _leftover(path: Path) -> str | None:
    """Why nobody needs a file; None where somebody may."""
    log = path.with_suffix(".jsonl")
    match path.suffix:
        case ".lock" if not log.exists():
            return "the note of a writer whose session is gone"
        case ".lock" if writer(log) is None:
            return "the note of a writer that was killed; the next one writes it anew"
        case ".state" if not log.exists():
            return "the snapshot of a session that is gone"
        case ".fork" if writer(path) is None:
            return "a fork that was cut off; the next one removes it"
    if path.name.startswith(f"{index.NAME}-") and path.name.removeprefix(f"{index.NAME}-") not in ("wal", "shm", "journal"):
        return "an index that was begun and never used"
    return None


def _unused(spill: Path, saved: Saved) -> Iterator[tuple[Path, Finding]]:
    files = [p for p in spill.glob("*") if p.is_file() and not p.name.startswith(".") and p.name not in saved.names]
    if files:
        size = sum(p.stat().st_size for p in files)
        names = ", ".join(p.name for p in sorted(files)[:3]) + (", ..." if len(files) > 3 else "")
        text = f"{len(files)} saved texts of tools ({size:,} bytes) that no session here speaks of: {names}"
        yield spill, Finding("orphan", text, advice="they may be deleted", damage=False)


def _index(folder: Path) -> Finding:
    """How the index stands. A search brings it up to date, and makes one anew that is damaged."""
    try:
        behind = index.behind(folder)
    except index.Damaged as error:
        text = f"the index of searches is damaged: {error}; the next search makes it anew"
        return Finding("index", text, advice=f"rm {folder / index.NAME}*", damage=False)
    except index.Unusable as error:
        return Finding("index", f"the index of searches could not be looked at: {error}", damage=False)
    late = f"{behind:,} bytes of logs behind; the next search catches up" if behind else "up to date"
    return Finding("index", f"the index of searches is sound and {late}; it may be deleted at any time", damage=False)
