"""Examining a log: what is wrong, in which line, of which kind; and nothing is ever raised or changed."""

from __future__ import annotations

import os
import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.doctor.findings import KEPT, Report
from planrun.doctor.log import examine
from planrun.doctor.pieces import lines
from planrun.errors import SessionDamaged
from planrun.planfile import read_plan
from planrun.session import log as logs
from planrun.session import snapshot
from planrun.session.store import records
from tests.doctor.damage import Damage, before, each, glued, replaced, swapped, without
from tests.runner.driving import Project

FOREIGN = b'{"seq":3,"type":"note","kind":"x","timestamp":5,"prev":"x"}\n'
CASES: dict[str, tuple[Damage, list[tuple[str, int]], str]] = {
    "sound": (lambda t: t, [], ""),
    "torn": (lambda t: t[:-30], [("torn", 72)], r"cut off .*; a resume drops it"),
    "zeros": (lambda t: t + bytes(4096), [("torn", 73)], "4,096 zero bytes"),
    "half a line of zeros": (lambda t: t[:-30] + bytes(30), [("torn", 72)], "30 zero bytes"),
    "zeros inside": (before(9, bytes(512)), [("glued", 9)], "512 zero bytes.*, then record 9"),
    "a line of zeros": (before(9, bytes(512) + b"\n"), [("zeros", 9)], "512 zero bytes"),
    "no newline": (lambda t: t[:-1], [], "nothing is lost"),
    "missing": (without(9, 9), [("missing", 9)], "record 9 is missing"),
    "a block missing": (without(9, 20), [("missing", 9)], "records 9 to 20 are missing"),
    "doubled": (each(lambda b: [*b[:9], *b[8:]]), [("doubled", 10)], "record 9 a second time"),
    "twice": (lambda t: t + t, [("doubled", 73)], "record 1 a second time"),
    "altered": (replaced(20, b'"n":1', b'"n":2'), [("altered", 20)], "record 20 was altered"),
    "swapped": (swapped(9), [("missing", 8), ("order", 9)], "record 8 stands behind record 9"),
    "glued": (glued(9), [("glued", 9)], "record 9, then record 10"),
    "torn and glued": (glued(9, 40), [("glued", 9)], "40 bytes are left of it.*then record 10"),
    "one line": (lambda t: t.replace(b"\n", b"") + b"\n", [("glued", 1)], "72 things stand in one line"),
    "cut inside": (each(lambda b: [*b[:8], b[8][:50], *b[9:]]), [("cut", 9)], "50 bytes are left"),
    "blank": (before(9, b"\n"), [("blank", 9)], "a blank line"),
    "no JSON": (before(9, b"hello\n"), [("not_json", 9)], "5 bytes that are no record: b'hello'"),
    "a control character": (replaced(3, b"You", b"Y\x00u"), [("not_json", 3)], "no JSON any more"),
    "no record": (before(9, b'{"seq":9,"type":"step"}\n'), [("not_a_record", 9)], "its timestamp is None"),
    "too deep": (before(9, b"[" * 200_000 + b"\n"), [("not_json", 9)], "200,000 bytes"),
    "not UTF-8": (replaced(3, b"You", b"Y\xffu"), [("not_utf8", 3), ("altered", 3)], "is not UTF-8"),
    "converted": (lambda t: t.replace(b"\n", b"\r\n"), [("line_ends", 1)], "CRLF"),
    "another log's": (lambda t: t + FOREIGN, [("foreign", 73)], "another record 3 stands where 73"),
    "far away": (lambda t: t + FOREIGN.replace(b"3", b"999999999"), [("number", 73)], "999999999 stands where 73"),
    "renumbered": (each(lambda b: [*b[:71], b[71].replace(b":72", b":74", 1)]), [("number", 72)], "is 74, expected 72"),
    "headless": (without(1, 1), [("missing", 1), ("headless", 0)], "no session record"),
    "empty": (lambda t: b"", [("headless", 0)], "no session record"),
    "another format": (lambda t: t.split(b"\n")[0].replace(b'"format":1', b'"format":9') + b"\n", [("format", 1)], "format 9"),
}  # fmt: skip


def damaged(recorded: Project, folder: Path, damage: Damage) -> Path:
    path = folder / "s.jsonl"
    path.write_bytes(damage(recorded.log.read_bytes()))
    path.chmod(0o600)
    return path


def kinds(report: Report) -> list[tuple[str, int]]:
    return [(f.kind, f.line) for f in report.findings if f.damage]


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_and_where(recorded: Project, tmp_path: Path, name: str) -> None:
    damage, expected, words = CASES[name]
    path = damaged(recorded, tmp_path, damage)
    as_it_was = path.read_bytes()
    report = examine(path, read_plan)
    assert kinds(report) == expected
    assert report.damaged == bool(expected)
    assert not words or any(re.search(words, f.text) for f in report.findings), report.findings
    assert path.read_bytes() == as_it_was


def test_a_doubled_text_is_one_finding_with_its_last_line(recorded: Project, tmp_path: Path) -> None:
    report = examine(damaged(recorded, tmp_path, lambda t: t + t), read_plan)
    assert [(f.line, f.until) for f in report.findings] == [(73, 144)]


def test_a_reader_and_the_examination_agree(recorded: Project, tmp_path: Path) -> None:
    """What a resume would refuse is damage, and of a torn end both say the same."""
    for name, (damage, expected, _) in CASES.items():
        path = damaged(recorded, tmp_path, damage)
        harmless = {kind for kind, _ in expected} <= {"torn", "headless", "format"}
        try:
            list(records(path))
        except SessionDamaged:
            assert expected, name
        else:
            assert harmless or name == "headless", name


@settings(max_examples=150)
@given(st.data())
def test_any_bytes_are_examined_without_an_error(
    recorded: Project, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = recorded.log.read_bytes()
    cut, other = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))
    junk = data.draw(st.binary(max_size=300) | st.sampled_from([b"", b'{"seq":', b"{}", b"\n", b"\\ud800", b'{"seq":1}']))
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(text[:cut] + junk + text[other:])
    report = examine(path, read_plan)
    cuts_at_a_line = text[:cut][-1:] in (b"", b"\n") and not text[other:] and not junk.strip(b"\n")
    assert report.damaged or text[:cut] + junk + text[other:] in (text, text[:-1]) or cuts_at_a_line


def test_pages_of_rubbish_take_bounded_room(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(b"rubbish %d\n{}\n" % n for n in range(20_000)))
    report = examine(path, read_plan)
    assert len(report.findings) <= KEPT + 2
    assert report.more > 39_000


def test_a_line_without_end_takes_bounded_memory(recorded: Project, tmp_path: Path) -> None:
    path = damaged(recorded, tmp_path, lambda t: t)
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + (64 << 20))  # a hole, which reads as zeros
    with path.open("ab") as file:
        file.write(b"\n" + b"x" * (4 << 20))
    tracemalloc.start()
    with path.open("rb") as file:
        found = [line.pieces[0] for line in lines(file, longest=1 << 20)][-2:]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(p.junk, p.size) for p in found] == [("zeros", 64 << 20), ("too_long", 4 << 20)]
    assert peak < 16 << 20


def test_what_lies_around_the_log_is_told_and_is_no_damage(recorded: Project, tmp_path: Path) -> None:
    path = damaged(recorded, tmp_path, lambda t: t)
    path.chmod(0o644)
    snapshot.path_of(path).write_text("half a snap")
    report = examine(path, read_plan)
    assert [(f.kind, f.damage) for f in report.findings] == [("mode", False), ("snapshot", False)]
    assert f"chmod 600 {path}" in str(report.findings[0].advice)


def test_a_log_that_is_being_written_is_not_torn(recorded: Project, tmp_path: Path) -> None:
    path = damaged(recorded, tmp_path, lambda t: t[:-30])
    file = logs.open_locked(path)
    try:
        report = examine(path, read_plan)
    finally:
        logs.lock.release(file, path)
    assert [f.kind for f in report.findings] == ["running"]
    assert f"pid {os.getpid()} on" in report.findings[0].text
    assert (report.damaged, report.outcome) == (False, "running")


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    for name, why in (("pipe", "pipe"), ("folder", "folder"), ("gone", "No such file")):
        with pytest.raises(SessionDamaged, match=why):
            examine(tmp_path / f"{name}.jsonl", read_plan)
