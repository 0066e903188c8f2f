"""Hostile plan files: each is refused with its place or read, in a second; by a real process, in little memory; nothing runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planrun import planfile
from planrun.errors import PlanInvalid, SessionDamaged
from planrun.planfile import read_plan
from planrun.session.following import folded
from tests.cli.processes import COMMAND, environ, finished
from tests.fuzz.logs import QUICKSTART, chained
from tests.hostile import LEGAL, REFUSED, SOUND

_SECONDS = 1.0  # of processor time


def written(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, line, column, part = REFUSED[name]
    started = time.process_time()
    with pytest.raises(PlanInvalid) as caught:
        planfile.parse(written(text), "p.yaml", {})
    took = time.process_time() - started
    told = str(caught.value).split("\n")
    assert len(told) == len(caught.value.faults) <= 101 and all(len(t) < 900 and t.isprintable() for t in told)
    assert any((f.line, f.column) == (line, column) and part in f.message for f in caught.value.faults), told[:3]
    assert took < _SECONDS


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    started = time.process_time()
    loaded = planfile.parse(written(LEGAL[name]), "p.yaml", {})
    assert time.process_time() - started < _SECONDS
    again = planfile.parse(loaded.text, "p.yaml", {})
    assert (again.plan, again.digest) == (loaded.plan, loaded.digest)


def measured(folder: Path, *args: str) -> tuple[subprocess.CompletedProcess[bytes], int]:
    """A real process, and the most memory that it had, in KiB."""
    code = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(done.returncode)"
    )
    whole = [COMMAND[0], "-c", code, *COMMAND, *args]
    done = subprocess.run(whole, cwd=folder, env=environ(folder), capture_output=True, check=False)
    return done, int(done.stderr.split()[-1]) // (1024 if sys.platform == "darwin" else 1)


def test_all_of_them_in_one_process(tmp_path: Path) -> None:
    """What `validate` says, its memory, and that nothing ran."""
    names = {}
    for number, (name, text) in enumerate([*LEGAL.items(), *((n, t) for n, (t, *_) in REFUSED.items())]):
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(written(text))
        names[path.name] = name
    done, kilobytes = measured(tmp_path, "validate", *names, "--format", "json")
    assert done.returncode == 2 and b"Traceback" not in done.stderr
    plans = json.loads(done.stdout)["plans"]
    assert {names[p["plan"]] for p in plans if p["outcome"] == "ok"} == set(LEGAL)
    assert {names[p["plan"]] for p in plans if p["outcome"] == "plan_invalid"} == set(REFUSED)
    assert kilobytes < 200_000
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", [n for n, (t, *_) in REFUSED.items() if isinstance(t, str)])
def test_refused_in_a_log(name: str, tmp_path: Path) -> None:
    """The copy of a plan in a session is read like the file."""
    header = json.loads(QUICKSTART.read_bytes().split(b"\n", 1)[0])
    log = tmp_path / "s.jsonl"
    log.write_bytes(chained([{**header, "plan": REFUSED[name][0]}]))
    with pytest.raises(SessionDamaged, match="line 1: the plan in it is not one"):
        folded(log, read_plan)


def test_places_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "dangling.yaml").symlink_to("nowhere")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "folder.yaml").mkdir()
    names = ["fifo.yaml", "dangling.yaml", "loop.yaml", "folder.yaml", "/dev/zero", "/dev/stdin", "gone.yaml", "x" * 300]
    for args in (["validate", *names], ["run", names[0]]):
        done = finished(tmp_path, *args)
        assert done.returncode == 2 and b"Traceback" not in done.stderr and b"internal" not in done.stderr
        assert [line.partition(b": ")[0].decode() for line in done.stderr.splitlines()] == args[1:]


def test_names_that_no_line_can_show(tmp_path: Path) -> None:
    for name in (b"a\nb\x1b[31m.yaml", b"\xff.yaml"):
        path = os.fsencode(tmp_path) + b"/" + name
        Path(os.fsdecode(path)).write_text(SOUND.replace("run:", "rum:"), encoding="utf-8")
        done = finished(tmp_path, "validate", os.fsdecode(name))
        assert done.returncode == 2 and b"\x1b" not in done.stderr and b"unknown key 'rum'" in done.stderr
        Path(os.fsdecode(path)).write_text(SOUND, encoding="utf-8")
        done = finished(tmp_path, "run", os.fsdecode(name))
        assert done.returncode == 0 and b"\x1b" not in done.stderr, done.stderr
