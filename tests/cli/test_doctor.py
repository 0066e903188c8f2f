"""planrun doctor: what a person reads, what a machine reads, exit codes, copies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planrun.session import log as logs
from tests.cli.conftest import Call, one_object


@pytest.fixture
def log(planrun: Call, plan: Path) -> Path:
    assert planrun("run", "plan.yaml", "--session", "s").exit_code == 0
    return Path(".thclaws/sessions/s.jsonl")


def cut(log: Path, lines: int) -> None:
    """Without line 3, and without the end."""
    kept = log.read_bytes().split(b"\n")[:-1][:lines]
    log.write_bytes(b"\n".join([*kept[:2], *kept[3:], b""]))


def test_a_sound_session(planrun: Call, log: Path) -> None:
    size, count = log.stat().st_size, log.read_bytes().count(b"\n")
    ran = planrun("doctor")
    assert (ran.exit_code, ran.stdout) == (0, f"s: sound, {count} records, {size:,} bytes, finished\n")
    found = one_object(planrun("doctor", "s", "--format", "json").stdout)
    assert found["sessions"][0] == {
        "session": "s", "log": str(log.resolve()), "damaged": False, "outcome": "finished", "records": count, "bytes": size,
        "findings": [], "more": 0, "advice": [],
    }  # fmt: skip


def test_damage_is_told_with_its_place_and_what_to_do(planrun: Call, log: Path) -> None:
    cut(log, 99)
    before = log.read_bytes()
    ran = planrun("doctor", "s")
    assert ran.exit_code == 5
    assert ".thclaws/sessions/s.jsonl:3: record 3 is missing before this line\n" in ran.stdout
    assert "`planrun doctor s --repair` writes a copy, s-repaired" in ran.stdout
    found = one_object(planrun("doctor", str(log), "--format", "json").stdout)["sessions"][0]
    assert [(f["kind"], f["line"], f["damage"]) for f in found["findings"]] == [("missing", 3, True)]
    assert log.read_bytes() == before


def test_a_repaired_copy_goes_on_and_nothing_is_overwritten(planrun: Call, log: Path) -> None:
    cut(log, 7)
    before = log.read_bytes()
    ran = planrun("doctor", "s", "--repair")
    assert (ran.exit_code, log.read_bytes()) == (0, before)
    assert "s-repaired: sound" in ran.stdout
    assert "1 lost" in ran.stderr and "go on with: planrun resume s-repaired" in ran.stderr
    assert planrun("doctor", "s", "--repair").exit_code == 2
    assert planrun("resume", "s-repaired").exit_code == 0
    found = one_object(planrun("doctor", "s", "-o", "other.jsonl", "--format", "json").stdout)
    assert (found["lost"], found["copy"]["damaged"], found["copy"]["log"]) == (1, False, "other.jsonl")


def test_what_cannot_be_repaired_is_said(planrun: Call, log: Path) -> None:
    log.write_bytes(b"\n".join(log.read_bytes().split(b"\n")[1:]))
    ran = planrun("doctor", "s", "--repair")
    assert ran.exit_code == 5
    assert "holds the plan, is lost; there is nothing to repair" in ran.stderr
    assert "run the plan anew" in planrun("doctor").stdout
    assert [p.name for p in log.parent.glob("*.jsonl")] == ["s.jsonl"]


def test_wrong_arguments(planrun: Call, log: Path) -> None:
    for args, words in ((("--repair",), "name it"), (("nobody",), "no session"), (("a/b.jsonl",), "No such file")):
        ran = planrun("doctor", *args)
        assert words in ran.output
        assert ran.exit_code == (5 if words == "No such file" else 2)


def test_a_running_session_is_only_looked_at(planrun: Call, log: Path) -> None:
    file = logs.open_locked(log)
    try:
        ran, repair = planrun("doctor"), planrun("doctor", "s", "--repair")
    finally:
        logs.lock.release(file, log)
    assert (ran.exit_code, repair.exit_code) == (0, 5)
    assert f"being written by pid {os.getpid()}" in ran.stdout
    assert f"being run by pid {os.getpid()}" in repair.stderr


def test_what_is_left_over_is_named_and_is_no_damage(planrun: Call, log: Path) -> None:
    sessions, spill = log.parent, Path(".thclaws/tool-output")
    spill.mkdir(exist_ok=True)
    left = ["gone.lock", "gone.state", "s.lock", ".t.fork", ".planrun-2.tmp", "index.sqlite-12-34"]
    for name in left:
        (sessions / name).write_text("pid 1 on nowhere\n")
    (spill / "bash-0123456789ab.txt").write_text("x" * 1000)
    (spill / ".planrun-1.tmp").write_text("half")
    ran = planrun("doctor")
    assert ran.exit_code == 0
    for name in left:
        assert f"(rm {sessions.resolve() / name})" in ran.stdout, name
    assert ".planrun-1.tmp" in ran.stdout
    assert "1 saved texts of tools (1,000 bytes) that no session here speaks of: bash-0123456789ab.txt" in ran.stdout
    found = one_object(planrun("doctor", "--format", "json").stdout)["beside"]
    assert {f["kind"] for f in found} == {"orphan"}


def test_the_index_is_judged_and_not_changed(planrun: Call, log: Path) -> None:
    assert planrun("search", "hello").exit_code == 0
    index = log.parent / "index.sqlite"
    assert "index of searches is sound and up to date" in planrun("doctor").stdout
    log.write_bytes(log.read_bytes() + b'{"seq":1}\n')
    assert "10 bytes of logs behind; the next search catches up" in planrun("doctor").stdout
    index.write_bytes(b"no database, whatever else" * 100)
    before = index.read_bytes()
    ran = planrun("doctor", "--format", "json")
    found = [f for f in one_object(ran.stdout)["beside"] if f["kind"] == "index"]
    assert "damaged" in found[0]["message"] and found[0]["advice"].startswith("rm ")
    assert index.read_bytes() == before


def test_no_session_at_all(planrun: Call, project: Path) -> None:
    ran = planrun("doctor")
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert "no sessions in" in ran.stderr
