"""What a check decides: fix rounds, fresh attempts, exists, unchanged, and asking again before the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planrun.models.base import Reply
from planrun.testing.model import call, calls, done
from tests.runner.driving import Wire, contents, ended, last_result, project, reason, shell, statuses, step

OK, BROKEN = ("finished", 0), ("verify_failed", 1)


def sh(command: str) -> Reply:
    return call("Bash", command=command)


def test_done_counts_only_once_the_check_passes(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="test -e made", fix=2))
    result = run.run([done(), done(), sh("touch made"), done()])
    assert ended(result) == OK
    first, second = contents(run.messages(), "tool")[:2]
    assert "`test -e made` exited with 1; expected exit code 0" in first
    assert "up to 2 times" in first and "once more" in second
    assert result.state.steps[0].fixes == 2
    assert result.state.steps[0].attempt == 1


def test_fix_counts_rounds_of_one_attempt(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="echo no; false", fix=1))
    result = run.run([done(), done()])
    assert ended(result) == BROKEN
    assert "`echo no; false` exited with 1" in reason(result) and "no" in reason(result)
    assert len(run.requests) == 2


@pytest.mark.parametrize("rest", ["Read", "UpdatePlanStep"])
def test_nothing_runs_behind_the_claim_that_failed_for_good(tmp_path: Path, rest: str) -> None:
    run = project(tmp_path, step("a", verify="false"))
    result = run.run([calls(("UpdatePlanStep", {"status": "done"}), (rest, {"file_path": "x"} if rest == "Read" else {}))])
    assert ended(result) == BROKEN
    assert [m["content"] for m in run.of("message") if m["role"] == "tool"][1] == "Not run: step a had already ended."


def test_a_retry_starts_from_the_steps_starting_context_with_a_note(tmp_path: Path) -> None:
    run = project(
        tmp_path, step("one"), step("two", verify="test -e made", retry={"attempts": 2}, output={"w": "string"}), context="keep"
    )
    result = run.run([done(), sh("echo first try"), done(w="x"), sh("touch made"), done(w="y")])
    assert ended(result) == OK
    assert (result.state.steps[1].attempt, result.state.steps[1].output) == (2, {"w": "y"})
    start, fresh = run.messages(1), run.messages(3)
    assert fresh[:-1] == start[:-1]
    assert "first try" not in str(fresh)
    note = next(p for p in fresh[-1]["content"].split("\n\n") if p.startswith("The last attempt at this step failed:"))
    assert "`test -e made` exited with 1; expected exit code 0" in note
    assert fresh[-1]["content"].replace(f"{note}\n\n", "") == start[-1]["content"]


def test_attempts_are_the_number_of_all(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="false", retry={"attempts": 3}))
    result = run.run([done()] * 3)
    assert (ended(result), result.state.steps[0].attempt) == (BROKEN, 3)
    assert [r["attempt"] for r in run.of("step") if r["status"] == "in_progress"] == [1, 2, 3]


def test_fix_rounds_begin_anew_with_each_attempt(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="false", fix=1, retry={"attempts": 2}))
    assert ended(run.run([done()] * 4)) == BROKEN


def test_the_model_reads_head_and_tail_of_what_a_check_printed(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="echo FIRST; seq 1 20000; echo LAST >&2; test -e made", fix=1))
    assert ended(run.run([done(), calls(("Bash", {"command": "touch made"}), ("UpdatePlanStep", {"status": "done"}))])) == OK
    text = contents(run.messages(), "tool")[0]
    assert "FIRST\n1\n2\n" in text and "\n20000\nLAST\n" in text
    assert "\n10000\n" not in text and len(text) < 3_000


CHECKS: dict[str, tuple[Wire, str, str, str]] = {
    "run": ({"run": "test -e f"}, "true", "touch f", "exited with 1"),
    "run killed": ({"run": "test -e f || kill -9 $$"}, "true", "touch f", "signal 9"),
    "run too slow": ({"run": "test -e f || sleep 30", "timeout": "2"}, "true", "touch f", "was stopped after"),
    "exists": ({"exists": ["f", "g*"]}, "touch f", "touch gg", "matches g*, found none"),
    "exists deep": ({"exists": ["out/**/*.txt"]}, "mkdir -p out/x", "touch out/x/y.txt", "out/**/*.txt"),
    "exists is not outside": ({"exists": ["link"]}, "ln -s /etc/passwd link", "rm link; touch link", "link"),
    "changed": ({"unchanged": ["t/**"]}, "echo y > t/old", "echo x > t/old", "t/old changed"),
    "added": ({"unchanged": ["t/**"]}, "touch t/new", "rm t/new", "t/new added"),
    "removed": ({"unchanged": ["t/**"]}, "rm t/old", "echo x > t/old", "t/old removed"),
    "removed deep": ({"unchanged": ["**/*.py"]}, "rm -r t/deep", "mkdir t/deep; echo x > t/deep/m.py", "t/deep/m.py removed"),
    "renamed": ({"unchanged": ["t/**"]}, "mv t/old t/new", "mv t/new t/old", "t/new added, t/old removed"),
    "all of them": ({"unchanged": ["t/**"]}, "rm -r t", "mkdir -p t/deep; echo x > t/old; echo x > t/deep/m.py", "removed"),
    "braces": ({"unchanged": ["t/{old,new}"]}, "echo y > t/old", "echo x > t/old", "t/old changed"),
    "braces exist": ({"exists": ["{x,f}"]}, "true", "touch f", "matches {x,f}"),
    "an absolute path": ({"exists": ["/etc/passwd", "f"]}, "touch f", "mkdir etc; touch etc/passwd", "/etc/passwd"),
    "a folder": ({"unchanged": ["t"]}, "echo y > t/deep/m.py", "echo x > t/deep/m.py", "t/deep/m.py changed"),
    "a folder, slash": ({"unchanged": ["t/"]}, "echo y > t/old", "echo x > t/old", "t/old changed"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_each_kind_of_check(tmp_path: Path, name: str) -> None:
    check, spoil, mend, words = CHECKS[name]
    run = project(
        tmp_path, shell("old", "mkdir -p t/deep; echo x > t/old; echo x > t/deep/m.py"), step("a", verify=[check], fix=1)
    )
    assert ended(run.run([sh(spoil), done(), sh(mend), done()])) == OK
    refused = contents(run.messages(1 + 1), "tool")[-1]
    assert "its check failed" in refused
    assert words in refused


def test_each_check_looks_at_its_own_files_only(tmp_path: Path) -> None:
    checks: list[Any] = [{"unchanged": ["src/*.py"]}, {"unchanged": ["src/sub/*.py"]}]
    run = project(tmp_path, shell("old", "mkdir -p src/sub; touch src/a.py src/sub/b.py"), step("a", verify=checks))
    assert ended(run.run([done()])) == OK


def test_checks_run_in_order_up_to_the_first_that_fails(tmp_path: Path) -> None:
    verify: list[Any] = ["echo 1 >> ran", {"exists": ["nothing"]}, "echo 3 >> ran"]
    run = project(tmp_path, step("a", verify=verify))
    assert ended(run.run([done()])) == BROKEN
    assert run.file("ran") == "1\n"


def test_the_baseline_is_the_one_before_the_first_attempt(tmp_path: Path) -> None:
    run = project(tmp_path, shell("old", "echo x > f"), step("a", verify={"unchanged": ["f"]}, retry={"attempts": 2}))
    result = run.run([sh("echo y > f"), done(), done()])
    assert ended(result) == BROKEN
    assert "f changed" in reason(result)


def test_a_run_step_is_checked_too_and_tried_again(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "echo x >> n", verify="test $(wc -l < n) -eq 2", retry={"attempts": 2}))
    assert ended(run.run([])) == OK


def test_a_check_may_use_the_output_that_is_claimed(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"f": "string"}, verify="test -e ${{ steps.a.output.f }}", fix=1))
    assert ended(run.run([done(f="no such"), done(f="plan.yaml")])) == OK


LATER = [
    shell("a", "echo good > f", verify="grep -q good f"),
    shell("b", "true"),
    shell("c", "echo bad > f"),
    shell("d", "touch d"),
]


@pytest.mark.parametrize(
    ("recheck", "outcome", "states", "since"),
    [
        ("end", BROKEN, ["failed", "done", "done", "done"], "b, c, d"),
        ("each", BROKEN, ["failed", "done", "done", "todo"], "b, c"),
        ("off", OK, ["done"] * 4, ""),
    ],
)
def test_what_passed_and_fails_now_is_named_with_the_steps_since(
    tmp_path: Path, recheck: str, outcome: tuple[str, int], states: list[str], since: str
) -> None:
    run = project(tmp_path, *LATER, recheck=recheck)
    result = run.run([])
    assert (ended(result), statuses(result)) == (outcome, states)
    if since:
        assert "step a failed" in reason(result)
        assert f"Steps since: {since}." in reason(result)
        assert "`grep -q good f` exited with 1" in reason(result)


def test_end_is_the_default_and_a_resume_mends_it(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="grep -q good f"), step("b"))
    result = run.run([sh("echo good > f"), done(), sh("echo bad > f"), done()])
    assert (ended(result), statuses(result)) == (BROKEN, ["failed", "done"])
    mended = run.resume([sh("echo good > f"), done()])
    assert (ended(mended), statuses(mended)) == (OK, ["done", "done"])
    assert "Steps since: b" in last_user_note(run.messages(0))


def last_user_note(messages: list[Wire]) -> str:
    return next(p for p in contents(messages, "user")[-1].split("\n\n") if p.startswith("The last attempt"))


def test_unchanged_is_asked_again_at_the_end(tmp_path: Path) -> None:
    run = project(
        tmp_path, shell("old", "echo x > f"), shell("a", "true", verify={"unchanged": ["f"]}), shell("b", "echo y > f")
    )
    result = run.run([])
    assert ended(result) == BROKEN
    assert "f changed" in reason(result) and "Steps since: b" in reason(result)


def test_every_check_is_asked_exactly_once_more(tmp_path: Path) -> None:
    run = project(
        tmp_path, shell("a", "true", verify=["echo a1 >> n", "echo a2 >> n"]), shell("b", "true", verify="echo b1 >> n")
    )
    assert ended(run.run([])) == OK
    assert run.file("n").split() == ["a1", "a2", "b1", "a1", "a2", "b1"]


def test_skipped_and_failed_steps_are_not_asked_again(tmp_path: Path) -> None:
    run = project(
        tmp_path,
        shell("a", "true", verify="echo a >> n"),
        shell("s", "true", verify="echo s >> n", **{"if": "1 > 2"}),
        shell("f", "false", verify="echo f >> n", on_failure="continue"),
    )
    assert ended(run.run([])) == OK
    assert run.file("n").split() == ["a", "a"]


def test_a_check_cut_off_by_the_time_limit_is_no_failure_of_the_work(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="sleep 5"), limits={"time": "2"})
    both = calls(("Bash", {"command": "sleep 5"}), ("UpdatePlanStep", {"status": "done"}))
    result = run.run([both])
    assert (ended(result), statuses(result)) == (("time_limit", 3), ["in_progress"])


def test_last_result_is_the_checks(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="false", fix=1))
    run.run([done(), done()])
    assert "exited with 1" in last_result(run.messages())


def test_files_that_no_check_breaks_on(tmp_path: Path) -> None:
    """Links to themselves, pipes, trees deeper than recursion goes, planrun's own folder."""
    hostile = "ln -s loop loop; mkfifo pipe; mkdir -p $(printf 'd/%.0s' $(seq 1100)); echo x > f"
    checks = [{"exists": ["f", "**/f"]}, {"unchanged": ["**", "loop", "pipe", "d/"]}]
    run = project(
        tmp_path,
        shell("a", hostile),
        shell("b", "true", verify=checks),
        shell("c", "touch new", verify=checks[1:]),
        **{"finally": [shell("z", "rm -r d")]},  # no other way of removing it is as patient
    )
    result = run.run([])
    assert statuses(result) == ["done", "done", "failed", "done"]
    assert "new added" in reason(result)


@pytest.mark.parametrize("path", ["loop", "pipe", "gone", "outside"])
def test_a_file_output_that_is_none(tmp_path: Path, path: str) -> None:
    run = project(
        tmp_path,
        shell("a", "ln -s loop loop; mkfifo pipe; ln -s /etc/passwd outside", output={"v": {"type": "file", "path": path}}),
    )
    result = run.run([])
    assert f"expected the file {path} (output v), found none" in reason(result)


@pytest.mark.parametrize("kind", ["run", "verify"])
def test_a_command_that_cannot_start_fails_its_step(tmp_path: Path, kind: str) -> None:
    long = {"LONG": "x" * 200_000}
    steps = [shell("a", "true", env=long)] if kind == "run" else [step("a", verify="true", env=long)]
    result = project(tmp_path, *steps, shell("b", "touch never", on_failure="continue")).run([done()])
    assert statuses(result) == ["failed", "todo"]
    assert "could not be run: it is too long for the system" in reason(result)
