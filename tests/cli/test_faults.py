"""What a session needs is gone, full, broken or another thing: one reason that names the file, the exit code of the contract, nothing
changed; and once the cause is gone a resume comes to the same, each effect once."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planrun.building import read_plan
from planrun.doctor.log import examine
from tests.cli import processes
from tests.cli.conftest import Call, one_object
from tests.session import archives

PLAN = """\
version: 1
name: faulty
model: test-model
window: 100000
steps:
  - {id: one, run: 'echo one >> effects; echo hello', output: {said: string}}
  - {id: two, run: 'echo two >> effects; echo ${{ steps.one.output.said }}', output: {text: string}}
  - {id: three, prompt_file: three.md}
output: {text: '${{ steps.two.output.text }}'}
"""
TO_TWO = ("resume", "s", "--until", "two")
LOG = ".thclaws/sessions/s.jsonl"
Standing = Callable[[Path], None]


def gone(path: Path) -> None:
    """Nothing is there."""


def folder(path: Path) -> None:
    path.mkdir()


def empty(path: Path) -> None:
    path.touch()


def broken(path: Path) -> None:
    """A file that the system cannot read: EIO."""
    path.symlink_to("/proc/self/mem")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def garbage(path: Path) -> None:
    path.write_bytes(b"\x00\xff{]\n")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


ROWS: dict[str, dict[Standing, tuple[int, str]]] = {
    "plan.yaml": {
        gone: (0, ""),  # the session has the plan
        folder: (2, "plan.yaml: is a directory"),
        empty: (2, "plan.yaml: the file is empty"),
        broken: (2, "plan.yaml: cannot be read: Input/output error"),
        endless: (2, "plan.yaml: is not a regular file"),
        pipe: (2, "plan.yaml: is not a regular file"),
        garbage: (2, "plan.yaml:1:2: not UTF-8"),
    },
    "three.md": {
        gone: (2, "plan.yaml:8:30: prompt_file: 'three.md': no such file"),
        folder: (2, "'three.md': is a directory"),
        pipe: (2, "'three.md': is not a regular file"),
        garbage: (2, "'three.md':1:2: not UTF-8"),
    },
    ".thclaws/settings.json": {
        gone: (0, ""),
        folder: (2, "settings.json: is a directory"),
        empty: (2, "settings.json:1:1: the file is empty"),
        broken: (2, "settings.json: cannot be read: Input/output error"),
        pipe: (2, "settings.json: is not a regular file"),
        garbage: (2, "settings.json:1:2: not UTF-8"),
    },
    LOG: {
        gone: (2, "there is no session 's' in"),
        folder: (5, "cannot open the session log .*s.jsonl: Is a directory"),
        empty: (5, "s.jsonl has no session record"),
        broken: (5, "cannot read the session log .*: Input/output error"),
        endless: (5, "cannot open the session log .*: it is not a regular file"),
        pipe: (5, "cannot open the session log .*s.jsonl: it is not a regular file"),
        dangling: (5, "cannot open the session log .*: No such file or directory"),
    },
    ".thclaws/sessions": {gone: (2, "there is no session 's' in"), empty: (2, "there is no session 's' in")},
    ".thclaws/sessions/s.state": dict.fromkeys((gone, folder, empty, broken, endless, pipe, garbage, dangling), (0, "")),
    ".thclaws/sessions/s.lock": dict.fromkeys((gone, folder, empty, broken, endless, pipe, garbage, dangling), (0, "")),
    ".thclaws/tool-output": dict.fromkeys((gone, folder, empty, broken, pipe, dangling), (0, "")),
}  # fmt: skip
LOOKS = (("list",), ("search", "hello"), ("doctor",), ("show", "s"), ("logs", "s"), ("output", "s"))


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@pytest.fixture
def stopped(planrun: Call, project: Path) -> Path:
    """A session that stopped after its first step."""
    (project / "plan.yaml").write_text(PLAN)
    (project / "three.md").write_text("Say it.")
    (project / ".thclaws").mkdir()
    (project / ".thclaws" / "settings.json").write_text("{}")
    assert planrun("run", "plan.yaml", "--session", "s", "--until", "one").exit_code == 0
    return project


@pytest.mark.parametrize("name", ROWS)
def test_something_else_stands_in_the_place_of_a_file(planrun: Call, stopped: Path, name: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(stopped, kept)
    for standing, (code, words) in ROWS[name].items():
        where = f"{name}: {standing.__name__}"
        clear(stopped / name)
        standing(stopped / name)
        for look in LOOKS:
            seen = planrun(*look)
            assert seen.exit_code in (0, 2, 5) and "internal error" not in seen.output, f"{where}: {look}: {seen.output}"
        shown = planrun(*TO_TWO)
        assert shown.exit_code == code, f"{where}: {shown.output}"
        assert re.search(words, shown.stderr), f"{where}: {shown.stderr}"
        if code:
            assert (stopped / "effects").read_text() == "one\n", where
            clear(stopped / name)
            (shutil.copytree if (kept / name).is_dir() else shutil.copy)(kept / name, stopped / name)
            assert planrun(*TO_TWO).exit_code == 0, where
        assert (stopped / "effects").read_text() == "one\ntwo\n", where
        assert planrun("output", "s", "two.text").stdout == "hello", where
        assert not examine(stopped / LOG, read_plan).damaged, where
        shutil.rmtree(stopped)
        shutil.copytree(kept, stopped)
        os.chdir(stopped)  # the folder is another one now


def run_in(folder: Path, *args: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """The command line as a process; `more` are arguments of subprocess.run."""
    more = {"capture_output": True, "stdin": subprocess.DEVNULL, "timeout": 60, **more}
    env = processes.environ(folder, PYTHONDONTWRITEBYTECODE="1")  # a bound on files would leave half a module behind
    return subprocess.run([*processes.COMMAND, *args], check=False, cwd=folder, env=env, **more)


def test_a_disk_that_is_full_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """A bound on the size of files, at many places: of the log, of what a command prints, of a result file."""
    steps = [{"id": f"s{n}", "run": f"echo s{n} >> effects; echo hello", "output": {"x": "string"}} for n in range(4)]
    (tmp_path / "plan.yaml").write_text(json.dumps({"name": "p", "steps": steps, "output": {"x": "${{ steps.s3.output.x }}"}}))
    whole = run_in(tmp_path, "run", "plan.yaml", "--session", "whole")
    assert whole.returncode == 0, whole.stderr
    size = (tmp_path / ".thclaws" / "sessions" / "whole.jsonl").stat().st_size
    for share in (0.02, 0.4, 0.7, 0.97):
        (tmp_path / "effects").unlink()
        name, limit = f"s{int(share * 100)}", int(size * share)
        full = run_in(
            tmp_path, "run", "plan.yaml", "--session", name, "--format", "json",
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )  # fmt: skip
        log = tmp_path / ".thclaws" / "sessions" / f"{name}.jsonl"
        assert full.returncode == 5, full.stderr
        assert f"cannot write the session log {log}: ".encode() in full.stderr
        assert b"free the disk or mend the folder, then resume" in full.stderr
        assert one_object(full.stdout.decode())["outcome"] == "session_damaged"
        begun = share > 0.1
        if begun:
            assert {f.kind for f in examine(log, read_plan).findings if f.damage} <= {"torn"}
        again = run_in(tmp_path, *(("resume", name) if begun else ("run", "plan.yaml", "--session", name)))
        assert (again.returncode, again.stdout) == (0, whole.stdout), again.stderr
        # A command whose end could not be recorded is run again, and that is on record.
        twice = sum(json.loads(line).get("kind") == "rerun" for line in log.read_bytes().splitlines())
        effects = (tmp_path / "effects").read_text().split()
        assert (sorted(set(effects)), len(effects)) == (["s0", "s1", "s2", "s3"], 4 + twice)


def test_a_result_file_is_whole_or_the_one_before(tmp_path: Path) -> None:
    """The disk is full behind the log: what is one number a line takes more room there than here."""
    numbers = f"[{', '.join('0' * 8000)}]"
    step = {"id": "a", "run": f"echo '{{\"n\": {numbers}}}'", "output": {"n": {"type": "array", "from": "json"}}}
    (tmp_path / "plan.yaml").write_text(json.dumps({"name": "p", "steps": [step], "output": {"n": "${{ steps.a.output.n }}"}}))
    assert run_in(tmp_path, "run", "plan.yaml", "--session", "s", "--summary", "old.json", "--junit", "old.xml").returncode == 0
    size, log = (tmp_path / "old.json").stat().st_size, (tmp_path / ".thclaws" / "sessions" / "s.jsonl").stat().st_size
    assert log < size - 10_000
    before = (tmp_path / "old.json").read_bytes()
    for name in ("new.json", "old.json"):
        full = run_in(
            tmp_path, "run", "plan.yaml", "--summary", name,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size - 5_000, size - 5_000)),
        )  # fmt: skip
        assert f"planrun: cannot write {name}: File too large".encode() in full.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"plan.yaml", "old.json", "old.xml", ".thclaws"}
    assert (tmp_path / "old.json").read_bytes() == before


def test_what_a_full_disk_refuses_leaves_no_half_file_and_can_be_done_again(stopped: Path) -> None:
    log = stopped / LOG
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    for name in ("plan.yaml", ".thclaws/settings.json"):
        (stopped / name).unlink()
    limits: list[tuple[tuple[str, ...], int, int, str]] = [
        (("init",), 500, 2, "plan.yaml"),
        (("doctor", "s", "--repair"), 500, 5, "s-repaired.jsonl"),
    ]
    before = sorted(stopped.rglob("*"))
    for args, limit, code, name in limits:
        full = run_in(stopped, *args, preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert full.returncode == code, full.stderr
        assert f"{name}: File too large".encode() in full.stderr
        assert sorted(stopped.rglob("*")) == before
        assert run_in(stopped, *args).returncode == 0
        before = sorted(stopped.rglob("*"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full is Linux's")
@pytest.mark.parametrize("args", [("show", "s"), ("show", "s", "--format", "json"), ("output", "s", "one.said"), ("logs", "s")])
def test_a_result_that_does_not_reach_a_full_disk_is_an_error(stopped: Path, args: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        shown = run_in(stopped, *args, stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert shown.returncode == 5
    assert shown.stderr == b"planrun: cannot write to stdout: No space left on device\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/dev/full is Linux's")
@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_a_run_whose_results_do_not_reach_a_full_disk_is_no_success(stopped: Path, form: str) -> None:
    with open("/dev/full", "wb") as full:
        files = ("--summary", "/dev/full", "--junit", "/dev/full")
        shown = run_in(stopped, *TO_TWO, "--format", form, *files, stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert shown.returncode == 5, shown.stderr
    said = shown.stderr.decode()
    assert said.count("planrun: cannot write ") == 2 + (form != "text"), said  # a part of a run has no output to print
    assert (stopped / "effects").read_text() == "one\ntwo\n"


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_a_folder_that_no_record_can_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd \xff")
    odd.mkdir()
    (odd / "plan.yaml").write_text("name: p\nsteps: [{id: a, run: 'true'}]\n")
    shown = run_in(odd, "run", "plan.yaml")
    assert shown.returncode == 2
    assert b"the working directory" in shown.stderr and b"is not UTF-8" in shown.stderr
    assert not (odd / ".thclaws").exists()


def test_a_lock_that_a_killed_run_left_holds_nobody_up_whoever_has_its_number_now(planrun: Call, stopped: Path) -> None:
    note = stopped / ".thclaws" / "sessions" / "s.lock"
    note.write_text(f"pid {os.getpid()} on {os.uname().nodename}\n")  # it lives, and has nothing to do with the session
    assert "running" not in planrun("show", "s").stdout
    assert planrun(*TO_TWO).exit_code == 0
    assert not note.exists()


def test_of_two_resumes_at_once_one_runs(stopped: Path) -> None:
    """Also where they come by two names of one folder."""
    (stopped / "plan.yaml").write_text(PLAN.replace("echo two >> effects;", "echo two >> effects; read line < gate;"))
    shutil.rmtree(stopped / ".thclaws" / "sessions")
    os.mkfifo(stopped / "gate")
    assert run_in(stopped, "run", "plan.yaml", "--session", "s", "--until", "one").returncode == 0
    (stopped.parent / "other").symlink_to(stopped)
    first = processes.start(stopped, *TO_TWO, stderr=subprocess.PIPE)
    try:
        processes.until(first.stderr, b"running echo two")
        before = (stopped / LOG).read_bytes()
        second = run_in(stopped.parent / "other", *TO_TWO)
        assert second.returncode == 5
        assert f"session s is being run by pid {first.pid} on ".encode() in second.stderr
        assert (stopped / LOG).read_bytes().startswith(before)
        (stopped / "gate").write_text("go\n")
        assert first.wait(60) == 0
    finally:
        first.kill()
        first.communicate()
    assert (stopped / "effects").read_text() == "one\none\ntwo\n"


def powerless() -> None:
    """Before exec, where it is root that tests: permissions hold for it too."""
    if os.geteuid() == 0:
        drop_from_bounding_set, dac_override, dac_read_search = 24, 1, 2  # linux/prctl.h, linux/capability.h
        for capability in (dac_override, dac_read_search):
            ctypes.CDLL(None).prctl(drop_from_bounding_set, capability, 0, 0, 0)


@pytest.mark.skipif(os.geteuid() == 0 and not sys.platform.startswith("linux"), reason="root may write everywhere")
def test_a_project_that_may_not_be_written_to_can_have_its_sessions_elsewhere(tmp_path: Path) -> None:
    there = tmp_path / "project"
    there.mkdir()
    (there / "plan.yaml").write_text('name: p\nsteps: [{id: a, run: "echo x=1 >> $PLANRUN_OUTPUT", output: {x: integer}}]\n')
    there.chmod(0o555)
    refused = run_in(there, "run", "plan.yaml", preexec_fn=powerless)
    assert refused.returncode == 2
    assert b"cannot create the session log" in refused.stderr and b"Permission denied" in refused.stderr
    assert b"Name another folder with --session-dir" in refused.stderr
    elsewhere = ("--session-dir", str(tmp_path / "elsewhere"), "--format", "json")
    done = run_in(there, "run", "plan.yaml", *elsewhere, preexec_fn=powerless)
    assert done.returncode == 0, done.stderr
    assert one_object(done.stdout.decode())["steps"][0]["output"] == {"x": 1}
    there.chmod(0o755)


@pytest.mark.skipif(os.geteuid() == 0 and not sys.platform.startswith("linux"), reason="root may write everywhere")
@pytest.mark.parametrize(("folder", "index"), [(0o555, None), (0o555, 0o600), (0o555, 0o444), (0o755, 0o444), (0o755, 0o000)])
def test_an_archive_that_may_not_be_written_to_is_searched_all_the_same(tmp_path: Path, folder: int, index: int | None) -> None:
    log = archives.write(tmp_path, [archives.said("a needle")])
    ask = ("search", "needle", "--session", "s", "--session-dir", str(tmp_path))
    if index is not None:
        assert run_in(tmp_path, *ask).returncode == 0
        archives.append(log, [archives.said("another needle")])
        (tmp_path / "index.sqlite").chmod(index)
    tmp_path.chmod(folder)
    shown = run_in(tmp_path, *ask, preexec_fn=powerless)
    tmp_path.chmod(0o755)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count(b"needle") >= (1 if index is None else 2)
    assert b"searched without the index: " in shown.stderr
    (tmp_path / "index.sqlite").unlink(missing_ok=True)
    assert run_in(tmp_path, *ask).stdout == shown.stdout


@pytest.mark.skipif(os.geteuid() == 0 and not sys.platform.startswith("linux"), reason="root may read everything")
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_what_a_check_may_not_look_at_is_not_there_for_it(tmp_path: Path, mode: int) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "in.txt").write_text("x")
    checks = [{"exists": ["closed/in.txt"]}, {"unchanged": ["closed/**"]}]
    steps = [{"id": f"s{n}", "run": "true", "verify": [check], "on_failure": "continue"} for n, check in enumerate(checks)]
    (tmp_path / "plan.yaml").write_text(json.dumps({"name": "p", "steps": steps}))
    (tmp_path / "closed").chmod(mode)
    shown = run_in(tmp_path, "run", "plan.yaml", "--format", "json", preexec_fn=powerless)
    (tmp_path / "closed").chmod(0o755)
    found = one_object(shown.stdout.decode())
    assert [s["status"] for s in found["steps"]] == ["failed", "done"], shown.stderr
    assert found["steps"][0]["note"] == "expected a file that matches closed/in.txt, found none. "
