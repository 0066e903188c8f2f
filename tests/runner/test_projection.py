"""The strategy `summary` with `needs`: a step sees the summaries of those steps, of the others a line each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from planrun import api, looking
from planrun.models.base import Reply
from planrun.testing.crash import Crash
from planrun.testing.model import call, done, say
from tests.runner.driving import Project, ask, ended, project, step
from tests.support import last_user, tool_results

STEPS = (step("a"), step("b"), step("c"), step("d", needs=["b"], retry={"attempts": 2}, verify="test -e d"), step("e"))


def summary(of: str) -> str:
    facts = " ".join(f"The {of} number {n} is {n * n}." for n in range(20))
    return f"Facts: {of.upper()} {facts}\nDone: all of {of}\nFiles: none\nOpen: none"


def script(body: dict[str, Any]) -> Reply:
    messages = body["messages"]
    brief = last_user(messages)
    if "The record (data" in brief:  # a summary of summaries is not accepted, so that those of the steps stay
        step = next((s for s in "edcba" if f"Step {s} is done." in brief), None)
        return say(summary(step) if step else "no")
    if tool_results(messages):
        return done()
    return call("Bash", command=f"echo {'word ' * 1_000}" + ("; touch d" if "failed" in brief else ""))


def run_of(folder: Path) -> Project:
    return project(folder, *STEPS, context="summary", goal="The goal.")


def first_of(run: Project, name: str, nth: int = 0) -> list[dict[str, Any]]:
    """The messages of the first request of a step's attempt."""
    found = [
        r["messages"]
        for r in run.requests
        if f"do only step {name}" in last_user(r["messages"]) and not tool_results(r["messages"])
    ]
    return list(found[nth])


def test_a_step_sees_what_it_needs(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    assert ended(run.run(script, ask())) == ("finished", 0)
    _, goal, *notes, _ = (str(m["content"]) for m in first_of(run, "d"))
    assert "The goal." in goal
    text = "\n".join(notes)
    assert summary("b") in text
    assert summary("a") not in text
    assert summary("c") not in text
    assert "- a: Facts: A The a number 0 is 0." in text
    assert "- c: Facts: C" in text
    assert 'ExpandHistory(ids="' in text
    assert first_of(run, "d", 1)[:-1] == first_of(run, "d")[:-1]  # a fresh attempt sees the same
    later = "\n".join(str(m["content"]) for m in first_of(run, "e"))
    assert [s for s in "abcd" if summary(s) in later] == list("abcd")


def test_it_is_shown(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run.run(script, ask())
    seen = looking.sent(run.log, step="d")
    assert "- a: Facts: A" in "\n".join(e.message.content or "" for e in seen.entries)
    assert seen.proved
    assert api.load(run.log).hidden == ()


@pytest.mark.parametrize("at", range(40, 100, 7))
def test_a_crash_changes_nothing(tmp_path: Path, at: int) -> None:
    whole, run = run_of(tmp_path / "whole"), run_of(tmp_path / "run")
    whole.run(script, ask())
    with pytest.raises(Crash):
        run.run(script, ask(), crash=(at, "after"))
    assert ended(run.resume(script)) == ("finished", 0)
    known = [_without_numbers(r) for r in whole.requests]
    fresh = [text for r in run.requests if "interrupted" not in (text := _without_numbers(r))]
    assert [text for text in fresh if text not in known] == []


def _without_numbers(request: dict[str, Any]) -> str:
    """Records after a resume have other numbers: the resume is one of them."""
    return re.sub(r"\d+", "N", json.dumps(request["messages"]))


def test_a_step_too_short_for_a_summary_is_told_by_what_it_handed_in(tmp_path: Path) -> None:
    needs = [step("a", output={"n": "integer"}), step("b", needs=[])]
    run = project(tmp_path, *needs, context="summary", goal="The goal.")
    look = [call("Bash", command="echo " + "word " * 40), call("Ls")]
    assert ended(run.run([*look, done(n=3), done()], ask())) == ("finished", 0)
    note = str(run.messages()[2]["content"])
    assert '- a: UpdatePlanStep {"status":"done","output":{"n":3}}' in note
