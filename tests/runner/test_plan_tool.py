"""UpdatePlanStep: the model proposes, the runner decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planrun.testing.model import call, calls, done
from tests.runner.driving import contents, ended, last_result, project, reason, statuses, step

OK = ("finished", 0)
OUTPUT = {"n": "integer", "word": {"type": "string", "max_length": 5, "required": False}}


def test_another_steps_id_is_an_error_that_changes_nothing(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"v": "string"}), step("b"))
    result = run.run(
        [
            done(v="1"),
            call("UpdatePlanStep", step_id="a", status="done", output={"v": "999"}),
            call("UpdatePlanStep", step_id="a", status="failed", note="undo it"),
            call("UpdatePlanStep", step_id="zzz", status="done"),
            call("UpdatePlanStep", step_id="b", status="done"),
        ]
    )
    assert ended(result) == OK
    assert result.state.steps[0].output == {"v": "1"}
    one, two, three = contents(run.messages(), "tool")[-3:]
    assert one == two == 'The current step is b, not "a". Nothing changed. Work on b only.'
    assert 'there is no step "zzz"' in three
    assert [(r["step"], r["status"]) for r in run.of("step")] == [
        ("a", "in_progress"), ("a", "done"), ("b", "in_progress"), ("b", "done")]  # fmt: skip


INVALID: dict[str, tuple[dict[str, Any], list[str]]] = {
    "missing": ({"status": "done", "output": {}}, ["n: missing", "integer"]),
    "no output at all": ({"status": "done"}, ["n: missing"]),
    "wrong type": ({"status": "done", "output": {"n": "many"}}, ["n", "integer", "many"]),
    "a float": ({"status": "done", "output": {"n": 1.5}}, ["n", "integer"]),
    "too long": ({"status": "done", "output": {"n": 1, "word": "sixsix"}}, ["word", "5"]),
    "unknown field": ({"status": "done", "output": {"n": 1, "wrd": "x"}}, ["wrd", "did you mean word"]),
    "not an object": ({"status": "done", "output": [1]}, ["object"]),
    "beside output": ({"status": "done", "n": 1}, ["inside output"]),
    "no status": ({"output": {"n": 1}}, ["status", "done"]),
    "odd status": ({"status": "finished", "output": {"n": 1}}, ['"finished"']),
    "unknown argument": ({"status": "done", "output": {"n": 1}, "why": "x"}, ["why"]),
    "too large": ({"status": "done", "output": {"n": 1, "word": "x" * 70_000}}, ["word"]),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_claim_is_refused_with_a_text_that_helps(tmp_path: Path, name: str) -> None:
    arguments, words = INVALID[name]
    run = project(tmp_path, step("a", output=OUTPUT))
    result = run.run([call("UpdatePlanStep", **arguments), done(n=2)])
    assert ended(result) == OK
    assert result.state.steps[0].output == {"n": 2}
    text = last_result(run.messages())
    assert all(word in text for word in words), text
    assert len(text) < 1_000


def test_an_output_over_64_kib_is_refused_at_once_with_the_limit(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"text": "string"}), step("b"))
    result = run.run([done(text="0123456789" * 300_000), done(text="short"), done()])
    assert ended(result) == OK
    refused = contents(run.messages(1), "tool")[0]
    assert "65,536" in refused and len(refused) < 1_000
    assert len(str(run.messages(2))) < 20_000, "the next step pays for what was refused"


def test_an_empty_text_is_a_value(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"t": "string"}), step("b", "Use [${{ steps.a.output.t }}]."))
    assert ended(run.run([done(t=""), done()])) == OK
    assert "Use []." in contents(run.messages(), "user")[-1]


def test_the_same_invalid_output_again_and_again_ends_as_output_invalid(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"n": "integer"}))
    result = run.run([done(n="x")] * 5)
    assert ended(result) == ("output_invalid", 1)


def test_calls_before_the_plan_call_run_and_those_after_it_are_answered(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"))
    three = calls(
        ("Bash", {"command": "touch before"}), ("UpdatePlanStep", {"status": "done"}), ("Bash", {"command": "touch after"})
    )
    assert ended(run.run([three, done()])) == OK
    assert ((tmp_path / "before").exists(), (tmp_path / "after").exists()) == (True, False)
    assert contents(run.messages(), "tool")[1:] == ["Accepted.", "Not run: step a had already ended."]


def test_a_refused_plan_call_does_not_stop_the_calls_behind_it(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"n": "integer"}))
    two = calls(("UpdatePlanStep", {"status": "done"}), ("Bash", {"command": "touch after"}))
    assert ended(run.run([two, done(n=1)])) == OK
    assert (tmp_path / "after").exists()


def test_the_first_plan_call_that_counts_decides(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"n": "integer"}))
    two = calls(
        ("UpdatePlanStep", {"status": "done", "output": {"n": 1}}), ("UpdatePlanStep", {"status": "failed", "note": "no"})
    )
    assert ended(run.run([two])) == OK


def test_a_plan_call_behind_a_refused_one_counts(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"))
    two = calls(
        ("UpdatePlanStep", {"step_id": "b", "status": "done"}), ("UpdatePlanStep", {"status": "failed", "note": "no way"})
    )
    result = run.run([two])
    assert reason(result) == "step a failed: no way"
    assert statuses(result) == ["failed", "todo"]


def test_done_with_a_note_keeps_the_note(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    result = run.run([call("UpdatePlanStep", status="done", note="two files")])
    assert result.state.steps[0].note == "two files"
    assert run.of("step")[-1]["note"] == "two files"


def test_failed_without_a_note_says_so(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    assert "gave no reason" in reason(run.run([call("UpdatePlanStep", status="failed")]))
