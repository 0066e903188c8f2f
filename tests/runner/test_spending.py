"""Laws of spending, on runs drawn at random: a limit is passed by one call at most, totals never go back, nothing is counted twice."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun import api
from planrun.core.budget import uses
from planrun.core.fold import apply
from planrun.core.state import Spend, State
from planrun.core.tokens import raw_tokens
from planrun.errors import PlanrunError, ProviderError
from planrun.models.base import Reply, Usage
from planrun.session.store import records
from planrun.testing.crash import Crash
from planrun.testing.model import call, done, say
from tests.core.pressing import SUMMARY
from tests.runner.driving import Project, Strict, Wire, again, ask, ended, project, step
from tests.runner.test_window import summarises

COUNT = st.none() | st.integers(1, 2_000)
USAGES = st.builds(Usage, COUNT, st.just(None), COUNT)
LIMITS = st.sampled_from(["tokens", "cost_usd", "turns", "time"])
EDGES = {"tokens": [100, 1_500, 4_000], "cost_usd": [0.001, 0.05, 0.2], "turns": [1, 3, 6], "time": [3600]}


@st.composite
def scripts(draw: st.DrawFn) -> list[Reply | PlanrunError]:
    """Turns of a run with one or two steps, some of which the endpoint fails."""
    turns: list[Reply | PlanrunError] = []
    for n in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 5)) == 0:
            turns.append(ProviderError("away", attempts=draw(st.integers(1, 6))))
            continue
        reply = draw(st.sampled_from([call("Glob", pattern=f"{n}*"), say(f"Hm {n}."), done()]))
        turns.append(replace(reply, usage=draw(USAGES), retries=draw(st.integers(0, 2))))
    return turns


def states(path: Path) -> list[State]:
    found = [State()]
    for record in records(path):
        found.append(apply(found[-1], record, api.read_plan))
    return found[1:]


def used(state: State) -> dict[str, float]:
    """What is used of each limit in force, the step's own under its id."""
    at = state.need_plan().steps[state.current] if state.current is not None else None
    return {use.key: use.used for use in uses(state, at)}


@settings(max_examples=25)
@given(scripts(), LIMITS, st.data())
def test_laws_of_spending(turns: list[Any], limit: str, data: st.DataObject) -> None:
    edge = data.draw(st.sampled_from(EDGES[limit]))
    with tempfile.TemporaryDirectory() as folder:
        run = project(Path(folder), step("a"), step("b"), limits={limit: edge}, context="keep")
        run.usage = False
        run.settings(modelOverrides={"scripted": {"inputPrice": 10, "outputPrice": 100}})
        script = [*turns, *[done()] * 9]
        sent, attempts = 0, 0
        result = run.run(script, ask())
        for _ in range(12):
            asked = script[sent : sent + len(run.requests)]
            attempts += sum(t.attempts if isinstance(t, ProviderError) else 1 + t.retries for t in asked)
            sent += len(run.requests)
            if ended(result)[1] in (0, 1, 3):
                break
            result = run.resume(script[sent:])
        assert result.state.spend.requests == attempts
        seen = states(run.log)
        totals = [
            (s.spend.tokens, s.spend.cost_usd or 0.0, s.turns, s.elapsed, s.spend.requests, s.spend.estimated) for s in seen
        ]
        assert all(all(x <= y for x, y in zip(a, b, strict=True)) for a, b in pairwise(totals))
        assert result.state.spend.tokens == sum(s.spend.tokens for s in result.state.steps)
        # Whenever a request was sent, the limit was not reached yet.
        before = [used(a)[limit] for a, b in pairwise(seen) if b.request is not None and a.request is None]
        assert all(value < edge for value in before)
        if ended(result)[1] == 3:
            assert run.resume([]).state.spend == result.state.spend and run.requests == []
            more = run.resume(script[sent:], again(flags={f"max_{limit.removesuffix('_usd')}": edge * 1_000}))
            assert more.state.spend.tokens >= result.state.spend.tokens and len(run.requests) > 0


LONG = "I looked at this and at that. " * 40


def talk(body: Wire) -> Reply:
    """A long turn and the end of the step; what a request holds says which it is."""
    if summarises(body):
        return say(SUMMARY)
    last = body["messages"][-1]
    return call("Bash", command=f"echo {LONG}") if last["role"] == "user" else done()


def crashing(folder: Path) -> Project:
    run = project(folder, step("a"), step("b"), context="summary")
    run.usage = False
    run.settings(modelOverrides={"scripted": {"inputPrice": 10, "outputPrice": 100}})
    return run


def sent_and_answered(run: Project, models: list[Strict]) -> tuple[int, int, int]:
    """By what the endpoint saw and by the answers on record: requests, tokens of prompts, tokens of answers."""
    found = run.records()
    sizes = {r["digest"]: r["tokens"] for r in found if r["type"] == "request"}
    sent = [sizes[request.digest] for model in models for request in model.sent]
    answers = [r["tool_calls"][0]["function"]["arguments"] for r in found if r.get("origin") == "model"]
    answers += [SUMMARY for r in found for e in r.get("edits", ()) if r["strategy"] == "summary" and not e.get("deterministic")]
    return len(sent), sum(sent), sum(round(raw_tokens(text)) for text in answers)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_whatever_a_crash_takes_no_total_is_lower_than_what_was_sent(tmp_path: Path, moment: Any) -> None:
    whole = crashing(tmp_path / "whole")
    model = Strict(talk, False)
    result = whole.run(model)
    assert ended(result) == ("finished", 0)
    assert {r.get("purpose", "step") for r in whole.of("request")} == {"step", "summary"}
    covers(result.state.spend, *sent_and_answered(whole, [model]))
    for at in range(2, len(whole.records()) + 1):
        run = crashing(tmp_path / str(at))
        models = [Strict(talk, False), Strict(talk, False)]
        with pytest.raises(Crash):
            run.run(models[0], crash=(at, moment))
        result = run.resume(models[1])
        assert ended(result) == ("finished", 0)
        covers(result.state.spend, *sent_and_answered(run, models))


def covers(spend: Spend, requests: int, prompt: int, completion: int) -> None:
    assert spend.requests >= requests
    assert spend.prompt_tokens >= prompt
    assert spend.completion_tokens >= completion
    assert spend.cost_usd is not None and spend.cost_usd >= (prompt * 10 + completion * 100) / 1e6 - 1e-6
