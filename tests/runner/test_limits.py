"""Limits: checked before each model call, counted over resumes, announced once at 85 %; and the guard against repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import ConfigError, PlanrunError, ProviderError
from planrun.models.base import Reply, Usage
from planrun.testing.crash import Crash
from planrun.testing.model import call, calls, done, say
from tests.runner.driving import Project, again, ask, contents, ended, last_result, project, reason, shell, statuses, step

OK = ("finished", 0)


def used(reply: Reply, prompt: int, completion: int = 0) -> Reply:
    return replace(reply, usage=Usage(prompt, 0, completion))


def priced(folder: Path, **limits: Any) -> Project:
    run = project(folder, step("a"), limits=limits)
    run.settings(modelOverrides={"scripted": {"inputPrice": 10, "outputPrice": 100}})
    return run


def look(i: int) -> Reply:
    return call("Glob", pattern=f"{i}*")


def test_tokens(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), limits={"tokens": 1_000})
    result = run.run([used(look(1), 600), used(look(2), 300, 100)])
    assert (ended(result), statuses(result)) == (("budget", 3), ["in_progress"])
    assert "1000 tokens" in reason(result) and "--max-tokens" in reason(result)


def test_cost(tmp_path: Path) -> None:
    run = priced(tmp_path, cost_usd=0.03)
    result = run.run([used(look(1), 1_000, 100), used(look(2), 1_000)])
    assert ended(result) == ("budget", 3)
    assert result.state.spend.cost_usd == pytest.approx(0.03)
    assert "--max-cost" in reason(result)


def test_turns(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"), limits={"turns": 2})
    result = run.run([look(1), done()])
    assert (ended(result), statuses(result)) == (("turn_limit", 3), ["done", "in_progress"])
    assert "--max-turns" in reason(result)


def test_time(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), limits={"time": "1"})
    result = run.run([call("Bash", command="sleep 30")])
    assert (ended(result), statuses(result)) == (("time_limit", 3), ["in_progress"])
    assert "--max-time" in reason(result)


def test_time_stops_commands_too(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "sleep 30"), shell("b", "touch b"), limits={"time": "1"})
    result = run.run([])
    assert (ended(result), statuses(result)) == (("time_limit", 3), ["in_progress", "todo"])
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("limits", "flags"),
    [
        ({"turns": 2}, {"max_turns": 5}),
        ({"tokens": 1_500}, {"max_tokens": 9_000}),
        ({"time": "0.3"}, {"max_time": 600.0}),
    ],
)
def test_a_limit_is_still_reached_on_resume_until_it_is_raised(
    tmp_path: Path, limits: dict[str, Any], flags: dict[str, Any]
) -> None:
    run = project(tmp_path, step("a"), limits=limits)
    stopped = run.run([used(call("Bash", command="sleep 1"), 750), used(look(2), 750)])
    used_up = len(run.requests)
    still = run.resume([])
    assert ended(still) == ended(stopped) != OK
    assert run.requests == []
    result = run.resume([done()], again(flags=flags))
    assert ended(result) == OK
    assert result.state.turns == used_up + 1


@pytest.mark.parametrize(
    ("variables", "flags", "expected"),
    [
        ({}, {}, ("turn_limit", 3)),
        ({"PLANRUN_MAX_TURNS": "3"}, {}, OK),
        ({"PLANRUN_MAX_TURNS": "1"}, {"max_turns": 3}, OK),
    ],
)
def test_a_limit_given_by_hand_holds_on_resume_until_another_one_is(
    tmp_path: Path, variables: dict[str, str], flags: dict[str, Any], expected: tuple[str, int]
) -> None:
    run = project(tmp_path, step("a"), limits={"turns": 9})
    run.run([look(1), look(2)], ask(flags={"max_turns": 2}))
    run.environ |= variables
    for _ in range(2):  # what the second resume finds is what the first was given
        assert ended(run.resume([done()], again(flags=flags))) == expected
        flags, run.environ = {}, {k: v for k, v in run.environ.items() if k not in variables}


def test_a_flag_wins_over_the_plan(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), limits={"turns": 9})
    assert ended(run.run([look(1)], ask(flags={"max_turns": 1}))) == ("turn_limit", 3)


def test_tokens_and_time_count_over_a_resume(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), limits={"tokens": 1_000})
    run.run([used(look(1), 400), ProviderError("away")])
    result = run.resume([used(look(2), 600)])
    assert (ended(result), result.state.spend.tokens) == (("budget", 3), 1_000)


def test_a_request_that_failed_costs_nothing(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    result = run.run([ConfigError("the key was refused")])
    assert ended(result) == ("config", 2)
    assert (result.state.spend.tokens, result.state.spend.estimated, result.state.turns) == (0, False, 0)


def test_unknown_usage_counts_by_estimate_and_is_marked(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), limits={"tokens": 2_000})
    run.usage = False
    result = run.run([look(i) for i in range(20)])
    assert ended(result) == ("budget", 3)
    assert result.state.spend.estimated
    assert {r["usage"] for r in run.of("response")} == {None}


def test_an_answer_of_unknown_size_counts_too(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.usage = False
    result = run.run([say("word " * 2_000), done()])
    assert result.state.spend.completion_tokens > 1_500


def test_the_models_calls_of_parts_that_are_unknown(tmp_path: Path) -> None:
    run = priced(tmp_path)
    result = run.run([replace(done(), usage=Usage(None, None, 50))])
    estimate = run.of("request")[0]["tokens"]
    assert result.state.spend.prompt_tokens == estimate
    assert result.state.spend.cost_usd == pytest.approx((estimate * 10 + 50 * 100) / 1e6)


LANDINGS: list[tuple[dict[str, Any], str]] = [
    ({"turns": 7}, "85 % of the turns limit"),
    ({"tokens": 7_000}, "85 % of the tokens limit"),
    ({"cost_usd": 0.07}, "85 % of the cost_usd limit"),
]


@pytest.mark.parametrize(("limits", "words"), LANDINGS)
def test_at_85_percent_the_model_is_told_to_land_once(tmp_path: Path, limits: dict[str, Any], words: str) -> None:
    run = priced(tmp_path, **limits)
    assert ended(run.run([*(used(look(i), 1_000) for i in range(6)), done()])) == OK
    told = [m["content"] for m in run.messages() if "Land now" in (m["content"] or "")]
    assert len(told) == 1 and words in told[0]
    assert told[0] == last_result(run.messages())
    assert [(r["limit"], r["landing"]) for r in run.of("limit")] == [(next(iter(limits)), True)]


def test_a_steps_own_turns_are_announced_too(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", limits={"turns": 7}))
    assert ended(run.run([*(look(i) for i in range(6)), done()])) == OK
    assert "Land now" in last_result(run.messages())


def test_a_step_that_begins_behind_the_mark_is_told_at_once(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"), limits={"tokens": 1_000}, context="clear")
    run.run([used(done(), 900), used(done(), 10)])
    assert "Land now" in str(run.messages())


@pytest.mark.parametrize("limit", ["tokens", "time", "cost_usd"])
def test_a_steps_own_limits(tmp_path: Path, limit: str) -> None:
    value = {"tokens": 500, "time": "0.2", "cost_usd": 0.001}[limit]
    run = project(tmp_path, step("a", limits={limit: value}), step("b"))
    run.settings(modelOverrides={"scripted": {"inputPrice": 10, "outputPrice": 100}})
    result = run.run([used(call("Bash", command="sleep 0.4"), 600)])
    assert ended(result) == ("time_limit" if limit == "time" else "budget", 3)
    assert "step a's" in reason(result)
    assert "--max-" not in reason(result), "no flag raises a step's own limit"


def test_a_raised_limit_of_a_step_is_taken_from_the_changed_plan(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", limits={"tokens": 500}))
    run.run([used(look(1), 600)])
    run.rewrite(step("a", limits={"tokens": 5_000}))
    assert ended(run.resume([done()], again(rerun="stale"))) == OK


# --- what is kept for checks, and what is checked when ---------------------------------------------------------------


def test_a_tenth_of_the_time_is_kept_for_the_checks(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="true"), limits={"time": "5"})
    result = run.run([call("Bash", command="sleep 30")])
    assert (ended(result), run.of("tool_end")[0]["status"]) == (("time_limit", 3), "timeout")
    assert "0.5 are kept for its checks" in reason(result)
    assert result.state.elapsed < 5
    assert ended(run.resume([])) == ("time_limit", 3) and run.requests == []
    assert ended(run.resume([done()], again(flags={"max_time": 60.0}))) == OK


def test_a_claim_in_time_is_checked_in_what_was_kept(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="true"), limits={"time": "5"}, recheck="off")
    work = calls(("Bash", {"command": "sleep 30"}), ("UpdatePlanStep", {"status": "done"}))
    assert ended(run.run([work])) == OK


@pytest.mark.parametrize("limit", [{"limits": {"time": "2.6"}}, {"timeout": "2.6"}])
def test_a_last_check_that_the_time_cuts_off(tmp_path: Path, limit: dict[str, Any]) -> None:
    """It is asked for once; the step's own timeout is over with the step."""
    head = limit if "limits" in limit else {}
    run = project(tmp_path, step("a", verify="sleep 1.5", **({} if head else limit)), **head)
    result = run.run([done()])
    assert ended(result) == (("time_limit", 3) if head else OK)
    assert len(run.records()) < 20
    if head:
        assert ended(run.resume([], again(flags={"max_time": 60.0}))) == OK


def test_no_summary_is_asked_for_over_the_limit(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"), context="summary", limits={"tokens": 2_000})
    result = run.run([call("Bash", command="seq 2000"), used(done(), 2_000)])
    assert (ended(result), statuses(result)) == (("budget", 3), ["done", "todo"])
    assert len(run.requests) == 2


def test_an_answer_that_was_not_counted_costs_what_is_estimated(tmp_path: Path) -> None:
    run = priced(tmp_path)
    run.usage = False
    result = run.run([say("word " * 2_000), done()])
    first = run.of("response")[0]["cost_usd"]
    assert first > 2_000 * 100 / 1e6 * 0.5
    assert result.state.spend.estimated


# --- repeats --------------------------------------------------------------------------------------------------------


def test_the_same_call_with_the_same_result(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"))
    result = run.run([call("Bash", command="echo noop")] * 5)
    assert (ended(result), statuses(result)) == (("stuck", 3), ["failed", "todo"])
    assert len(run.requests) == 5
    told = ["have made this call" in c for c in contents(run.messages(), "tool")]
    assert told == [False, False, True, True]


def test_keys_in_another_order_are_the_same_call(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    turns = [call("Grep", pattern="x", path="."), call("Grep", path=".", pattern="x")]
    assert ended(run.run([*turns, *turns, turns[0]])) == ("stuck", 3)


@pytest.mark.parametrize("period", [2, 3, 4])
def test_cycles(tmp_path: Path, period: int) -> None:
    run = project(tmp_path, step("a"))
    result = run.run([look(i % period) for i in range(5 * period)])
    assert ended(result) == ("stuck", 3)
    assert len(run.requests) == 5 * period
    told = [i for i, c in enumerate(contents(run.messages(), "tool"), 1) if "same result" in c]
    assert told[0] == 3 * period


def test_a_cycle_of_five_is_none(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    assert ended(run.run([*(look(i % 5) for i in range(30)), done()])) == OK


def test_a_poll_whose_result_changes_is_not_stopped(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    poll = call("Bash", command="echo x >> n; wc -l < n")
    assert ended(run.run([*[poll] * 12, done()])) == OK
    assert "same result" not in str(run.messages())


def test_calls_of_one_message_are_made_before_a_nudge_is_read(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    five = calls(*[("Bash", {"command": "echo noop"})] * 5)
    assert ended(run.run([five, look(1), done()])) == OK
    told = ["have made this call" in c for c in contents(run.messages(1), "tool")]
    assert told == [False, False, True, True, True]


@pytest.mark.parametrize("after", [1, 5])
def test_going_on_after_the_nudge_is_stuck(tmp_path: Path, after: int) -> None:
    run = project(tmp_path, step("a"))
    same = ("Bash", {"command": "echo noop"})
    assert ended(run.run([calls(*[same] * 5), calls(*[same] * after)])) == ("stuck", 3)


def test_a_nudge_about_one_call_is_none_about_another(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    assert ended(run.run([*(calls(*[("Glob", {"pattern": f"{n}*"})] * 5) for n in range(6)), done()])) == OK


def test_the_counter_in_a_command_is_no_difference(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    assert ended(run.run([call("Bash", command=f"true # attempt {n}") for n in range(5)])) == ("stuck", 3)


POLL = "sleep 0; cat state"


@pytest.mark.parametrize("rule", ["Bash(cat state*)", "Bash", "*"])
def test_a_poll_that_the_plan_allows_is_never_stuck(tmp_path: Path, rule: str) -> None:
    run = project(tmp_path, step("a"), polling=[rule])
    (tmp_path / "state").write_text("pending")
    poll, pause = call("Bash", command=POLL), call("Glob", pattern="*")
    assert ended(run.run([*[poll] * 9, *[poll, pause] * 7, done()])) == OK
    assert "same result" not in str(run.messages())


def test_turns_and_other_calls_are_still_limited(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), polling=["Bash(cat state*)"], limits={"turns": 8})
    assert ended(run.run([call("Bash", command=POLL)] * 8)) == ("turn_limit", 3)
    run = project(tmp_path / "other", step("a"), polling=["Bash(cat state*)"])
    assert ended(run.run([call("Bash", command="cat other")] * 5)) == ("stuck", 3)


def test_stuck_is_an_attempt_that_may_be_tried_again(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", retry={"attempts": 2}))
    assert ended(run.run([*[call("Ls")] * 5, done()])) == OK


def test_stuck_is_resumable(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.run([call("Ls")] * 5)
    result = run.resume([call("Ls"), done()])
    assert (ended(result), result.state.steps[0].attempt) == (OK, 2)


def test_a_cost_limit_that_cannot_hold_is_said_at_once(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), limits={"cost_usd": 1})
    assert ended(run.run([done()])) == OK
    notices = [r["text"] for r in run.records() if r["type"] == "note" and r["kind"] == "notice"]
    assert notices == [
        "the cost limit does not hold for scripted: no price is known; give inputPrice and outputPrice in modelOverrides"
    ]


@pytest.mark.parametrize("where", ["plan", "settings"])
def test_a_rule_that_names_no_tool_is_refused_before_there_is_a_log(tmp_path: Path, where: str) -> None:
    run = project(tmp_path, step("a"), polling=["Bsh(x)"] if where == "plan" else [])
    run.settings(permissions={"deny": ["Bsh(x)"] if where == "settings" else []})
    place = r"plan.yaml:1:\d+" if where == "plan" else r"settings.json:1:\d+: permissions.deny.0"
    with pytest.raises(PlanrunError, match=rf"{place}: .*did you mean Bash\(x\)"):
        run.run([])
    assert not run.log.exists()


def test_a_request_that_a_kill_cut_off_costs_what_is_estimated(tmp_path: Path) -> None:
    run = priced(tmp_path)
    with pytest.raises(Crash):
        run.run([look(1)], crash=(6, "before"))
    (sent,) = run.of("request")
    state = run.resume([done()]).state
    (answer,) = run.of("response")
    assert state.spend.cost_usd == pytest.approx(sent["tokens"] * 10 / 1e6 + answer["cost_usd"])
    assert state.spend.estimated and state.spend.requests == 2


def test_a_request_that_a_kill_cut_off_is_no_turn_without_its_answer(tmp_path: Path) -> None:
    for name, at, turns in (("lost", 6, 1), ("kept", 7, 2)):  # before the answer is on record, and after
        run = project(tmp_path / name, step("a"))
        with pytest.raises(Crash):
            run.run([look(1)], crash=(at, "before"))
        state = run.resume([done()]).state
        assert (state.turns, state.spend.requests) == (turns, 2), name
