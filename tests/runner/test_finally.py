"""What stands under `finally` when something stops the run: commands run, models are not asked, and the run goes on from where it was."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planrun.api import read_plan
from planrun.core import budget
from planrun.core.actions import End
from planrun.core.decide import decide
from planrun.core.events import CallEnded, CallStarted
from planrun.core.fold import apply, fold
from planrun.core.state import State
from planrun.errors import ConfigError, Outcome, PlanrunError, ProviderError
from planrun.models.base import Reply, Usage
from planrun.session.store import records
from planrun.testing.crash import MOMENTS, Crash, Moment
from planrun.testing.model import call, done, say
from tests.runner.driving import Project, again, ask, contents, ended, project, reason, shell, statuses, step

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
        ({"time": "1"}, "time_limit"),
    ],
)
def test_a_limit_stops_the_steps_and_not_the_commands_under_finally(tmp_path: Path, limits: Any, outcome: str) -> None:
    run = limited(tmp_path, step("a"), step("b"), **limits)
    result = run.run([used(call("Bash", command="sleep 1.1"), 2_000)])
    assert ended(result) == (outcome, 3)
    assert statuses(result) == ["in_progress", "todo", "done", "todo", "done"]
    assert tidied(run) == "xy"
    (stop,) = run.of("stop")
    assert (stop["outcome"], stop["reason"]) == (outcome, reason(result))


def test_a_context_that_does_not_fit(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", "word " * 9_000), window=8_192, **{"finally": TIDY})
    assert (ended(run.run([])), tidied(run), run.requests) == (("context", 3), "xy", [])


def test_a_command_that_the_time_limit_cuts_off(tmp_path: Path) -> None:
    run = limited(tmp_path, shell("a", "sleep 30"), time="1")
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


def test_a_command_whose_end_is_on_record_is_not_run_again_before_there_is_more_work(tmp_path: Path) -> None:
    final = [shell("x", "echo x >> tidied"), shell("y", "echo y >> tidied", verify="true")]
    whole = project(tmp_path / "whole", step("a"), **{"finally": final})
    whole.run([ProviderError("down")])
    ends = [r["seq"] for r in whole.of("tool_end")]
    assert len(ends) == 3
    for at in ends:
        run = project(tmp_path / str(at), step("a"), **{"finally": final})
        with pytest.raises(Crash):
            run.run([ProviderError("down")], crash=(at, "after"))
        result = run.resume([ProviderError("down")])
        assert (ended(result), tidied(run), statuses(result)[1:]) == (("provider", 75), "xy", ["done"] * 2)
        assert [s.attempt for s in result.state.steps] == [1, 1, 1]
        assert (ended(run.resume([done()])), tidied(run)) == (OK, "xyxy")


# ---- other ends ----

TERM = f"kill -TERM {os.getpid()}; sleep 600"


def wired(folder: Path, *steps: Any, **more: Any) -> Project:
    return project(folder, *steps, **{"finally": TIDY}, **more)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (ProviderError("the endpoint is down", attempts=6), ("provider", 75)),
        (ConfigError("the endpoint refused the key"), ("config", 2)),
    ],
)
def test_an_endpoint_that_fails(tmp_path: Path, error: PlanrunError, end: tuple[str, int]) -> None:
    run = wired(tmp_path, shell("up", "touch up"), step("a"))
    result = run.run([error])
    assert (ended(result), reason(result), tidied(run)) == (end, str(error), "xy")
    assert statuses(result) == ["done", "in_progress", "done", "todo", "done"]
    assert (ended(run.resume([error])), tidied(run)) == (end, "xy"), "no work was done since"
    result = run.resume([done(), done()])
    assert (ended(result), statuses(result), tidied(run)) == (OK, ["done"] * 5, "xyxy")
    assert result.state.steps[1].attempt == 1


def test_what_waits_for_a_human_is_not_tidied_away(tmp_path: Path) -> None:
    run = wired(tmp_path, shell("up", "touch up"), shell("a", "test -e up", approve="before"))
    assert (ended(run.run([])), tidied(run)) == (("needs_human", 4), "")
    assert (ended(run.resume([done()], again(approve="all"))), tidied(run)) == (OK, "xy")


def test_where_it_was_asked_to_stop_nothing_is_tidied_away(tmp_path: Path) -> None:
    run = wired(tmp_path, shell("a", "true"), shell("b", "true"))
    assert (ended(run.run([], ask(until="a"))), tidied(run)) == (OK, "")
    assert (ended(run.resume([done()])), tidied(run)) == (OK, "xy")


def test_a_command_that_needs_an_approval_does_not_hold_up_the_end(tmp_path: Path) -> None:
    final = [shell("x", "echo x >> tidied", approve="before"), shell("y", "echo y >> tidied", approve="after")]
    run = project(tmp_path, step("a"), limits={"tokens": 10}, **{"finally": [*final, TIDY[0] | {"id": "z"}]})
    assert (ended(run.run([used(say("So."), 20)])), tidied(run)) == (BUDGET, "x")
    result = run.resume([done()], again(flags={"max_tokens": 90_000}, approve="all"))
    assert (ended(result), tidied(run)) == (OK, "xxyx")


# ---- signals: a first one ends what runs, then the commands under `finally` run ----

STOPPED = ("interrupted", 143)
INSIDE: dict[str, tuple[Any, list[Reply]]] = {
    "a command": (shell("a", f"test -e begun || {{ touch begun; {TERM}; }}"), []),
    "a tool": (step("a"), [call("Bash", command=f"echo begun >> begun; {TERM}"), done()]),
    "a check": (shell("a", "true", verify=f"test -e begun || {{ touch begun; {TERM}; }}"), []),
}


@pytest.mark.parametrize("where", INSIDE)
def test_a_signal_in(tmp_path: Path, where: str) -> None:
    work, replies = INSIDE[where]
    run = wired(tmp_path, work)
    result = run.run(replies[:1])
    assert (ended(result), reason(result), tidied(run)) == (STOPPED, "interrupted by SIGTERM", "xy")
    assert statuses(result) == ["in_progress", "done", "todo", "done"]
    result = run.resume([*replies[1:], done()])
    assert (ended(result), statuses(result), tidied(run)) == (OK, ["done"] * 4, "xyxy")
    assert result.state.steps[0].attempt == 1
    if where == "a tool":
        assert "interrupted" in contents(run.messages(0), "tool")[-1]
        assert run.file("begun") == "begun\n"


def test_a_signal_between_records(tmp_path: Path) -> None:
    def script(body: Any) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait()  # abandoned
        raise AssertionError

    run = wired(tmp_path, step("a"))
    assert (ended(run.run(script)), tidied(run)) == (("interrupted", 130), "xy")
    assert (ended(run.resume([done(), done()])), tidied(run)) == (OK, "xyxy")


def test_a_command_under_finally_that_a_signal_cuts_off_is_run_again(tmp_path: Path) -> None:
    cut = shell("x", f"echo x >> tidied; test -e begun || {{ touch begun; {TERM}; }}")
    run = project(tmp_path, shell("a", "true"), **{"finally": [cut, TIDY[2]]})
    result = run.run([])
    assert (ended(result), statuses(result), tidied(run)) == (STOPPED, ["done"] * 3, "xxy")
    result = run.resume([])
    assert (ended(result), tidied(run)) == (OK, "xxy"), "there was no work since"


def test_work_that_a_signal_cut_off_is_tidied_up_each_time(tmp_path: Path) -> None:
    run = wired(tmp_path, shell("a", f"echo up >> up; {TERM}"))
    for times in (1, 2, 3):
        assert ended(run.run([]) if times == 1 else run.resume([])) == STOPPED
        assert (run.file("up"), tidied(run)) == ("up\n" * times, "xy" * times)


def test_after_a_signal_time_is_short(tmp_path: Path) -> None:
    """The log of a real run, with another time at the end of a command: what is still due is left for the resume."""
    run = wired(tmp_path, shell("a", TERM))
    run.run([])
    found = list(records(run.log))
    began = next(r for r in found if isinstance(r.event, CallStarted) and r.event.call_id == "run:x:1")
    before = fold(found[: began.seq], State(), read_plan)
    left = budget.time_left(before, before.need_plan().step("x"), "command")
    assert left is not None and budget.GRACE - 10 < left <= budget.GRACE
    late = replace(found[began.seq], timestamp=before.timestamp + left)
    cut_off = CallEnded("run:x:1", "run", "interrupted", left, "x")
    assert decide(apply(before, replace(late, event=cut_off), read_plan)) == End(
        Outcome.INTERRUPTED, "interrupted by SIGTERM", exit_code=143
    )


def worked(folder: Path) -> Project:
    return wired(folder, step("a"))


SIGNALLED = [call("Bash", command=f"echo one >> work; {TERM}")]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_record_after_a_signal(tmp_path: Path, moment: Moment) -> None:
    whole = worked(tmp_path / "whole")
    assert ended(whole.run(SIGNALLED)) == STOPPED
    first = next(r["seq"] for r in whole.records() if r["type"] == "stop")
    for at in range(first, len(whole.records()) + 1):
        run = worked(tmp_path / str(at))
        with pytest.raises(Crash):
            run.run(SIGNALLED, crash=(at, moment))
        result = run.resume([done(), done()])
        assert (ended(result), statuses(result), run.file("work")) == (OK, ["done"] * 4, "one\n"), at
        assert "interrupted" in contents(run.messages(0), "tool")[-1], at
        assert tidied(run).endswith("xy"), at
