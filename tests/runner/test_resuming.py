"""Going on: from a step, without one, again, with a changed plan; and what goes on counting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import PlanChanged, PlanInvalid, ProviderError, SessionBusy, UsageError
from planrun.session import log as logs
from planrun.testing.model import call, done, failed, say
from tests.runner.driving import Project, again, ask, contents, ended, project, reason, shell, statuses, step

OK, FAILED = ("finished", 0), ("step_failed", 1)


def three(folder: Path, **more: Any) -> Project:
    return project(folder, *(shell(n, f"echo {n} >> order") for n in "abc"), **more)


def order(run: Project) -> str:
    return "".join(run.file("order").split())


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    run = three(tmp_path)
    run.run([])
    assert ended(run.resume([])) == OK
    assert order(run) == "abc"


def test_a_failed_step_is_tried_again_and_nothing_is_skipped(tmp_path: Path) -> None:
    run = project(
        tmp_path, shell("a", "echo a >> order"), shell("b", "test -e go && echo b >> order"), shell("c", "echo c >> order")
    )
    assert ended(run.run([])) == FAILED
    assert ended(run.resume([])) == FAILED
    (tmp_path / "go").touch()
    result = run.resume([])
    assert (ended(result), order(run), result.state.steps[1].attempt) == (OK, "abc", 3)


def test_the_failed_steps_note_goes_along(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"))
    run.run([done(), failed("the disk was full")])
    assert ended(run.resume([done()])) == OK
    assert "The last attempt at this step failed: the disk was full" in contents(run.messages(), "user")[-1]
    assert len(contents(run.messages(), "user")) == 2


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"start_from": "b"}, "abcbc"), ({"rerun": "b"}, "abcb"), ({"start_from": "a"}, "abcabc"), ({"skip": ("b",)}, "abc"),
        ({"start_from": "b", "until": "b"}, "abcb"), ({"start_from": "b", "skip": ("c",)}, "abcb"), ({"rerun": "none"}, "abc"),
        ({"rerun": "stale"}, "abc"),
    ],
)  # fmt: skip
def test_what_is_run_again(tmp_path: Path, more: dict[str, Any], expected: str) -> None:
    run = three(tmp_path)
    run.run([])
    assert ended(run.resume([], again(**more))) == OK
    assert order(run) == expected


def test_skip_gets_past_a_step_that_fails(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "false"), shell("b", "touch b"))
    run.run([])
    result = run.resume([], again(skip=("a",)))
    assert (ended(result), statuses(result)) == (OK, ["skipped", "done"])
    assert result.state.steps[0].note == "skipped by hand"


def test_skip_a_step_that_is_under_way(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"), context="keep")
    run.run([call("Ls"), ProviderError("away")])
    result = run.resume([done()], again(skip=("a",)))
    assert (ended(result), statuses(result)) == (OK, ["skipped", "done"])
    assert [m["role"] for m in run.messages()] == ["system", "user"]
    assert run.messages()[1]["content"].startswith("Goal: p")


def test_a_step_run_again_starts_without_what_it_left(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"v": "string"}), step("b"), context="keep")
    run.run([call("Bash", command="echo first"), done(v="1"), done()])
    result = run.resume([done(v="2"), done()], again(start_from="a"))
    assert (ended(result), result.state.steps[0].output) == (OK, {"v": "2"})
    assert "first" not in str(run.messages())
    assert [m["role"] for m in run.messages(0)] == ["system", "user"]
    assert "last attempt" not in str(run.messages())


def test_what_unchanged_compares_with_is_taken_anew(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "date +%N > f"), shell("b", "true", verify={"unchanged": ["f"]}))
    assert ended(run.run([])) == OK
    assert ended(run.resume([], again(start_from="a"))) == OK


def test_unknown_steps_are_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    run = three(tmp_path)
    run.run([])
    before = run.log.read_bytes()
    for more in ({"start_from": "x"}, {"skip": ("x",)}, {"rerun": "x"}, {"until": "x"}):
        with pytest.raises(UsageError, match="no step 'x'"):
            run.resume([], again(**more))
    assert run.log.read_bytes() == before


# --- a changed plan ----------------------------------------------------------------------------------------------------


def changed(run: Project, *steps: dict[str, Any], **head: Any) -> None:
    run.rewrite(*steps, **head)


A, B, C = (shell(n, f"echo {n} >> order") for n in "abc")
B2 = shell("b", "echo B >> order")


def test_a_changed_plan_stops_with_exit_5_and_writes_nothing(tmp_path: Path) -> None:
    run = three(tmp_path)
    run.run([], ask(until="b"))
    changed(run, A, B2, C)
    before = run.log.read_bytes()
    with pytest.raises(PlanChanged, match="--rerun stale") as caught:
        run.resume([])
    assert caught.value.exit_code == 5
    assert run.log.read_bytes() == before


@pytest.mark.parametrize(
    ("rerun", "steps", "expected"),
    [
        ("none", (A, B2, C), "abc"),
        ("stale", (A, B2, C), "abBc"),
        ("stale", (A, B, shell("c", "echo C >> order")), "abC"),
        ("stale", (A, B, shell("n", "echo n >> order"), C), "abnc"),
        ("stale", (shell("n", "echo n >> order"), A, B, C), "abnabc"),
        ("stale", (A, C), "abc"),
        ("stale", (A,), "ab"),
        ("stale", (C, A), "abc"),
        ("a", (A, B2, C), "abac"),
    ],
)
def test_rerun(tmp_path: Path, rerun: str, steps: tuple[dict[str, Any], ...], expected: str) -> None:
    run = three(tmp_path)
    run.run([], ask(until="b"))
    changed(run, *steps)
    assert ended(run.resume([], again(rerun=rerun))) == OK
    assert order(run) == expected
    assert ended(run.resume([])) == OK if rerun != "none" else True


PROMPTS = (step("a", "Do A."), step("b", "Do B."), step("c", "Do C."))
EDITS: dict[str, tuple[dict[str, Any], ...]] = {
    "another text": (PROMPTS[0], step("b", "Do B well."), PROMPTS[2]),
    "one before": (step("n", "New."), *PROMPTS),
    "renamed": (PROMPTS[0], step("b2", "Do B."), PROMPTS[2]),
    "taken out": (PROMPTS[0], PROMPTS[2]),
    "taken out, the last": (PROMPTS[0],),
    "another order": (PROMPTS[1], PROMPTS[0], PROMPTS[2]),
}


@pytest.mark.parametrize("stop", ["under way", "failed", "asked"])
@pytest.mark.parametrize("edit", EDITS)
def test_a_plan_that_changed_under_a_step(tmp_path: Path, edit: str, stop: str) -> None:
    run = project(tmp_path, *PROMPTS, context="keep")
    run.settings(permissions={"ask": ["Bash(make*)"]})
    last = {
        "under way": [call("Ls"), ProviderError("away")],
        "failed": [call("Ls"), failed("no")],
        "asked": [call("Bash", command="make")],
    }
    run.run([done(), *last[stop]])
    changed(run, *EDITS[edit], context="keep")
    result = run.resume(lambda body: done(), again(rerun="stale"))
    assert ended(result) == OK
    assert statuses(result) == ["done"] * len(EDITS[edit])
    assert "make" not in str(run.requests)


def test_a_plan_file_that_is_broken_now(tmp_path: Path) -> None:
    run = three(tmp_path)
    run.run([], ask(until="a"))
    run.plan_path.write_text("steps: [")
    with pytest.raises((PlanChanged, PlanInvalid)):
        run.resume([])
    assert ended(run.resume([], again(rerun="none"))) == OK
    assert order(run) == "abc"


def test_a_plan_file_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    run = three(tmp_path)
    run.run([], ask(until="a"))
    run.plan_path.unlink()
    assert ended(run.resume([])) == OK
    assert order(run) == "abc"


def test_a_prompt_file_belongs_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("Do it.")
    run = project(tmp_path, {"id": "a", "prompt_file": "p.md"})
    run.run([ProviderError("away")])
    (tmp_path / "p.md").write_text("Do it well.")
    with pytest.raises(PlanChanged):
        run.resume([done()])
    assert ended(run.resume([done()], again(rerun="none"))) == OK
    assert "Do it." in str(run.messages())


# --- what goes on counting -----------------------------------------------------------------------------------------------


def test_turns_attempts_and_spend_go_on_counting(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", limits={"turns": 3}, retry={"attempts": 2}))
    run.run([call("Ls"), ProviderError("away", attempts=2)])
    run.resume([call("Glob", pattern="x"), ProviderError("away")])
    result = run.resume([call("Glob", pattern="y"), done()])
    assert ended(result) == OK
    assert (result.state.steps[0].attempt, result.state.turns, result.state.spend.requests) == (2, 4, 7)


def test_fix_rounds_go_on_counting(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="false", fix=1))
    run.run([done(), ProviderError("away")])
    assert ended(run.resume([done()])) == ("verify_failed", 1)


def test_reminders_go_on_counting(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.run([say("1"), say("2"), ProviderError("away")])
    result = run.resume([say("3"), say("4")])
    assert ended(result) == FAILED
    assert "3 reminders" in reason(result)


def test_repeats_go_on_counting(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.run([*[call("Ls")] * 4, ProviderError("away")])
    assert ended(run.resume([call("Ls")])) == ("stuck", 3)


def test_the_first_request_after_a_resume_is_the_one_that_was_due(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"v": "string"}), step("b"))
    run.run([call("Bash", command="seq 1 300"), done(v="x"), ProviderError("away")])
    due = run.requests[-1]
    assert ended(run.resume([done()])) == OK
    assert json.dumps(run.requests[0]) == json.dumps(due)


def test_a_second_writer_is_told_who_writes_and_writes_nothing(tmp_path: Path) -> None:
    run = three(tmp_path)
    run.run([])
    before = run.log.read_bytes()
    file = logs.open_locked(run.log)
    try:
        with pytest.raises(SessionBusy, match=r"pid \d+"):
            run.resume([])
    finally:
        file.close()
    assert run.log.read_bytes() == before


def test_a_session_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    run = three(tmp_path)
    run.run([])
    with pytest.raises(UsageError, match="planrun resume s"):
        run.run([])
