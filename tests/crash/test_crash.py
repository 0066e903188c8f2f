"""Law 2: kill at every record, before the write, half through it, after it is on disk; resume; nothing differs, nothing happens twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planrun.models.base import Reply
from planrun.testing.crash import MOMENTS, Crash, Moment
from planrun.testing.model import call, calls, done, say
from tests.support import Scratch, last_user, tool_results

PLAN = """\
version: 1
name: crash
goal: Survive.
params: {word: hello}
steps:
  - id: one
    prompt: Make one.
    output: {n: integer}
    verify:
      - exists: [one.txt]
      - unchanged: [plan.yaml]
    fix: 1
  - id: two
    run: |  # a command that a crash cuts off is run again: only the command can know
      grep -qx two effects || echo two >> effects
      echo ${{ params.word }}
    output: {word: string}
  - id: never
    if: steps.one.output.n > 5
    prompt: Never.
  - id: three
    context: clear
    prompt: Use ${{ steps.two.output.word }}.
    retry: {attempts: 2}
    verify: test -e three.txt
    output: {text: string}
  - id: four
    prompt: Look.
    output: {list: {type: array, items: {type: string}}}
finally:
  - id: tidy
    run: grep -qx tidy effects || echo tidy >> effects
output: {text: "${{ steps.three.output.text }}"}
"""


def once(word: str) -> str:
    """A command that appends `word` unless it stands there: what a careful model does after an interruption."""
    return f"grep -qx {word} effects 2>/dev/null || echo {word} >> effects"


def script(body: dict[str, Any]) -> Reply:
    """Answers from what the request holds alone, so that it goes on after any crash as if nothing had been."""
    messages = body["messages"]
    brief, results = last_user(messages), tool_results(messages)
    good = [r for r in results if "interrupted" not in r]
    interrupted = bool(results) and "interrupted" in results[-1]
    if "Step one:" in brief:
        if interrupted:
            return call("Bash", command=once("a" if not good else "fix") + ("; touch one.txt" if good else ""))
        match len(good):
            case 0:
                return call("Bash", command=once("a"))
            case 1:
                return done(n=1)
            case 2:
                return call("Bash", command=once("fix") + "; touch one.txt")
        return done(n=1)
    if "Step three:" in brief:
        if "failed" not in brief:
            return done(text="first")
        return done(text="hello again") if good else call("Bash", command=once("c") + "; touch three.txt")
    if "Step four:" in brief:
        return calls(("Ls", {}), ("Read", {"file_path": "one.txt"})) if not good else done(list=["x"])
    return say("?")


def effects(folder: Path) -> list[str]:
    return sorted((folder / "effects").read_text().split())


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scratch, Any]:
    scratch = Scratch(tmp_path_factory.mktemp("unbroken"), PLAN)
    return scratch, scratch.run(script)


def test_unbroken(unbroken: tuple[Scratch, Any]) -> None:
    scratch, result = unbroken
    assert result.state.ended.reason == "every step is done"
    assert result.state.ended.output == {"text": "hello again"}
    assert effects(scratch.folder) == ["a", "c", "fix", "tidy", "two"]


POINTS = 130  # more than the records of the unbroken run: the test below says so


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("block", range(10))
def test_every_record(unbroken: tuple[Scratch, Any], tmp_path: Path, moment: Moment, block: int) -> None:
    whole, expected = unbroken
    total = len(whole.records())
    assert total <= POINTS
    known = [r["messages"] for r in whole.requests]
    for at in range(2 + block, total + 1, 10):
        scratch = Scratch(tmp_path / f"{at}", PLAN)
        with pytest.raises(Crash):
            scratch.run(script, crash=(at, moment))
        result = scratch.resume(script)
        where = f"record {at} of {total}, {moment}"
        assert result.state.ended.outcome == "finished", where
        assert [s.output for s in result.state.steps] == [s.output for s in expected.state.steps], where
        assert [s.attempt for s in result.state.steps] == [s.attempt for s in expected.state.steps], where
        assert effects(scratch.folder) == effects(whole.folder), where
        assert result.state.spend.requests >= expected.state.spend.requests, where
        if scratch.requests and not any("interrupted" in str(m["content"]) for m in scratch.requests[0]["messages"]):
            assert scratch.requests[0]["messages"] in known, where


def test_twice(unbroken: tuple[Scratch, Any], tmp_path: Path) -> None:
    """A crash in the resume that follows a crash."""
    whole, expected = unbroken
    for at in range(5, len(whole.records()), 7):
        scratch = Scratch(tmp_path / f"{at}", PLAN)
        with pytest.raises(Crash):
            scratch.run(script, crash=(at, "after"))
        with pytest.raises(Crash):
            scratch.resume(script, crash=(3, "half"))
        assert scratch.resume(script).state.ended.output == expected.state.ended.output
        assert effects(scratch.folder) == effects(whole.folder)
