"""Each operation on the file system that a run does is refused in its turn: the run stops with the reason or does without, the log
stays whole, and once the cause is gone it comes to the same, each effect once."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from planrun.building import read_plan
from planrun.doctor.log import examine
from planrun.errors import PlanrunError
from planrun.models.base import Reply
from planrun.session.log import begun
from planrun.testing.model import call, done
from tests.crash.refusing import Kind, Refusal, anything, changes, in_force, locks, starts
from tests.runner.driving import Project, Wire
from tests.support import last_user, tool_results

PLAN = """\
version: 1
name: refused
goal: Survive.
window: 60000
steps:
  - id: one
    prompt_file: one.md
    output: {n: integer, made: {type: file, path: made.txt}}
    verify: [{exists: ["mad*.txt"]}, {unchanged: [plan.yaml, "src/**"]}, {run: test -e made.txt}]
  - id: two
    run: grep -qx two effects || echo two >> effects; echo word=hello >> "$PLANRUN_OUTPUT"
    output: {word: string}
  - id: three
    context: compact
    prompt: Use ${{ steps.two.output.word }} and ${{ steps.one.output.made }}.
    output: {text: string}
finally:
  - {id: tidy, run: grep -qx tidy effects || echo tidy >> effects}
output: {text: "${{ steps.three.output.text }}", n: "${{ steps.one.output.n }}"}
"""
OUTPUT = {"text": "hello again", "n": 1}
EFFECTS = ["a", "c", "tidy", "two"]
CALLS: list[tuple[str, Wire]] = [
    ("Read", {"file_path": "src/a.txt"}),
    ("Write", {"file_path": "made.txt", "content": "alpha\n"}),
    ("Edit", {"file_path": "made.txt", "old": "alpha", "new": "beta"}),
    ("Bash", {"command": "grep -qx a effects 2>/dev/null || echo a >> effects; seq 30000"}),
    ("Bash", {"command": "seq 200000"}),
    ("Grep", {"pattern": "x"}),
    ("Glob", {"pattern": "**"}),
    ("Ls", {}),
    ("SearchHistory", {"pattern": "alpha"}),
]
LAST: tuple[str, Wire] = ("Bash", {"command": "grep -qx c effects || echo c >> effects"})
FAULTS = (errno.EIO, errno.EMFILE, errno.ENOSPC)
REFUSED = (*map(os.strerror, (*FAULTS, errno.EROFS)), "could not be run", "interrupted", "does not exist")


def script(body: Wire) -> Reply:
    """Does its calls one after another, each until it was not refused."""
    brief, results = last_user(body["messages"]), tool_results(body["messages"])
    wanted = CALLS if "Step one:" in brief else [LAST]
    at = 0
    for result in results:
        at += at < len(wanted) and not any(word in result for word in REFUSED)
    if at < len(wanted):
        name, arguments = wanted[at]
        return call(name, **arguments)
    return done(n=1) if "Step one:" in brief else done(text="hello again")


def project(folder: Path) -> Project:
    made = Project(folder, PLAN)
    made.settings(hooks={"pre_tool_use": "true", "step_end": "true"})
    (folder / "one.md").write_text("Make one.")
    (folder / "src").mkdir()
    (folder / "src" / "a.txt").write_text("x\n" * 100)
    return made


def refused(made: Project, refusal: Refusal) -> tuple[str, int, str]:
    """How a run ended in which that was refused: outcome, exit code and reason."""
    with in_force(refusal):
        try:
            ended = made.run(script).state.ended
        except PlanrunError as error:
            return str(error.outcome), error.exit_code, str(error)
    assert ended is not None
    return ended.outcome, ended.exit_code, ended.reason


def comes_to_the_same(made: Project, where: str) -> None:
    """The log is whole, and a resume (or a run, where none had begun) finishes."""
    whole = begun(made.log)
    assert not whole or not examine(made.log, read_plan).damaged, where
    ended = (made.resume if whole else made.run)(script).state.ended
    assert ended is not None, where
    assert (ended.outcome, ended.output) == ("finished", OUTPUT), f"{where}: {ended.reason}"
    assert sorted((made.folder / "effects").read_text().split()) == EFFECTS, where
    assert examine(made.log, read_plan).damaged is False, where


def blocks(count: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", range(count))


@blocks(6)
def test_one_operation_is_refused(tmp_path: Path, block: int) -> None:
    for at in range(1 + block, 1000, 6):
        made = project(tmp_path / f"{at}")
        refusal = Refusal(made.folder, anything, at, FAULTS[at // 6 % 3])
        outcome, code, reason = refused(made, refusal)
        if not refusal.met:
            assert at > 60, "there are more operations than these in a run"
            return
        where = f"{at} {refusal.operation}: {outcome}"
        assert (outcome, code) in (("finished", 0), ("session_damaged", 5)) or code in (1, 2), f"{where}: {reason}"
        assert code == 0 or os.strerror(refusal.error) in reason, f"{where}: {reason}"
        assert code != 1 or outcome == "output_invalid", where  # what a command left could not be read
        comes_to_the_same(made, where)


@pytest.mark.parametrize(
    ("kind", "error", "codes"),
    [
        (changes, errno.EROFS, {0, 1, 2, 3, 5}),
        (changes, errno.ENOSPC, {0, 1, 2, 3, 5}),
        (starts, errno.EAGAIN, {0, 1, 3}),
        (locks, errno.ENOLCK, {0, 2}),
    ],
)
def test_from_then_on_all_are_refused(tmp_path: Path, kind: Kind, error: int, codes: set[int]) -> None:
    found = set()
    for at in range(1, 1000, 1 if kind is locks else 6):
        made = project(tmp_path / f"{at}")
        refusal = Refusal(made.folder, kind, at, error, times=1_000_000)
        outcome, code, reason = refused(made, refusal)
        if not refusal.met:
            break
        found.add(code)
        where = f"{at} {refusal.operation}: {outcome}: {reason}"
        assert code in codes, where
        assert kind is not locks or code == 0 or "this file system cannot lock files, which a session needs" in reason
        if code:
            comes_to_the_same(made, where)
    assert len(found) > 1, "some stop the run and some do not"
