"""The order of steps: conditions, failures that do not stop, what runs at the end whatever happened, what a step sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planrun.testing.model import call, done, failed, say
from tests.runner.driving import again, ask, contents, ended, project, reason, shell, statuses, step

OK, FAILED = ("finished", 0), ("step_failed", 1)


def test_steps_run_in_the_order_of_the_file(tmp_path: Path) -> None:
    run = project(tmp_path, *(shell(n, f"echo {n} >> order") for n in "cab"))
    assert ended(run.run([])) == OK
    assert run.file("order").split() == ["c", "a", "b"]


def test_a_failure_stops_and_leaves_the_rest_todo(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "exit 7"), step("b"))
    result = run.run([])
    assert (ended(result), statuses(result), run.requests) == (FAILED, ["failed", "todo"], [])
    assert "`exit 7` exited with 7" in reason(result)


def test_on_failure_continue_goes_on_and_the_model_is_told(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", on_failure="continue"), step("b"))
    result = run.run([failed("no luck"), done()])
    assert (ended(result), statuses(result)) == (OK, ["failed", "done"])
    brief = contents(run.messages(), "user")[-1]
    assert "[!] a" in brief and "[>] b" in brief
    assert contents(run.messages(), "assistant")[-1] == "Step a is failed: no luck"


@pytest.mark.parametrize(
    ("condition", "states"),
    [
        ("steps.a.output.n > 5", ["done", "skipped", "done"]),
        ("steps.a.output.n == 5", ["done", "done", "done"]),
        ("params.go", ["done", "done", "done"]),
        ("not params.go", ["done", "skipped", "done"]),
        ("not params.go or steps.a.output.n < 6", ["done", "done", "done"]),
    ],
)
def test_if(tmp_path: Path, condition: str, states: list[str]) -> None:
    run = project(
        tmp_path,
        shell("a", "echo 5", output={"n": {"type": "integer", "from": "stdout"}}),
        shell("b", "touch ran", **{"if": condition}),
        shell("c", "true"),
        params={"go": {"type": "boolean", "default": True}},
    )
    result = run.run([])
    assert (ended(result), statuses(result)) == (OK, states)
    assert (tmp_path / "ran").exists() == (states[1] == "done")
    if states[1] == "skipped":
        assert condition in (result.state.steps[1].note or "")


SKIPPED: dict[str, Any] = {"id": "s", "run": "echo x", "output": {"v": "string"}, "if": "1 > 2"}
USES = {
    "prompt": step("b", "Use ${{ steps.s.output.v }}."),
    "run": shell("b", "echo ${{ steps.s.output.v }}"),
    "verify": shell("b", "true", verify="test -n ${{ steps.s.output.v }}"),
    "if": shell("b", "true", **{"if": "steps.s.output.v == 'x'"}),
    "env": shell("b", "echo $V", env={"V": "${{ steps.s.output.v }}"}),
    "env of a prompt": step("b", env={"V": "${{ steps.s.output.v }}"}),
}


@pytest.mark.parametrize("use", USES)
def test_a_skipped_output_that_is_needed_fails_with_step_and_field(tmp_path: Path, use: str) -> None:
    run = project(tmp_path, SKIPPED, USES[use])
    result = run.run([call("Bash", command="true"), done()])
    assert (ended(result), statuses(result)) == (("output_invalid", 1), ["skipped", "failed"])
    assert "steps.s.output.v" in reason(result)


@pytest.mark.parametrize("use", USES)
def test_default_stands_in_for_a_skipped_output(tmp_path: Path, use: str) -> None:
    text = json.dumps(USES[use]).replace("steps.s.output.v", "steps.s.output.v | default('z')")
    run = project(tmp_path, SKIPPED, json.loads(text))
    result = run.run([call("Bash", command="true"), done()])
    assert (ended(result), statuses(result)) == (OK, ["skipped", "skipped" if use == "if" else "done"])


def test_the_plans_output_needs_its_values_too(tmp_path: Path) -> None:
    run = project(tmp_path, SKIPPED, output={"o": "${{ steps.s.output.v }}"})
    result = run.run([])
    assert ended(result) == ("output_invalid", 1)
    assert "steps.s.output.v" in reason(result)


FINALLY = [shell("tidy", "echo tidy >> order"), shell("last", "echo last >> order")]


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        (shell("a", "true"), OK),
        (shell("a", "false"), FAILED),
        (shell("a", "true", output={"n": {"type": "integer", "from": "stdout"}}), ("output_invalid", 1)),
        (shell("a", "true", verify="false"), ("verify_failed", 1)),
    ],
)
def test_finally_runs_whatever_happened(tmp_path: Path, first: dict[str, Any], outcome: tuple[str, int]) -> None:
    run = project(tmp_path, first, **{"finally": FINALLY})
    result = run.run([])
    assert ended(result) == outcome
    assert run.file("order").split() == ["tidy", "last"]
    assert statuses(result)[1:] == ["done", "done"]


def test_finally_goes_on_behind_a_final_step_that_fails_and_the_first_failure_is_the_reason(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "exit 3"), **{"finally": [shell("x", "exit 4"), shell("y", "touch y")]})
    result = run.run([])
    assert "step a failed" in reason(result) and "exited with 3" in reason(result)
    assert (tmp_path / "y").exists()


def test_a_final_step_that_fails_is_a_failure(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "true"), **{"finally": [shell("x", "exit 4")]})
    result = run.run([])
    assert ended(result) == FAILED
    assert "step x failed" in reason(result)


def test_a_final_prompt_step_after_a_failed_one(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), **{"finally": [step("x", "Write what went wrong.")]})
    assert ended(run.run([failed("nope"), done()])) == FAILED
    assert "[!] a" in contents(run.messages(), "user")[-1]


def test_finally_after_a_failed_recheck(tmp_path: Path) -> None:
    run = project(
        tmp_path, shell("a", "touch f", verify="test -e f"), shell("b", "rm f"), **{"finally": [shell("x", "touch x")]}
    )
    assert ended(run.run([])) == ("verify_failed", 1)
    assert (tmp_path / "x").exists()


def test_finally_runs_again_when_a_resumed_run_ends(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "test -e go"), **{"finally": FINALLY[:1]})
    assert ended(run.run([])) == FAILED
    (tmp_path / "go").touch()
    assert ended(run.resume([])) == OK
    assert run.file("order").split() == ["tidy", "tidy"]


def test_until_stops_behind_the_step_and_a_resume_goes_on(tmp_path: Path) -> None:
    run = project(tmp_path, *(shell(n, f"echo {n} >> order") for n in "abc"), **{"finally": FINALLY[:1]})
    result = run.run([], ask(until="b"))
    assert (ended(result), statuses(result)) == (OK, ["done", "done", "todo", "todo"])
    assert "--until" in reason(result)
    assert ended(run.resume([])) == OK
    assert run.file("order").split() == ["a", "b", "c", "tidy"]


def test_until_the_last_step_is_all(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "true"), shell("b", "true"), output={"x": "y"})
    result = run.run([], ask(until="b"))
    assert result.state.ended is not None
    assert (result.state.ended.partial, result.state.ended.output) == (False, {"x": "y"})


def test_a_resume_may_stop_at_another_step(tmp_path: Path) -> None:
    run = project(tmp_path, *(shell(n, f"echo {n} >> order") for n in "abcd"))
    run.run([], ask(until="a"))
    run.resume([], again(until="c"))
    assert run.file("order").split() == ["a", "b", "c"]


def test_needs_chooses_whose_outputs_a_step_sees(tmp_path: Path) -> None:
    makers = [shell(n, f"echo value-{n}", output={"v": "string"}) for n in ("one", "two", "three")]
    run = project(tmp_path, *makers, step("all"), step("some", needs=["two"]), step("none", needs=[]), context="clear")
    assert ended(run.run([done(), done(), done()])) == OK
    seen = [[n for n in ("one", "two", "three") if f"value-{n}" in str(run.messages(i))] for i in range(3)]
    assert seen == [["one", "two", "three"], ["two"], []]


def test_what_a_command_printed_shows_in_the_next_step(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "echo hello; echo ouch >&2"), step("b"))
    assert ended(run.run([done()])) == OK
    assert 'a printed: "hello\\nouch"' in run.messages()[1]["content"]
    assert [m["role"] for m in run.messages()] == ["system", "user"]


def test_where_you_are(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", "Do A.", title="First", output={"n": "integer"}), step("b", "Do B."), goal="Reach it.")
    assert ended(run.run([done(n=3), done()])) == OK
    first, second = contents(run.messages(), "user")
    assert first.startswith("Goal: Reach it.\n\nPlan, step 1 of 2")
    assert "[>] a: First\n[ ] b" in first and "Step a:\nDo A." in first and "n" in first.split("UpdatePlanStep")[1]
    assert "Goal:" not in second
    assert "[x] a: First\n[>] b" in second and "a.n = 3" in second and "Step b:\nDo B." in second


@pytest.mark.parametrize(("given", "goal"), [({"goal": "G", "description": "D"}, "G"), ({"description": "D"}, "D"), ({}, "p")])
def test_the_goal_defaults_to_description_then_name(tmp_path: Path, given: dict[str, str], goal: str) -> None:
    run = project(tmp_path, step("a"), **given)
    run.run([done()])
    assert run.messages()[1]["content"].startswith(f"Goal: {goal}\n")


def test_optional_parameters_that_are_missing_stop_with_a_reason(tmp_path: Path) -> None:
    params = {"x": {"type": "string", "required": False}}
    for where in ("goal", "system"):
        run = project(tmp_path / where, step("a"), params=params, **{where: "With ${{ params.x }}."})
        result = run.run([done()])
        assert ended(result) == ("output_invalid", 1)
        assert "params.x" in reason(result)


def test_a_timeout_bounds_everything_of_an_attempt(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", timeout="0.3"))
    result = run.run([call("Bash", command="sleep 60")])
    assert ended(result) == FAILED
    assert "timeout of 0.3 s" in reason(result)
    assert result.state.steps[0].seconds < 25


def test_a_timeout_of_a_run_step(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "echo begun; sleep 30", timeout="0.3", retry={"attempts": 2}))
    result = run.run([])
    assert (ended(result), result.state.steps[0].attempt) == (FAILED, 2)


def test_a_timeout_is_told_to_the_next_attempt(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", timeout="4", retry={"attempts": 2}))
    assert ended(run.run([call("Bash", command="sleep 30"), done()])) == OK
    assert "longer than its timeout of 4 s" in run.messages()[1]["content"]


def test_words_alone_are_no_result(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"))
    assert ended(run.run([say("Step a is done."), done(), done()])) == OK
