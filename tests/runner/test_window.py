"""Steps that outgrow their window: the run goes on, what is pinned holds, every summary is on record and paid for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planrun.api import read_plan
from planrun.core import context
from planrun.core.archive import Search
from planrun.errors import ContextOverflow, ProviderError, ReplayMismatch
from planrun.models.base import ModelRequest, Reply, Usage
from planrun.replaying import replay_of
from planrun.session import search as searching
from planrun.testing.crash import Crash
from planrun.testing.model import call, done, refuse, say
from tests.core.pressing import SUMMARY
from tests.runner.driving import Project, Strict, Wire, again, ask, ended, project, reason, step

OK = ("finished", 0)
LONG = {"limits": {"turns": 1_000}}


def summarises(body: Wire) -> bool:
    return str(body["messages"][0]["content"]).startswith("You summarise")


def reading(turns: int, lines: int = 500, say_summary: Any = None) -> Any:
    """A model that reads `turns` times and then ends the step."""
    acts: Iterator[Reply] = iter([*(call("Bash", command=f"seq {n} {n + lines}") for n in range(turns)), done()])
    return lambda body: (say_summary or (lambda b: say(SUMMARY)))(body) if summarises(body) else next(acts)


def sent(run: Project) -> list[Wire]:
    return [r for r in run.requests if not summarises(r)]


def test_a_long_step_in_a_small_window_finishes(tmp_path: Path) -> None:
    """The shape of 300 turns of 20 kB in 32k tokens, some sizes smaller."""
    run = project(tmp_path, step("one", **LONG), window=5_000)
    acts = reading(120, 700)
    result = run.run(acts)
    assert ended(result) == OK, reason(result)
    assert len(sent(run)) == 121
    assert all(r["tokens"] <= 5_000 for r in run.of("request"))
    assert all(r["tokens_after"] < r["tokens_before"] for r in run.of("compaction"))
    assert result.state.compactions == len(run.of("compaction"))
    assert 0 < len(run.requests) - 121 < 60


def test_pinned_facts_are_there_verbatim_through_any_number_of_compactions(tmp_path: Path) -> None:
    fact = "Never touch the table `älter_als_30`; ask for ${{ params.who }}."
    run = project(tmp_path, step("one", **LONG), window=4_000, pin=[fact, "  Second fact.\n"], params={"who": "Ann"})
    assert ended(run.run(reading(60))) == OK
    systems = {r["messages"][0]["content"] for r in sent(run)}
    assert len(systems) == 1
    assert systems.pop().endswith(
        "Facts that hold throughout:\n- Never touch the table `älter_als_30`; ask for Ann.\n- Second fact."
    )


@pytest.mark.parametrize(
    "answer",
    [
        lambda body: say("   "),
        lambda body: say("word " * 5_000),
        lambda body: refuse("I would rather not."),
        lambda body: say(SUMMARY, "length"),
        lambda body: say(f"{SUMMARY} [99999]"),
        lambda body: (_ for _ in ()).throw(ProviderError("slow down", kind="rate", status=429, attempts=3)),
        lambda body: (_ for _ in ()).throw(ProviderError("timed out", kind="timeout")),
        lambda body: (_ for _ in ()).throw(ContextOverflow("too long", 3_600)),
    ],
    ids=["empty", "long", "refusal", "cut off", "foreign", "rate", "timeout", "overflow"],
)
def test_whatever_becomes_of_a_summary_the_run_goes_on(tmp_path: Path, answer: Any) -> None:
    run = project(tmp_path, step("one", **LONG), window=4_000)
    run.settings(summaryModel="small")
    result = run.run(reading(50, say_summary=answer))
    assert ended(result) == OK
    kinds = [n["kind"] for n in run.of("note") if n["kind"].startswith("summary")]
    assert kinds == ["summary", "summary", "summary_failed"]
    made = [r for r in run.of("compaction") if r["strategy"] == "summary"]
    assert made and all(r["edits"][0]["deterministic"] for r in made)
    assert result.state.overflows == 0 and result.state.turns == 51


def test_a_tight_prompt_may_do_where_the_normal_one_did_not(tmp_path: Path) -> None:
    answers = iter([say("word " * 5_000), *[say(SUMMARY)] * 50])
    run = project(tmp_path, step("one", **LONG), window=4_000)
    assert ended(run.run(reading(40, say_summary=lambda body: next(answers)))) == OK
    assert [n["kind"] for n in run.of("note") if n["kind"].startswith("summary")] == ["summary"]
    first = next(r for r in run.of("compaction") if r["strategy"] == "summary")
    assert "deterministic" not in first["edits"][0]
    assert run.of("response")[-1]["usage"] is not None


def test_the_window_that_a_refusal_teaches_holds_from_then_on(tmp_path: Path) -> None:
    acts = iter([*(call("Bash", command=f"seq {n} 900") for n in range(8)), done()])

    def script(body: Wire) -> Reply:
        if summarises(body):
            return say(SUMMARY)
        if len(json.dumps(body)) > 14_000:
            raise ContextOverflow("this model takes 5000 tokens", 5_000)
        return next(acts)

    run = project(tmp_path, step("one"), window=100_000)
    result = run.run(script)
    assert ended(result) == OK
    assert [r["maximum"] for r in run.of("limit")] == [5_000]
    assert result.state.windows == {"scripted": 5_000}
    assert {r["trigger"] for r in run.of("compaction")} == {"overflow", "budget"}


def test_a_summary_is_found_by_the_step_that_it_sums_up(tmp_path: Path) -> None:
    talk = lambda n: call("Bash", command=f"echo {n} " + "word " * 200)  # noqa: E731
    acts = iter([talk(1), done(), talk(2), done(), *(talk(n) for n in range(3, 40)), done()])
    run = project(tmp_path, step("one"), step("two", context="summary"), step("three", context="summary"), window=5_000)
    assert ended(run.run(lambda body: say(SUMMARY) if summarises(body) else next(acts))) == OK
    made = [r for r in run.of("compaction") if r["strategy"] == "summary"]
    assert [(r["boundary"], r["step"]) for r in made if "boundary" in r] == [("two", "one"), ("three", "two")]
    inside = [r for r in made if "boundary" not in r]
    assert inside and {r["step"] for r in inside} == {"three"}
    for name in ("one", "two", "three"):
        found = searching.search([run.log], Search("Facts", scope="summary", step=name))
        assert [h.record for h in sorted(found.hits, key=lambda h: h.record)] == [r["seq"] for r in made if r["step"] == name]


def test_each_model_has_its_own_factor_and_window(tmp_path: Path) -> None:
    def script(body: Wire) -> Reply:
        usage = Usage(8_000 if body["model"] == "big" else 2_000, 0, 10)
        made = done()
        return Reply(made.message, made.finish_reason, usage=usage)

    run = project(tmp_path, step("a"), step("b", model="big"), step("c"), model="scripted")
    run.environ.pop("PLANRUN_MODEL")
    result = run.run(script)
    assert ended(result) == OK
    factors = result.state.factors
    assert factors["big"] == 4.0 and 1.5 < factors["scripted"] < 3
    tokens = [r["tokens"] for r in run.of("request")]
    assert tokens[1] < 1.2 * tokens[0] < tokens[2]


@pytest.mark.parametrize("usage", [Usage(), Usage(None, None, 5)])
def test_an_endpoint_without_usage_keeps_working(tmp_path: Path, usage: Usage) -> None:
    inner = reading(60)

    def script(body: Wire) -> Reply:
        made = inner(body)
        return Reply(made.message, made.finish_reason, usage=usage)

    run = project(tmp_path, step("one", **LONG), window=4_000)
    run.usage = False
    result = run.run(script)
    assert ended(result) == OK and result.state.compactions > 0
    assert result.state.spend.estimated


def test_limits_are_checked_between_the_attempts_at_a_summary(tmp_path: Path) -> None:
    def costly(body: Wire) -> Reply:
        return Reply(say("no").message, "stop", usage=Usage(500_000, 0, 10))

    run = project(tmp_path, step("one", **LONG), window=4_000)
    run.settings(summaryModel="small")
    result = run.run(reading(60, say_summary=costly), ask(flags={"max_tokens": 400_000}))
    assert ended(result)[0] == "budget"
    assert sum(map(summarises, run.requests)) == 1
    assert result.state.step_state("one").spend.tokens == result.state.spend.tokens


def test_the_notice_of_a_guess_comes_once(tmp_path: Path) -> None:
    run = project(tmp_path)
    run.rewrite(step("a"), step("b"))
    run.run([done(), done()])
    assert sum("128,000 tokens is a guess" in n["text"] for n in run.of("note")) == 1
    known = project(tmp_path / "known", step("a"), window=9_000)
    known.run([done()])
    assert known.of("note") == []


def test_a_boundary_summary_takes_the_place_of_the_finished_step(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"), context="summary", goal="The goal.")
    acts = iter([call("Bash", command="true"), call("Write", file_path="f", content="some words " * 100), done(), done()])
    result = run.run(lambda body: say(f"{SUMMARY} [7]") if summarises(body) else next(acts))
    assert ended(result) == OK
    last = sent(run)[-1]["messages"]
    assert [m["role"] for m in last] == ["system", "user", "assistant", "user"]
    assert last[1]["content"].startswith("Goal: The goal.") and SUMMARY in last[2]["content"]
    assert [(r["strategy"], r["trigger"], r.get("boundary")) for r in run.of("compaction")] == [("summary", "boundary", "b")]


def test_a_crash_anywhere_in_a_summary_is_gone_on_from(tmp_path: Path) -> None:
    control = project(tmp_path / "control", step("one", **LONG), window=3_000)
    assert ended(control.run(reading(24, say_summary=lambda b: say("no")))) == OK
    first = next(r["seq"] for r in control.of("request") if r.get("purpose") == "summary")
    last = next(r["seq"] for r in control.of("compaction") if r["strategy"] == "summary")
    for at in range(first, last + 1):
        run = project(tmp_path / str(at), step("one", **LONG), window=3_000)
        script = reading(24, say_summary=lambda b: say("no"))
        with pytest.raises(Crash):
            run.run(script, crash=(at, "after"))
        assert ended(run.resume(script, again())) == OK


# --- recordings ---------------------------------------------------------------------------------------------------------


class Recording(Strict):
    """A recording in the place of a model, strict about lists of messages."""

    def __init__(self, path: Path, replies: int = 0) -> None:
        super().__init__([])
        self.inner = replay_of(path, replies, read_plan)

    def complete(self, request: ModelRequest) -> Reply:
        self.requests.append(json.loads(request.body))
        return self.inner.complete(request)

    def due(self, request: ModelRequest) -> bool:
        return self.inner.due(request)  # type: ignore[attr-defined,no-any-return]


def digests(run: Project) -> list[tuple[str, str]]:
    return [(r.get("purpose", "step"), r["digest"]) for r in run.of("request")]


def overflowing_at(size: int, inner: Any) -> Any:
    def script(body: Wire) -> Reply:
        if not summarises(body) and len(json.dumps(body)) > size:
            raise ContextOverflow("too long")
        reply: Reply = inner(body)
        return reply

    return script


@pytest.mark.parametrize("kind", ["good", "refused", "down", "overflow"])
def test_a_recording_with_summaries_is_replayed_exactly(tmp_path: Path, kind: str) -> None:
    def down(body: Wire) -> Reply:
        raise ProviderError("down")

    script = {
        "good": reading(40),
        "refused": reading(40, say_summary=lambda b: say("no")),
        "down": reading(40, say_summary=down),
        "overflow": overflowing_at(14_000, reading(40)),
    }[kind]
    run = project(tmp_path / "first", step("one", **LONG), window=30_000 if kind == "overflow" else 4_000)
    assert ended(run.run(script)) == OK
    assert kind == "overflow" or any(p == "summary" for p, _ in digests(run))
    replayed = project(tmp_path / "again", step("one", **LONG), window=30_000 if kind == "overflow" else 4_000)
    result = replayed.run(Recording(run.log))
    assert ended(result) == OK, reason(result)
    assert digests(replayed) == digests(run)
    assert context.wire(result.state.view) == context.wire(run_state(run))


def run_state(run: Project) -> Any:
    from planrun.api import load

    return load(run.log).view


def test_a_summary_that_is_not_recorded_fails_loudly(tmp_path: Path) -> None:
    run = project(tmp_path / "first", step("one", **LONG), window=4_000)
    assert ended(run.run(reading(40))) == OK
    other = project(tmp_path / "again", step("one", **LONG), window=4_000)
    model = replay_of(run.log, 0, read_plan)
    model._summaries.clear()  # type: ignore[attr-defined]
    result = other.run(model)
    assert ended(result) == ("config", 2) and "no summary" in reason(result)
    with pytest.raises(ReplayMismatch):
        model.complete(ModelRequest(b"{}", "x", purpose="summary"))


def test_a_replay_leaves_out_what_the_recorded_run_did(tmp_path: Path) -> None:
    """The recorded model's window is known from the table; nothing but the recording says so to the replay."""
    run = project(tmp_path / "first")
    run.environ["PLANRUN_MODEL"] = "gpt-4"
    run.rewrite(step("one", **LONG))
    assert ended(run.run(reading(40, 1_200))) == OK
    assert run.of("compaction")
    replayed = project(tmp_path / "again")
    replayed.environ["PLANRUN_MODEL"] = f"replay:{run.log}"
    replayed.rewrite(step("one", **LONG))
    result = replayed.run(Recording(run.log))
    assert ended(result) == OK, reason(result)
    assert digests(replayed) == digests(run)


def test_a_refusal_that_names_no_window_does_not_close_the_session_for_good(tmp_path: Path) -> None:
    """A gateway's 413, say: the next run asks anew how much there is."""
    run = project(tmp_path, step("a"))
    assert ended(run.run([ContextOverflow("too large")])) == ("context", 3)
    assert ended(run.resume([done()])) == ("finished", 0)
