"""What a turn may come to: text, nothing, a refusal, calls that cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from planrun.core.messages import Message, ToolCall
from planrun.errors import ProviderError
from planrun.models.base import Reply
from planrun.testing.model import call, calls, done, failed, refuse, say
from tests.runner.driving import contents, ended, last_result, project, reason, statuses, step

OK = ("finished", 0)
FAILED = ("step_failed", 1)
EMPTY = Reply(None, "stop")


def test_three_reminders_each_more_pointed_then_the_attempt_fails(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"n": "integer"}))
    result = run.run([say("Let me think."), say("Hm."), say("Well."), say("So.")])
    assert ended(result) == FAILED
    assert len(run.requests) == 4
    first, second, third = contents(run.messages(), "user")[1:]
    assert "calling a tool" in first
    assert "You called no tool" in second and '"n"' in second
    assert "Last chance" in third and '"n"' in third and "failed" in third
    assert len(first) < len(second) < len(third)
    assert "3 reminders" in reason(result)
    assert contents(run.messages(), "assistant") == ["Let me think.", "Hm.", "Well."]


def test_a_tool_call_ends_the_count_of_reminders(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    talk = [say("One."), say("Two."), say("Three.")]
    assert ended(run.run([*talk, call("Ls"), *talk, done()])) == OK


def test_a_fresh_attempt_counts_from_nothing(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", retry={"attempts": 2}))
    assert ended(run.run([*[say("So.")] * 4, *[say("So.")] * 3, done()])) == OK
    assert run.messages(4)[1:] == run.messages(5)[1:2]
    assert "3 reminders" in run.messages(4)[1]["content"]


def test_an_empty_answer_is_asked_for_once_more_and_then_reminded_of(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    result = run.run([EMPTY] * 5)
    assert ended(result) == FAILED
    assert len(run.requests) == 5
    assert run.requests[1] == run.requests[0]
    assert [m["role"] for m in run.messages(2)] == ["system", "user", "assistant", "user"]
    assert len(contents(run.messages(), "user")) == 4


def test_an_empty_answer_after_a_tool_result_keeps_roles_in_turn(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    assert ended(run.run([call("Ls"), EMPTY, EMPTY, done()])) == OK
    assert [m["role"] for m in run.messages(3)] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert run.requests[2] == run.requests[1]


@pytest.mark.parametrize("blank", [EMPTY, Reply(None, "tool_calls"), Reply(None, "length"), say("  \n ")])
def test_an_empty_answer_is_never_stored_and_never_done(tmp_path: Path, blank: Reply) -> None:
    run = project(tmp_path, step("a"))
    result = run.run([blank, done()])
    assert ended(result) == OK
    assert [m["origin"] for m in run.of("message")] == ["runner", "user", "model", "tool", "runner"]
    assert [r.get("empty", False) for r in run.of("response")] == [True, False]


def test_an_answer_between_empty_ones_gives_the_plain_retry_back(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    assert ended(run.run([EMPTY, call("Ls"), EMPTY, call("Ls"), EMPTY, done()])) == OK
    assert all("(no answer)" not in m for r in run.requests for m in map(str, r["messages"]))


def test_a_refusal_fails_the_step_with_its_text_and_is_not_tried_again(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", retry={"attempts": 3}))
    result = run.run([refuse("I cannot help with that.")])
    assert ended(result) == FAILED
    assert "I cannot help with that." in reason(result)
    assert (result.state.steps[0].attempt, len(run.requests)) == (1, 1)
    assert [m["origin"] for m in run.of("message")] == ["runner", "user", "runner"]


def test_fifty_turns_are_the_most_of_an_attempt(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    result = run.run([call("Glob", pattern=f"{i}*") for i in range(50)])
    assert ended(result) == ("turn_limit", 3)
    assert "50 turns" in reason(result)


def test_a_step_may_set_its_own_turns_and_a_retry_starts_anew(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", limits={"turns": 2}, retry={"attempts": 2}))
    result = run.run([call("Ls"), call("Glob", pattern="x"), call("Ls"), done()])
    assert ended(result) == OK
    assert (result.state.steps[0].attempt, result.state.steps[0].total_turns) == (2, 4)
    assert "no result after 2 turns" in contents(run.messages(2), "user")[0]


def test_the_last_turn_may_be_the_one_that_ends_the_step(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", limits={"turns": 1}))
    assert ended(run.run([done()])) == OK


def test_a_failure_of_the_endpoint_is_no_turn_and_no_attempt(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", limits={"turns": 1}))
    stopped = run.run([ProviderError("busy", attempts=3)])
    assert ended(stopped) == ("provider", 75)
    assert (stopped.state.turns, statuses(stopped)) == (0, ["in_progress"])
    result = run.resume([done()])
    assert ended(result) == OK
    assert (result.state.steps[0].attempt, result.state.turns, result.state.spend.requests) == (1, 1, 4)


UNRUNNABLE = {
    "cut off": (ToolCall("w", "Write", '{"invalid":"{"}', "cut off by the output limit"), "cut off"),
    "not JSON": (ToolCall("w", "Write", '{"invalid":"{"}', "the arguments are not valid JSON"), "not valid JSON"),
    "unknown tool": (
        ToolCall("w", "execute_python", "{}"),
        "The tools of this step are: Read, Write, Edit, Glob, Grep, Ls, Bash, ",
    ),
    "missing argument": (ToolCall("w", "Write", '{"file_path":"x"}'), "content"),
    "wrong type": (ToolCall("w", "Write", '{"file_path":"x","content":5}'), "content"),
    "unknown argument": (ToolCall("w", "Write", '{"file_path":"x","content":"","mode":1}'), "mode"),
}


@pytest.mark.parametrize("name", UNRUNNABLE)
def test_a_call_that_cannot_run_is_answered_and_the_others_run(tmp_path: Path, name: str) -> None:
    bad, expected = UNRUNNABLE[name]
    run = project(tmp_path, step("a"))
    good = ToolCall("g", "Bash", '{"command":"touch ran"}')
    assert ended(run.run([Reply(Message("assistant", None, (bad, good)), "tool_calls"), done()])) == OK
    refused, ran = contents(run.messages(), "tool")
    assert expected in refused
    assert (ran, (tmp_path / "ran").exists(), (tmp_path / "x").exists()) == ("(no output)", True, False)
    assert [r["call_id"] for r in run.of("tool_start")] == ["g"]


def test_the_same_unrunnable_call_five_times_is_stuck(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    bad = Reply(Message("assistant", None, (ToolCall("", "Write", "{}", "not valid JSON"),)), "tool_calls")
    result = run.run([bad] * 5)
    assert ended(result) == ("stuck", 3)


def test_a_malformed_plan_call_changes_nothing(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    cut = ToolCall("u", "UpdatePlanStep", '{"invalid":"x"}', "cut off by the output limit")
    assert ended(run.run([Reply(Message("assistant", None, (cut,)), "length"), done()])) == OK
    assert last_result(run.messages()) == "cut off by the output limit. Nothing changed."


def test_call_ids_that_come_twice_or_not_at_all_are_made_unique(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), step("b"), context="keep")
    twice = Message("assistant", None, (ToolCall("same", "Ls", "{}"), ToolCall("same", "Glob", '{"pattern":"*"}')))
    same = Message("assistant", None, (ToolCall("same", "UpdatePlanStep", '{"status":"done"}'),))
    assert ended(run.run([Reply(twice), Reply(same), Reply(same)])) == OK


def test_text_beside_calls_is_kept(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    assert ended(run.run([calls(("Ls", {}), text="Looking."), done()])) == OK
    assert run.messages()[2]["content"] == "Looking."


def test_the_model_may_give_up_with_a_note(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", retry={"attempts": 2}), step("b"))
    result = run.run([failed("no such file"), failed("still none")])
    assert ended(result) == FAILED
    assert reason(result) == "step a failed: still none"
    assert statuses(result) == ["failed", "todo"]
    assert "The last attempt at this step failed: no such file" in run.messages()[1]["content"]
