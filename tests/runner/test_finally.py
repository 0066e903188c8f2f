"""What stands under `finally` when a limit stops the run: commands run, models are not asked, and the run goes on from where it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planrun.models.base import Reply, Usage
from planrun.testing.crash import MOMENTS, Crash, Moment
from planrun.testing.model import call, done, say
from tests.runner.driving import Project, again, ended, project, reason, shell, statuses, step

OK, BUDGET = ("finished", 0), ("budget", 3)
TIDY = [shell("x", "echo x >> tidied"), step("told", "Write it up."), shell("y", "echo y >> tidied")]


def used(reply: Reply, prompt: int) -> Reply:
    return replace(reply, usage=Usage(prompt, 0, 0))


def limited(folder: Path, *steps: Any, **limits: Any) -> Project:
    run = project(folder, *steps, limits=limits, **{"finally": TIDY})
    run.settings(modelOverrides={"scripted": {"inputPrice": 10, "outputPrice": 100}})
    return run


def tidied(run: Project) -> str:
    path = run.folder / "tidied"
    return path.read_text().replace("\n", "") if path.exists() else ""


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"tokens": 1_000}, "budget"),
        ({"cost_usd": 0.01}, "budget"),
        ({"turns": 1}, "turn_limit"),
        ({"time": "0.2"}, "time_limit"),
    ],
)
def test_a_limit_stops_the_steps_and_not_the_commands_under_finally(tmp_path: Path, limits: Any, outcome: str) -> None:
    run = limited(tmp_path, step("a"), step("b"), **limits)
    result = run.run([used(call("Bash", command="sleep 0.3"), 2_000)])
    assert ended(result) == (outcome, 3)
    assert statuses(result) == ["in_progress", "todo", "done", "todo", "done"]
    assert tidied(run) == "xy"
    (stop,) = run.of("stop")
    assert (stop["outcome"], stop["reason"]) == (outcome, reason(result))


def test_a_context_that_does_not_fit(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", "word " * 9_000), window=8_192, **{"finally": TIDY})
    assert (ended(run.run([])), tidied(run), run.requests) == (("context", 3), "xy", [])


def test_a_command_that_the_time_limit_cuts_off(tmp_path: Path) -> None:
    run = limited(tmp_path, shell("a", "sleep 30"), time="0.2")
    result = run.run([])
    assert (ended(result), tidied(run)) == (("time_limit", 3), "xy")
    assert statuses(result)[0] == "in_progress"


def test_nothing_runs_twice_for_one_stop(tmp_path: Path) -> None:
    run = limited(tmp_path, step("a"), tokens=1_000)
    run.run([used(call("Ls"), 2_000)])
    assert (ended(run.resume([])), tidied(run), run.requests) == (BUDGET, "xy", [])


def test_a_raised_limit_goes_on_where_the_run_was(tmp_path: Path) -> None:
    turns = [used(call("Ls", path="."), 2_000), used(done(), 10), done()]
    (tmp_path / "whole").mkdir()
    whole = project(tmp_path / "whole", step("a"), **{"finally": TIDY})
    assert ended(whole.run(turns)) == OK
    run = limited(tmp_path / "cut", step("a"), tokens=1_000)
    run.run(turns[:1])
    result = run.resume(turns[1:], again(flags={"max_tokens": 9_000}))
    assert (ended(result), tidied(run)) == (OK, "xyxy")
    assert run.messages(0)[:3] == whole.messages(1)[:3]
    assert result.state.steps[0].attempt == 1


def test_a_command_under_finally_that_fails_changes_no_reason(tmp_path: Path) -> None:
    run = project(
        tmp_path, step("a"), limits={"tokens": 10}, **{"finally": [shell("x", "exit 7"), shell("y", "echo y >> tidied")]}
    )
    result = run.run([used(say("So."), 20)])
    assert (ended(result), statuses(result), tidied(run)) == (BUDGET, ["in_progress", "failed", "done"], "y")


def test_its_own_limits_hold(tmp_path: Path) -> None:
    final = [shell("x", "sleep 30", limits={"time": "0.1"}), shell("y", "sleep 30", timeout="0.1"), TIDY[0] | {"id": "z"}]
    run = project(tmp_path, step("a"), limits={"tokens": 10}, **{"finally": final})
    result = run.run([used(say("So."), 20)])
    assert (ended(result), statuses(result)) == (BUDGET, ["in_progress", "failed", "failed", "done"])


def test_a_limit_that_is_reached_under_finally(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), limits={"turns": 1}, **{"finally": [step("told"), TIDY[0]]})
    result = run.run([done()])
    assert (ended(result), statuses(result), tidied(run)) == (("turn_limit", 3), ["done", "in_progress", "done"], "x")
    result = run.resume([done()], again(flags={"max_turns": 9}))
    assert (ended(result), tidied(run)) == (OK, "x")


def test_stuck_is_a_failed_step_after_which_models_are_still_asked(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), **{"finally": TIDY})
    assert (ended(run.run([*[call("Ls")] * 5, done()])), tidied(run)) == (("stuck", 3), "xy")


def test_tidying_up_is_not_checked(tmp_path: Path) -> None:
    checked = shell("a", "touch built", verify="echo checked >> n; test -e built")
    run = project(tmp_path, checked, **{"finally": [shell("x", "rm built"), TIDY[0] | {"id": "z"}]})
    assert ended(run.run([])) == OK
    assert run.file("n") == "checked\n" * 2


def records_of(folder: Path) -> int:
    run = limited(folder, step("a"), tokens=1_000)
    run.run([used(call("Bash", command="echo one >> work"), 2_000)])
    return len(run.records())


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_record(tmp_path: Path, moment: Moment) -> None:
    last = records_of(tmp_path / "whole")
    for at in range(2, last + 1):
        run = limited(tmp_path / str(at), step("a"), tokens=1_000)
        one = used(call("Bash", command="echo one >> work"), 2_000)
        with pytest.raises(Crash):
            run.run([one], crash=(at, moment))
        result = run.resume([one])
        assert ended(result) == BUDGET, at
        assert set(tidied(run)) == {"x", "y"} and len(tidied(run)) <= 3, (at, tidied(run))
        result = run.resume([done(), done()], again(flags={"max_tokens": 90_000}))
        assert (ended(result), statuses(result)) == (OK, ["done"] * 4), at
