"""Numbers and digests of a log's records: which is missing, doubled, altered, out of order; how a repair places each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from planrun.doctor.findings import Finding
from planrun.doctor.pieces import Line, Piece
from planrun.session.reader import GENESIS, line_digest

MOST_LOST = 100_000  # records that may be missing between two lines; a number that is further away is no number
_REMEMBERED = 10_000  # digests of the newest records, and stray lines
_SHOWN = 3  # things that stand in one line

STRAY, NOWHERE = -1, 0  # places of a record that comes too late, and of one that has none


@dataclass(slots=True)
class Chain:
    """Judges one line after the other. `seq`, `prev` and `line` are the number, the digest and the line of the last record that
    has a place; `junk` what was no record since then; `strays` the lines of records that stand behind their place."""

    seq: int = 0
    prev: str = GENESIS
    line: int = 0
    junk: list[Piece] = field(default_factory=list)
    strays: dict[int, int] = field(default_factory=dict)
    _digests: dict[int, str] = field(default_factory=dict)
    _missing: set[int] = field(default_factory=set)

    def findings(self, line: Line) -> Iterator[Finding]:
        """What the line itself shows, apart from how its records follow each other."""
        first, *more = line.pieces
        if line.crlf:
            yield Finding("line_ends", "it ends with a carriage return: the file was converted (CRLF)", line.number)
        if more:
            shown = [p.why or f"record {p.record.seq if p.record else '?'}" for p in line.pieces[:_SHOWN]]
            text = ", then ".join(shown) + (" and so on" if len(line.pieces) > _SHOWN else "")
            yield Finding("glued", f"{len(line.pieces)} things stand in one line: {text}", line.number)
        elif first.junk:
            yield Finding(first.junk, first.why, line.number)
        if first.bad_byte and not first.junk:
            yield Finding("not_utf8", f"byte {first.bad_byte:,} of the line is not UTF-8", line.number)

    def place(self, piece: Piece) -> tuple[int, Finding | None]:
        """The number under which a repair keeps the record, STRAY or NOWHERE, and what is wrong with it."""
        if piece.record is None or piece.body is None:
            self.junk = [*self.junk[-_REMEMBERED:], piece]
            return NOWHERE, None
        due, seq, follows = self.seq + 1, piece.record.seq, piece.body.get("prev") == self.prev
        if seq < due and not follows:
            return self._behind(piece, seq)
        if follows or seq == due:
            return self._next(piece, due, seq, follows=follows)
        if seq - due > MOST_LOST:
            return NOWHERE, Finding("number", f"record {seq} stands where {due} is expected", piece.line)
        return self._ahead(piece, due, seq)

    def _next(self, piece: Piece, due: int, seq: int, *, follows: bool) -> tuple[int, Finding | None]:
        wrong = None
        if not follows:
            names = f"line {piece.line} names another one as the line before it"
            altered = (
                f"record {self.seq} was altered after it was written: {names}" if self.seq else f"{names}, and it is the first"
            )
            wrong = Finding("altered", altered, self.line or piece.line)
        elif seq != due:
            wrong = Finding("number", f"its number is {seq}, expected {due}", piece.line)
        self._take(piece, due)
        return due, wrong

    def _ahead(self, piece: Piece, due: int, seq: int) -> tuple[int, Finding | None]:
        lost = range(due, seq)
        explained = len(lost) <= len([p for p in self.junk if p.junk in ("cut", "not_json", "not_a_record", "too_long")])
        self._missing.update(lost[-_REMEMBERED:])
        which = f"record {due} is" if len(lost) == 1 else f"records {due} to {seq - 1} are"
        self._take(piece, seq)
        return seq, None if explained else Finding("missing", f"{which} missing before this line", piece.line)

    def _behind(self, piece: Piece, seq: int) -> tuple[int, Finding]:
        digest = self._digests.get(seq)
        if seq in self._missing and seq not in self.strays and len(self.strays) < _REMEMBERED:
            self.strays[seq] = piece.line
            text = f"record {seq} stands behind record {self.seq}: lines were put in another order"
            return STRAY, Finding("order", text, piece.line)
        if digest == line_digest(piece.raw):
            return NOWHERE, Finding("doubled", f"record {seq} a second time", piece.line)
        what = f"another record {seq}" if digest else f"record {seq}"
        return NOWHERE, Finding("foreign", f"{what} stands where {self.seq + 1} is expected: it is not of this log", piece.line)

    def _take(self, piece: Piece, number: int) -> None:
        self.seq, self.line, self.junk = number, piece.line, []
        self.prev = line_digest(piece.raw)
        self._digests[number] = self.prev
        if len(self._digests) > 2 * _REMEMBERED:
            for old in list(self._digests)[:_REMEMBERED]:
                del self._digests[old]
