"""Summaries of summaries that are made beside the run."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planrun.core.budget import exceeded
from planrun.core.plan import Limits
from planrun.errors import ContextOverflow
from planrun.models.base import ModelRequest, Reply
from planrun.testing.model import calls, done, say
from tests.core.pressing import SUMMARY
from tests.runner.driving import Project, Strict, Wire, again, ask, ended, project, reason, step
from tests.runner.test_window import LONG, OK, Recording, digests, reading, summarises

WINDOW = 9_000
# Summaries that are long enough for four of them to be worth one.
FULL = "Facts: " + "many words were read here " * 12 + "\nDone: read\nFiles: none\nOpen: none"


def of_summaries(body: Wire) -> bool:
    return summarises(body) and "] summary of records" in body["messages"][1]["content"]


class Beside(Strict):
    """Answers summaries of summaries only once `let` says so, on the thread that asks; `asking` is set when one is asked for."""

    def __init__(self, script: Any, answer: Any = None, held: bool = True) -> None:
        super().__init__(script)
        self.answer = answer or (lambda: say(SUMMARY))
        self.asking, self.let = threading.Event(), threading.Event()
        self.threads: set[str] = set()
        if not held:
            self.let.set()

    def complete(self, request: ModelRequest) -> Reply:
        if request.purpose != "background":
            return super().complete(request)
        self.threads.add(threading.current_thread().name)
        self.asking.set()
        assert self.let.wait(30)
        reply: Reply = self.answer()
        return reply


def big(turns: int) -> Any:
    """Turns that fill the window with what only a summary can take away: texts of the model's own."""
    numbers = iter(range(turns))

    def script(body: Wire) -> Reply:
        if summarises(body):
            return say(FULL)
        n = next(numbers, None)
        return done() if n is None else say_and_call(n)

    return script


def say_and_call(n: int) -> Reply:
    return calls(("Bash", {"command": f"echo {n}"}), text=f"Turn {n}: " + "I looked at this and at that. " * 12)


def beside(run: Project) -> list[Wire]:
    return [r for r in run.records() if r.get("purpose") == "background" or r.get("trigger") == "background"]


def kinds(run: Project) -> list[str]:
    return [r["type"] for r in beside(run)]


def made(folder: Path, **more: Any) -> Project:
    return project(folder, step("one", **LONG), window=WINDOW, **more)


def test_it_is_made_on_a_thread_and_delays_nothing(tmp_path: Path) -> None:
    """While it is held, the turns go on; the run ends without it."""
    model = Beside(big(140))
    run = made(tmp_path)
    result = run.run(model)
    assert ended(result) == OK, reason(result)
    assert model.asking.is_set() and model.threads == {"summary"}
    assert kinds(run) == ["request"]
    assert result.state.background is not None
    model.let.set()


def test_its_answer_goes_in_between_two_turns(tmp_path: Path) -> None:
    model = Beside(None)
    inner = big(140)
    after: list[int] = []

    def script(body: Wire) -> Reply:
        if model.asking.is_set():
            model.let.set()
            after.append(1)
        return inner(body)  # type: ignore[no-any-return]

    model._script = script
    run = made(tmp_path)
    result = run.run(model)
    assert ended(result) == OK
    found = kinds(run)
    assert found[:3] == ["request", "compaction", "response"]
    compaction = next(r for r in beside(run) if r["type"] == "compaction")
    assert compaction["tokens_after"] < compaction["tokens_before"] and compaction["edits"][0]["level"] == 2
    at = compaction["seq"]
    before = next(r for r in reversed(run.records()) if r["seq"] < at and r["type"] in ("message", "tool_start"))
    assert before["type"] == "message" and before["role"] == "tool", "no call is unanswered"
    assert next(r for r in run.records() if r["seq"] > at)["type"] == "response"


def test_what_it_covers_is_gone_meanwhile(tmp_path: Path) -> None:
    """The endpoint turns out to have a smaller window, and the ladder sums the same notes up itself before the answer comes: that
    one is thrown away, with what it cost on record."""
    model = Beside(None)
    inner, refused = big(140), []

    def script(body: Wire) -> Reply:
        if model.asking.is_set() and not summarises(body) and not refused:
            refused.append(1)
            raise ContextOverflow("too long", 4_500)
        if model.asking.is_set() and of_summaries(body):
            model.let.set()
        return inner(body)  # type: ignore[no-any-return]

    model._script = script
    run = made(tmp_path)
    result = run.run(model)
    assert ended(result) == OK, reason(result)
    assert model.let.is_set()
    assert kinds(run)[:2] == ["request", "response"]
    first = next(n for n in run.of("note") if n["kind"].startswith("background"))
    assert first["kind"] == "background_late" and "not in the context any more" in first["text"]


def test_a_failure_beside_the_run_ends_it_for_the_step_only(tmp_path: Path) -> None:
    model = Beside(big(160), answer=lambda: say("nonsense"), held=False)
    run = made(tmp_path)
    result = run.run(model)
    assert ended(result) == OK
    assert kinds(run) == ["request", "response"]
    assert [n["kind"] for n in run.of("note") if n["kind"].startswith("background")] == ["background_failed"]
    assert result.state.no_background == "one" and result.state.digest_only is None


def test_a_hook_may_put_it_off(tmp_path: Path) -> None:
    model = Beside(big(60), held=False)
    run = made(tmp_path)
    run.settings(hooks={"pre_compact": "case $(cat) in *background*) exit 2;; esac"})
    result = run.run(model)
    assert ended(result) == OK
    assert kinds(run) == []


def test_what_it_will_cost_counts_before_it_is_there(tmp_path: Path) -> None:
    model = Beside(big(140))
    run = made(tmp_path)
    run.settings(modelOverrides={"scripted": {"inputPrice": 10, "outputPrice": 100}})
    state = run.run(model, ask(flags={"max_turns": 120})).state
    model.let.set()
    pending, one = state.background, state.need_plan().step("one")
    assert pending is not None and pending.cost_usd == pending.tokens * 10 / 1e6
    spent = state.spend.cost_usd
    assert spent is not None
    for limit, limited in ((spent + pending.cost_usd, True), (spent + pending.cost_usd + 1e-6, False)):
        own = replace(one, limits=Limits(cost_usd=limit))
        assert (exceeded(replace(state, settings={}), own) is not None) == limited
        whole = replace(state, settings={"limits": {"cost_usd": limit}})
        assert (exceeded(whole, one) is not None) == limited


def test_what_was_left_unfinished_counts_by_estimate_on_resume(tmp_path: Path) -> None:
    model = Beside(big(140))
    run = made(tmp_path)
    first = run.run(model, ask(flags={"max_turns": 120}))
    assert ended(first) == ("turn_limit", 3)
    pending = first.state.background
    assert pending is not None
    model.let.set()
    second = run.resume(Beside(big(5), held=False), again(flags={"max_turns": 900}))
    assert ended(second) == OK
    resumed = next(r["seq"] for r in run.of("note") if r["kind"] == "resumed")
    spent = first.state.spend.tokens + pending.tokens
    assert second.state.spend.tokens >= spent and resumed


def test_a_replay_takes_it_in_at_the_same_place(tmp_path: Path) -> None:
    model = Beside(None)
    inner, asked = big(140), []

    def script(body: Wire) -> Reply:
        if model.asking.is_set():
            asked.append(1)
            if len(asked) == 7:
                model.let.set()
        return inner(body)  # type: ignore[no-any-return]

    model._script = script
    run = made(tmp_path / "first")
    assert ended(run.run(model)) == OK
    assert "compaction" in kinds(run)
    replayed = made(tmp_path / "again")
    result = replayed.run(Recording(run.log))
    assert ended(result) == OK, reason(result)
    assert digests(replayed) == digests(run)
    assert kinds(replayed) == kinds(run)


def test_one_that_never_came_is_never_due(tmp_path: Path) -> None:
    model = Beside(big(140))
    run = made(tmp_path / "first")
    assert ended(run.run(model)) == OK
    replayed = made(tmp_path / "again")
    result = replayed.run(Recording(run.log))
    assert ended(result) == OK, reason(result)
    assert digests(replayed) == digests(run) and kinds(replayed) == ["request"]
    model.let.set()


def test_an_error_that_no_model_may_raise_is_not_swallowed(tmp_path: Path) -> None:
    def broken() -> Reply:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        made(tmp_path).run(Beside(big(160), answer=broken, held=False))


def test_short_steps_have_nothing_beside_them(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert ended(run.run(reading(5))) == OK
    assert beside(run) == []
