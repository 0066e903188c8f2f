"""Each operation on the file system that a command does is refused in its turn: it says so, or does without."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from planrun import api
from planrun.testing.server import LoopbackServer
from tests.cli.conftest import Call, one_object
from tests.crash.refusing import Refusal, anything, in_force

LOOKS = [
    ("show", "s"),
    ("list",),
    ("logs", "s"),
    ("output", "s", "a.x"),
    ("context", "s"),
    ("search", "alpha", "--session", "s"),
    ("expand", "5", "--session", "s"),
    ("doctor",),
    ("doctor", "s", "--repair"),
    ("compact", "s", "--force"),
    ("fork", "s", "--session", "t"),
    ("resume",),
    ("validate", "plan.yaml"),
    ("config",),
    ("init",),
    ("run", "-n", "plan.yaml"),
    ("run", "plan.yaml", "--session", "u", "--summary", "u/s.json", "--junit", "u/j.xml"),
]  # fmt: skip
COMMANDS = """\
name: p
model: test-model
steps:
  - {id: a, run: 'echo alpha', output: {x: string}}
  - {id: b, prompt: Say it., output: {word: string}}
"""


@pytest.mark.parametrize("args", LOOKS, ids=" ".join)
def test_no_command_takes_a_refusal_for_its_own_fault(
    planrun: Call, project: Path, served: Callable[..., LoopbackServer], args: tuple[str, ...]
) -> None:
    served(plan=COMMANDS)
    (project / "plan.yaml").write_text(COMMANDS)
    assert planrun("run", "plan.yaml", "--session", "s", "--until", "a").exit_code == 0
    log = project / ".thclaws" / "sessions" / "s.jsonl"
    before = log.read_bytes()
    for at in range(1, 1000):
        log.write_bytes(before)
        for name in ("s-repaired", "t", "u"):
            log.with_name(f"{name}.jsonl").unlink(missing_ok=True)
        (project / "u" / "s.json").unlink(missing_ok=True)
        with in_force(Refusal(project, anything, at, errno.EIO)) as refusal:
            shown = planrun(*args)
        if not refusal.met:
            assert shown.exit_code == 0, shown.output
            return
        where = f"{at} {refusal.operation}: {shown.output}"
        assert "internal error" not in shown.output, where
        assert shown.exit_code in (0, 2, 5) or (args[0] == "run" and shown.exit_code == 1), where
        assert shown.exit_code == 0 or os.strerror(errno.EIO) in shown.output, where
        assert log.read_bytes().startswith(before), where
        for copy in project.glob("u/s.json"):
            run = one_object(copy.read_text())["exit_code"]
            # Written before it showed that the other file cannot be.
            assert run == shown.exit_code or ((run, shown.exit_code) == (0, 5) and "cannot write" in where), where
        assert api.load(log).header is not None, where
