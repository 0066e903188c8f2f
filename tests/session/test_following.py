"""Logs whose lines are records and whose chain is whole, and which no state has a place for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planrun import api
from planrun.errors import SessionDamaged
from planrun.testing.model import call, done
from tests.cli.logs import bodies, write
from tests.runner.driving import project, step

Body = dict[str, Any]
SAID: Body = {"type": "message", "role": "assistant", "content": "x", "origin": "model", "timestamp": 2.0}
RESULT = SAID | {"role": "tool", "origin": "tool", "step": "a", "tool_call_id": "gone", "name": "Bash"}
CHANGED: Body = {"type": "step", "step": "b", "status": "done", "attempt": 1, "timestamp": 2.0}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    scratch = project(tmp_path, step("a"))
    scratch.run([call("Ls"), done()])
    return scratch.log


def resume(log: Path) -> None:
    api.resume(log.stem, api.Ask(), api.Front(), cwd=log.parents[2], environ={})


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (lambda b: [*b[1:]], 1, "before the session record, which holds the plan"),
        (lambda b: [b[0] | {"plan": "steps: ["}, *b[1:]], 1, "the plan in it is not one"),
        (lambda b: [b[0], CHANGED, *b[1:]], 2, "it belongs to step 'b', which the plan does not have"),
        (lambda b: [b[0], b[1], SAID | {"step": "b"}], 3, "belongs to step 'b'"),
    ],
    ids=["headless", "plan", "step", "message"],
)
def test_a_record_that_does_not_fit_is_named_and_nothing_changes(log: Path, change: Any, line: int, words: str) -> None:
    write(log, change(bodies(log)))
    before = log.read_bytes()
    for look in (api.load, resume):
        with pytest.raises(SessionDamaged, match=words) as caught:
            look(log)
        assert (caught.value.line, caught.value.exit_code) == (line, 5)
        assert f"s.jsonl, line {line}: " in str(caught.value)
    assert log.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: [*b[:4], SAID | {"role": "user", "step": "a", "origin": "user"}], "a user message directly after a user"),
        (lambda b: [*b[:4], SAID | {"step": "a"}, SAID | {"step": "a"}], "an assistant message after assistant"),
        (lambda b: [*b[:4], RESULT], "a tool result without its call"),
    ],
    ids=["users", "assistants", "orphan"],
)
def test_a_list_that_no_endpoint_takes_stops_a_resume_before_it_writes(log: Path, change: Any, words: str) -> None:
    write(log, change(bodies(log)))
    before = log.read_bytes()
    with pytest.raises(SessionDamaged, match=rf"message at record \d: {words}.*--rerun a"):
        resume(log)
    assert log.read_bytes() == before
