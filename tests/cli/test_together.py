"""Others look at a session while it is being run: they read, they do not wait, and the run does not notice."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cli import processes

PLAN = {"name": "p", "steps": [{"id": "a", "run": "echo up; read line < gate; echo $line", "output": {"t": "string"}}]}
LOOKS = (
    ("show", "s"),
    ("list",),
    ("logs", "s"),
    ("search", "echo"),
    ("doctor", "s"),
    ("validate", "plan.yaml"),
    ("fork", "s", "--session", "t"),
)


def test_looking_at_a_running_session(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(json.dumps(PLAN))
    os.mkfifo(tmp_path / "gate")
    run = processes.start(tmp_path, "run", "plan.yaml", "--session", "s", stderr=processes.subprocess.PIPE)
    try:
        processes.until(run.stderr, b"started")
        log = tmp_path / ".thclaws" / "sessions" / "s.jsonl"
        before = log.read_bytes()
        follower = processes.start(tmp_path, "logs", "-f", "s", stdout=processes.subprocess.PIPE)
        for look in LOOKS:
            found = processes.finished(tmp_path, *look)
            assert found.returncode == 0, (look, found.stderr)
        for act in (("resume", "s"), ("compact", "s", "--force"), ("run", "plan.yaml", "--session", "s")):
            found = processes.finished(tmp_path, *act)
            assert found.returncode == (2 if act[0] == "run" else 5), (act, found.stderr)
            assert str(run.pid).encode() in found.stderr or act[0] == "run"
        assert log.read_bytes().startswith(before)
        with open(tmp_path / "gate", "w") as gate:
            gate.write("go\n")
        assert run.wait(60) == 0
        followed, _ = follower.communicate(timeout=60)
        assert (follower.returncode, b"finished" in followed) == (0, True)
    finally:
        run.kill()
        run.communicate()
    assert json.loads(processes.finished(tmp_path, "show", "s", "--format", "json").stdout)["outcome"] == "finished"
