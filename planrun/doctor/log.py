"""Examining one log: its lines, its numbers and its chain, whether its records fit each other, the file around it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from planrun.core import pairing
from planrun.core.events import FORMAT, Ended, Session
from planrun.core.fold import apply
from planrun.core.records import Record
from planrun.core.state import PlanReader, State
from planrun.doctor.chain import NOWHERE, Chain
from planrun.doctor.findings import Finding, Report
from planrun.doctor.pieces import Line, Piece, lines
from planrun.errors import SessionDamaged
from planrun.session import snapshot
from planrun.session.following import MISFITS, misfit
from planrun.session.lock import writer
from planrun.session.raw import opened

Look = Callable[[Piece], None]


def examine(path: Path, read_plan: PlanReader, look: Look = lambda _: None) -> Report:
    """All that is wrong with the log at `path`; `look` sees each of its pieces too. Raises SessionDamaged where it cannot be read."""
    report = Report(path, writer=writer(path))
    try:
        with opened(path) as file:
            report.size = os.fstat(file.fileno()).st_size
            _Examination(report, read_plan, look).run(file)
            _around(report, os.fstat(file.fileno()).st_mode)
    except OSError as error:
        raise SessionDamaged(f"cannot read the session log {path}: {error.strerror or error}") from error
    return report


class _Examination:
    def __init__(self, report: Report, read_plan: PlanReader, look: Look) -> None:
        self.report, self.read_plan, self.look = report, read_plan, look
        self.chain, self.state = Chain(), State()
        self.header = False
        self.last: Record | None = None

    def run(self, file: BinaryIO) -> None:
        for line in lines(file):
            torn = _torn(line)
            if torn is not None and self.report.writer is None:
                self.report.add(torn)
            for finding in () if torn is not None else self.chain.findings(line):
                self.report.add(finding)
            for piece in line.pieces:
                self.look(piece)
                self._take(piece)
            if not line.ended and torn is None:
                text = "the newline at its end is missing; nothing is lost, and a resume adds it"
                self.report.add(Finding("open_end", text, line.number, damage=False))
        self._end()

    def _take(self, piece: Piece) -> None:
        place, finding = self.chain.place(piece)
        if finding is not None:
            self.report.add(finding)
        if piece.record is None:
            return
        self.header = self.header or isinstance(piece.record.event, Session)
        if place > NOWHERE:
            self.report.records += 1
            self.last = piece.record
            self._fold(piece, piece.record)

    def _fold(self, piece: Piece, record: Record) -> None:
        """What comes after damage does not fit for that reason alone, and is not told."""
        if self.report.damaged:
            return
        try:
            self.state = apply(self.state, record, self.read_plan)
        except MISFITS as error:
            self.report.add(Finding("misfit", misfit(self.state, record.event, error), piece.line))

    def _end(self) -> None:
        report, event = self.report, self.last.event if self.last else None
        report.outcome = "running" if report.writer else event.outcome if isinstance(event, Ended) else "unfinished"
        if not self.header:
            report.outcome = ""
            report.add(Finding("headless", "there is no session record, which holds the plan: nothing can go on from here"))
        elif not report.damaged and self.state.header is not None and self.state.header.format != FORMAT:
            text = f"it has format {self.state.header.format}; this planrun reads format {FORMAT}"
            report.add(Finding("format", text, 1))
        elif not report.damaged and (wrong := pairing.faults(self.state.view, resting=True)):
            report.add(Finding("messages", f"{wrong[0]}; no endpoint takes such a list"))


def _torn(line: Line) -> Finding | None:
    """The finding where this is an unfinished last line, which was never in force."""
    last = line.pieces[-1]
    if line.ended or not last.junk or len([p for p in line.pieces if p.junk != "zeros"]) > 1:
        return None
    return Finding("torn", f"the last line is torn: {last.why}; a resume drops it", line.number)


def _around(report: Report, mode: int) -> None:
    """The file's own state, and what lies beside it."""
    path = report.path
    if report.writer:
        report.add(Finding("running", f"it is being written by {report.writer}; it was only looked at", damage=False))
    if mode & 0o077:
        text = f"others may read it (mode {mode & 0o777:04o})"
        report.add(Finding("mode", text, advice=f"chmod 600 {path}", damage=False))
    if report.outcome and not snapshot.usable(path):
        name = snapshot.path_of(path)
        report.add(
            Finding(
                "snapshot",
                f"{name.name} is not of this log or of this version; it is passed over",
                advice=f"rm {name}",
                damage=False,
            )
        )
