"""A repaired copy of a damaged log: whole records in their places, a note in the place of each that is lost.

Records keep their numbers, because compactions, placeholders and summaries name records by them. Their digests are made anew.
A copy never takes the place of a file, and what is damaged stays as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from planrun.core.events import Event, Noted, Session
from planrun.core.fold import apply
from planrun.core.messages import compact_json
from planrun.core.records import Record, decode, encode
from planrun.core.state import PlanReader, State
from planrun.doctor.chain import STRAY, Chain
from planrun.doctor.mending import mend
from planrun.doctor.pieces import Piece, lines
from planrun.errors import SessionDamaged, StorageError, UsageError, refusal
from planrun.session.following import MISFITS, misfit
from planrun.session.raw import opened
from planrun.session.reader import GENESIS, line_digest
from planrun.writing import creating

_TOLD = 100  # things that are told one by one, in the copy too


@dataclass(slots=True)
class Copy:
    """The copy as it is written: what it folds to, how many records are in it, and `told`, what it has not or not for sure."""

    path: Path
    file: BinaryIO
    read_plan: PlanReader
    state: State = field(default_factory=State)
    kept: int = 0
    lost: int = 0
    lost_at: int = 0
    told: list[str] = field(default_factory=list)
    more: int = 0  # beyond those told
    _prev: str = GENESIS

    def take(self, piece: Piece, number: int) -> None:
        """A record in its place; where the state has none for it, a note says so."""
        if piece.body is None:
            return
        body = {**piece.body, "seq": number}
        if number == 1 and body["type"] == Session.type:
            body["session"] = self.path.stem
        why = self._write(body)
        if why is None:
            self.kept += 1
        else:
            self.tell(f"left out: line {piece.line}, record {number}: {why}")
            self.lose("it does not fit what is left before it")

    def append(self, event: Event) -> State:
        body = {"seq": self.state.seq + 1, **encode(event), "timestamp": max(self.state.timestamp, 1.0)}
        why = self._write(json.loads(compact_json(body)))
        if why is not None:
            raise SessionDamaged(f"the copy {self.path} cannot be made whole: {why}")
        return self.state

    def lose(self, why: str) -> None:
        """A note in the place of the next record."""
        self.append(Noted("lost", f"a record is lost here: {why}"))
        self.lost, self.lost_at = self.lost + 1, self.state.seq

    def tell(self, what: str) -> None:
        if len(self.told) < _TOLD:
            self.told.append(what)
        else:
            self.more += 1

    def _write(self, body: dict[str, Any]) -> str | None:
        """Append a line and fold it in. Returns why the state has no place for it; then nothing was written."""
        body["prev"] = self._prev
        event = decode(body)
        try:
            self.state = apply(self.state, Record(body["seq"], float(body["timestamp"]), event), self.read_plan)
        except MISFITS as error:
            return misfit(self.state, event, error)
        line = compact_json(body).encode("utf-8")
        self.file.write(line + b"\n")
        self._prev = line_digest(line)
        return None


def repair(path: Path, target: Path, read_plan: PlanReader) -> Copy:
    """Write a copy of the log at `path` to `target`, which must not be there. Raises UsageError, SessionDamaged where there is no
    plan left to go on with, and then nothing is written."""
    strays, whole = _survey(path)
    if not whole:
        raise SessionDamaged(
            f"{path}: its first record, which holds the plan, is lost; there is nothing to repair. Start a new run.", 1
        )
    try:
        with creating(target.parent.resolve(strict=True) / target.name, mode=0o600) as file:
            return _copy(path, strays, Copy(target, file, read_plan))
    except FileExistsError:
        raise UsageError(f"{target} is there already; name another file with -o") from None
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror or error}") from error


def _copy(path: Path, strays: dict[int, Piece], copy: Copy) -> Copy:
    try:
        with opened(path) as source:
            _copied(copy, source, strays)
            _closed(copy, path)
            copy.file.flush()
    except OSError as error:
        raise StorageError(f"cannot copy {path} to {copy.path}: {refusal(error)}") from error
    return copy


def _survey(path: Path) -> tuple[dict[int, Piece], bool]:
    """The records that stand behind their place, by number, and whether the first one is there."""
    chain, strays, whole = Chain(), {}, False
    with opened(path) as file:
        for line in lines(file):
            for piece in line.pieces:
                place, _ = chain.place(piece)
                if place == STRAY and piece.record is not None:
                    strays[piece.record.seq] = piece
                whole = whole or (
                    piece.record is not None and _number(place, piece) == 1 and isinstance(piece.record.event, Session)
                )
    return strays, whole


def _number(place: int, piece: Piece) -> int:
    return piece.record.seq if place == STRAY and piece.record is not None else place


def _copied(copy: Copy, source: BinaryIO, strays: dict[int, Piece]) -> None:
    chain = Chain()
    for line in lines(source):
        for piece in line.pieces:
            junk = chain.junk
            place, finding = chain.place(piece)
            if place > 0:
                _fill(copy, place, strays, junk)
                copy.take(piece, place)
            elif place != STRAY:
                why = piece.why or (finding.text if finding else "")
                copy.tell(f"left out: line {piece.line}, {piece.size:,} bytes: {why}")
            if finding is not None and finding.kind == "altered":
                copy.tell(f"kept as it stands: line {finding.line}: {finding.text}")


def _fill(copy: Copy, upto: int, strays: dict[int, Piece], junk: list[Piece]) -> None:
    """Records `copy.state.seq + 1` to `upto - 1`: those that stood elsewhere, notes for the others."""
    where = f"it was cut off or made unreadable in line {junk[0].line}" if junk else "it was not in the file any more"
    while copy.state.seq + 1 < upto:
        stray = strays.get(copy.state.seq + 1)
        if stray is not None:
            copy.take(stray, copy.state.seq + 1)
        else:
            copy.lose(where)


def _closed(copy: Copy, path: Path) -> None:
    """What was left out, then what the session needs to go on; last how it had ended, where that still holds."""
    told = [f"copied from {path.name}", f"records lost: {copy.lost}", *copy.told, *([f"{copy.more} more"] if copy.more else [])]
    copy.append(Noted("repaired", "; ".join(told)))
    ended, before = copy.state.ended, [s.status for s in copy.state.steps]
    mend(copy.state, copy.lost_at, copy.append)
    if ended is not None and [s.status for s in copy.state.steps] == before:
        copy.append(ended)
