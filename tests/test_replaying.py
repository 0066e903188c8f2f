"""A session log as a model: the same run again, and the first difference where it is not the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planrun import api
from planrun.api import read_plan
from planrun.core.events import Event, Requested, Responded, Said
from planrun.core.messages import Message
from planrun.core.state import State
from planrun.errors import ConfigError, ProviderError, ReplayMismatch, SessionDamaged
from planrun.models.base import ModelRequest, Reply
from planrun.replaying import replay_of
from planrun.session import log as logs
from planrun.session.store import records
from planrun.testing.crash import Crash
from planrun.testing.model import call, done, say
from tests.support import Scratch

PLAN = """\
version: 1
name: replay
steps:
  - {id: one, prompt: Find it., output: {n: integer}}
  - {id: two, prompt: "Use ${{ steps.one.output.n }}."}
"""
SCRIPT = [call("Bash", command="echo hello"), done(n=7), say("Hm."), done()]


def recorded(folder: Path) -> Path:
    scratch = Scratch(folder, PLAN)
    assert scratch.run(SCRIPT).state.ended is not None
    return scratch.log


def test_a_recording_answers_the_same_run(tmp_path: Path) -> None:
    log = recorded(tmp_path / "first")
    again = Scratch(tmp_path / "again", PLAN)
    state = again.run(replay_of(log, 0, read_plan)).state
    assert state.ended is not None
    assert state.ended.outcome == "finished"
    assert digests(again.log) == digests(log)


def digests(log: Path) -> list[str]:
    return [r.event.digest for r in records(log) if isinstance(r.event, Requested)]


def test_a_resume_goes_on_where_the_recording_stands(tmp_path: Path) -> None:
    log = recorded(tmp_path / "first")
    answered = [r.seq for r in records(log) if isinstance(r.event, Responded)]
    again = Scratch(tmp_path / "again", PLAN)
    with pytest.raises(Crash):
        again.run(replay_of(log, 0, read_plan), crash=(answered[1] + 1, "before"))
    replies = api.load(again.log).replies
    assert replies == 2
    state = again.resume(replay_of(log, replies, read_plan)).state
    assert state.ended is not None
    assert state.ended.outcome == "finished"


def test_a_changed_plan_is_told_with_its_first_difference(tmp_path: Path) -> None:
    log = recorded(tmp_path / "first")
    other = Scratch(tmp_path / "again", PLAN.replace("Find it.", "Seek it."))
    state = other.run(replay_of(log, 0, read_plan)).state
    assert state.ended is not None
    assert (state.ended.outcome, state.ended.exit_code) == ("config", 2)
    assert "- Find it." in state.ended.reason
    assert "+ Seek it." in state.ended.reason


def test_a_missing_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere.jsonl"):
        replay_of(tmp_path / "nowhere.jsonl", 0, read_plan)
    (tmp_path / "text.jsonl").write_text("hello\n")
    with pytest.raises(SessionDamaged, match="text.jsonl, line 1"):
        replay_of(tmp_path / "text.jsonl", 0, read_plan)


def log_of(path: Path, *events: Event) -> Path:
    log = logs.create(path)
    for event in events:
        log.append(event)
    log.close()
    return path


def sent(digest: str, **more: Any) -> Requested:
    return Requested(digest, 10, 2, step="one", **more)


def reported(**more: Any) -> Responded:
    return Responded({"prompt_tokens": 5, "cached_tokens": None, "completion_tokens": 3}, "m", 0.1, **more)


def answer(text: str) -> Said:
    return Said.of(Message("assistant", text), "model", "one", 1)


def replies(path: Path, skip: int, *digests: str) -> list[Reply]:
    model = replay_of(path, skip, read_plan)
    return [model.complete(ModelRequest(b'{"messages":[]}', d, purpose="summary" if d in "xy" else "step")) for d in digests]


def test_failed_and_cut_off_requests_have_no_answer(tmp_path: Path) -> None:
    path = log_of(
        tmp_path / "s.jsonl",
        sent("a"), Responded(None, None, 1.0, error="503"),
        sent("a"),
        sent("a"), answer("first"), reported(finish_reason="stop", retries=1),
        sent("b"), reported(refusal="no", finish_reason="content_filter"),
        sent("c"), reported(empty=True),
        sent("d"),
    )  # fmt: skip
    first, refused, empty = replies(path, 0, "a", "b", "c")
    assert (first.message, first.finish_reason, first.model, first.retries) == (Message("assistant", "first"), "stop", "m", 1)
    assert (first.usage.prompt_tokens, first.usage.cached_tokens, first.usage.completion_tokens) == (5, None, 3)
    assert (refused.message, refused.refusal) == (None, "no")
    assert (empty.message, empty.refusal) == (None, None)
    with pytest.raises(ReplayMismatch, match="has 3 answers, and this is request 4"):
        replies(path, 0, "a", "b", "c", "d")


def test_an_answer_whose_report_a_crash_cut_off_counts(tmp_path: Path) -> None:
    path = log_of(tmp_path / "s.jsonl", sent("a"), answer("one"), sent("b"), answer("two"), reported())
    assert [r.message for r in replies(path, 0, "a", "b")] == [Message("assistant", "one"), Message("assistant", "two")]
    last = log_of(tmp_path / "t.jsonl", sent("a"), answer("one"))
    assert [r.message for r in replies(last, 0, "a")] == [Message("assistant", "one")]


def test_summaries_are_answered_in_their_place_and_skipped_with_the_steps_before_them(tmp_path: Path) -> None:
    path = log_of(
        tmp_path / "s.jsonl",
        sent("a"), answer("1"), reported(),
        sent("x", purpose="summary"), answer("sum"), reported(purpose="summary"),
        sent("b"), answer("2"), reported(),
        sent("y", purpose="summary"), answer("sum 2"), reported(purpose="summary"),
        sent("c"), answer("3"), reported(),
    )  # fmt: skip
    assert len(replies(path, 0, "a", "x", "b", "y", "c")) == 5
    assert [r.message for r in replies(path, 2, "y", "c")] == [Message("assistant", "sum 2"), Message("assistant", "3")]
    with pytest.raises(ReplayMismatch, match="has 0 answers"):
        replies(path, 7, "a")


def test_a_provider_failure_in_the_recording_is_not_replayed(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "first", PLAN)
    scratch.run([ProviderError("down")])
    scratch.resume(SCRIPT)
    again = Scratch(tmp_path / "again", PLAN)
    state: State = again.run(replay_of(scratch.log, 0, read_plan)).state
    assert state.ended is not None
    assert state.ended.outcome == "finished"
