"""Tool calls in a run: side by side, denied, asked for, cut off; what children get."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from planrun.core.events import Event
from planrun.core.records import Record
from planrun.models.base import Reply
from planrun.session.log import Log
from planrun.testing.crash import Crash
from planrun.testing.model import call, calls, done
from tests.runner.driving import (
    Project,
    Yes,
    again,
    ask,
    contents,
    ended,
    last_result,
    project,
    reason,
    shell,
    statuses,
    step,
)  # fmt: skip

OK, HUMAN = ("finished", 0), ("needs_human", 4)


def sh(command: str) -> Reply:
    return call("Bash", command=command)


def test_read_only_calls_of_one_message_answer_in_call_order(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    (tmp_path / "big.txt").write_text("x\n" * 200_000)
    wanted = [("Grep", {"pattern": "y", "path": "big.txt"}), ("Read", {"file_path": "plan.yaml"}), ("Ls", {})]
    assert ended(run.run([calls(*wanted), done()])) == OK
    kinds = [(r["type"], r.get("call_id") or r.get("tool_call_id")) for r in run.records() if r["type"] != "request"]
    ids = ["call_1", "call_2", "call_3"]
    starts = [k for k in kinds if k[0] == "tool_start"]
    assert starts == [("tool_start", i) for i in ids]
    results = [k for k in kinds if k[0] == "message" and k[1]]
    assert [i for _, i in results][:3] == ids
    assert kinds.index(("tool_start", "call_3")) < kinds.index(("message", "call_1"))


def test_a_call_with_effects_runs_alone(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    wanted = [
        ("Read", {"file_path": "n"}), ("Bash", {"command": "echo 1 > n"}), ("Read", {"file_path": "n"}),
        ("Write", {"file_path": "n", "content": "2"}), ("Read", {"file_path": "n"}),
    ]  # fmt: skip
    assert ended(run.run([calls(*wanted), done()])) == OK
    results = contents(run.messages(), "tool")
    assert ["1" in results[2], "2" in results[4]] == [True, True]
    order = [(r["type"], r["call_id"]) for r in run.records() if r["type"].startswith("tool_")]
    assert order[:6] == [(f"tool_{w}", f"call_{i}") for i in (1, 2, 3) for w in ("start", "end")]


def test_a_denied_call_is_answered_and_the_model_goes_on(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.settings(permissions={"deny": ["Bash(rm *)"]})
    (tmp_path / "keep").touch()
    assert ended(run.run([calls(("Bash", {"command": "rm keep"}), ("Ls", {})), done()])) == OK
    assert (tmp_path / "keep").exists()
    denied = contents(run.messages(), "tool")[0]
    assert denied.startswith("Not allowed: ") and "Bash(rm *)" in denied
    assert [r["call_id"] for r in run.of("tool_start")] == ["call_2"]


DENIED = ["git push origin main", "sudo true", "echo x > .thclaws/settings.json", "cd .thclaws && rm -r sessions"]


@pytest.mark.parametrize("command", DENIED)
def test_denied_by_default(tmp_path: Path, command: str) -> None:
    run = project(tmp_path, step("a"))
    assert ended(run.run([sh(command), done()])) == OK
    assert "denied by default" in last_result(run.messages()[:4])


def test_a_rule_allows_what_is_denied_by_default(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.settings(permissions={"allow": ["Bash(git push*)"]})
    assert ended(run.run([sh("git push nowhere"), done()])) == OK
    assert "denied" not in str(run.messages())


def test_a_step_narrows_what_is_offered_and_what_runs(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", tools=["Read"]), step("b"))
    assert ended(run.run([sh("touch x"), done(), done()])) == OK
    names = [[t["function"]["name"] for t in r["tools"]] for r in run.requests]
    assert names[0] == ["Read", "UpdatePlanStep"] and "Bash" in names[2]
    assert "The tools of this step are: Read, UpdatePlanStep." in str(run.messages(1))
    assert not (tmp_path / "x").exists()


def asking(folder: Path) -> Project:
    run = project(folder, step("a"), step("b"))
    run.settings(permissions={"ask": ["Bash(make *)"]})
    (folder / "Makefile").write_text("it:\n\techo made >> made\n")
    return run


def test_ask_with_nobody_there_ends_with_exit_4_naming_the_rule(tmp_path: Path) -> None:
    run = asking(tmp_path)
    result = run.run([calls(("Bash", {"command": "make it"}), ("Bash", {"command": "touch after"}))])
    assert (ended(result), statuses(result)) == (HUMAN, ["in_progress", "todo"])
    assert "Bash(make *)" in reason(result) and "make it" in reason(result) and "--approve" in reason(result)
    assert not (tmp_path / "made").exists() and not (tmp_path / "after").exists()
    assert ended(run.resume([])) == HUMAN
    assert ended(run.resume([done(), done()], again(approve="all"))) == OK
    assert run.file("made") == "made\n"
    assert (tmp_path / "after").exists()
    assert [r["decision"] for r in run.of("approval")] == ["asked", "approved"]


@pytest.mark.parametrize(("approve", "human", "outcome"), [
    ("all", None, OK), ("ask", Yes(), OK), ("ask", None, HUMAN), ("none", Yes(), HUMAN)])  # fmt: skip
def test_who_answers(tmp_path: Path, approve: str, human: Yes | None, outcome: tuple[str, int]) -> None:
    run = asking(tmp_path)
    run.human = human
    result = run.run([sh("make it"), done(), done()], ask(approve=approve))
    assert ended(result) == outcome
    assert (tmp_path / "made").exists() == (outcome == OK)


def test_a_no_is_read_by_the_model_and_holds_for_that_call_only(tmp_path: Path) -> None:
    run = asking(tmp_path)
    run.human = Yes(False)
    assert ended(run.run([sh("make it"), sh("make it"), done(), done()])) == OK
    assert len(run.human.asked) == 2
    assert contents(run.messages(), "tool")[0].startswith("Not allowed: a human denied")


def test_a_yes_holds_for_exactly_one_call(tmp_path: Path) -> None:
    run = asking(tmp_path)
    run.human = Yes()
    assert ended(run.run([sh("make it"), sh("make it"), sh("make -n it"), done(), done()])) == OK
    assert [q.split("Bash(")[1].split(")")[0] for q in run.human.asked] == ["make it", "make it", "make -n it"]


def test_a_question_of_a_step_that_is_skipped_is_not_put_any_more(tmp_path: Path) -> None:
    run = asking(tmp_path)
    run.run([sh("make it")])
    result = run.resume([done()], again(skip=("a",)))
    assert (ended(result), statuses(result)) == (OK, ["skipped", "done"])


def test_approve_before_and_after(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", approve="before"), step("b", approve="after", verify="touch checked"))
    stopped = run.run([])
    assert (ended(stopped), statuses(stopped)) == (HUMAN, ["todo", "todo"])
    assert "step a" in reason(stopped)
    run.human = Yes()
    result = run.resume([done(), done()])
    assert ended(result) == OK
    assert [q.split("?")[0] for q in run.human.asked] == ["Start step a", "Accept step b"]


def test_after_means_after_the_checks_and_needs_no_new_turn(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", approve="after", verify="touch checked", output={"n": "integer"}))
    stopped = run.run([done(n=1)])
    assert (ended(stopped), statuses(stopped)) == (HUMAN, ["in_progress"])
    assert (tmp_path / "checked").exists()
    result = run.resume([], again(approve="all"))
    assert (ended(result), result.state.steps[0].output, run.requests) == (OK, {"n": 1}, [])


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_not_approved_fails_and_is_asked_again_on_resume(tmp_path: Path, when: str) -> None:
    run = project(tmp_path, shell("a", "true", approve=when))
    run.human = Yes(False)
    result = run.run([])
    assert ended(result) == ("step_failed", 1)
    assert "not approved" in reason(result)
    run.human = Yes()
    assert ended(run.resume([])) == OK


# --- cut off ----------------------------------------------------------------------------------------------------------


def cut(run: Project, script: list[Reply], kind: str, number: int = 1) -> None:
    """Run until the log holds the `number`-th record of this type, and die there."""
    seen: list[int] = []

    class Dying:
        def __init__(self, log: Log) -> None:
            self.log = log

        def append(self, event: Event) -> Record:
            record = self.log.append(event)
            if event.type == kind:
                seen.append(record.seq)
                if len(seen) == number:
                    self.log.sync()
                    raise Crash
            return record

        def sync(self) -> None:
            self.log.sync()

    run.journal = Dying
    with pytest.raises(Crash):
        run.run(script)
    run.journal = None


def test_a_call_that_was_cut_off_is_reported_and_not_run_again(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    cut(run, [calls(("Bash", {"command": "touch x"}), ("Ls", {}))], "tool_start")
    assert ended(run.resume([done()])) == OK
    first, second = contents(run.messages(), "tool")
    assert "interrupted" in first and "may have taken effect" in first
    assert "plan.yaml" in second and not (tmp_path / "x").exists()


def test_a_read_only_call_that_was_cut_off_is_repeated(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    cut(run, [calls(("Ls", {}), ("Glob", {"pattern": "*.yaml"}))], "tool_start", 2)
    assert ended(run.resume([done()])) == OK
    assert ["plan.yaml" in c for c in contents(run.messages(), "tool")] == [True, True]


def test_a_result_on_record_is_never_made_again(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    cut(run, [sh("echo x >> n")], "tool_end")
    assert ended(run.resume([done()])) == OK
    assert run.file("n") == "x\n"
    cutoff = contents(run.messages(), "tool")[0]
    assert cutoff == "(no output)"


def test_the_cut_off_call_of_a_skipped_step_says_nothing_about_a_later_one(tmp_path: Path) -> None:
    """Some endpoints number calls from the start in each answer: the same id comes again."""
    run = project(tmp_path, step("a"), step("b"))
    cut(run, [sh("true")], "tool_start")
    assert ended(run.resume([sh("touch x"), done()], again(skip=("a",)))) == OK
    assert (tmp_path / "x").exists()


def test_a_command_of_the_plan_that_was_cut_off_runs_again_and_says_so(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "echo x >> n"))
    cut(run, [], "tool_start")
    assert ended(run.resume([])) == OK
    assert [r["kind"] for r in run.of("note")] == ["resumed", "rerun"]


# --- what is on disk before something happens ---------------------------------------------------------------------------


@dataclass
class Watching:
    """Stands before the log and remembers what was appended and when it was synced."""

    log: Log
    seen: list[str] = field(default_factory=list)

    def append(self, event: Event) -> Record:
        self.seen.append(event.type)
        return self.log.append(event)

    def sync(self) -> None:
        self.seen.append("sync")
        self.log.sync()


def watched(run: Project, script: Any) -> list[str]:
    made: list[Watching] = []

    def journal(log: Log) -> Watching:
        made.append(Watching(log))
        return made[0]

    run.journal = journal
    run.run(script)
    return made[0].seen


def test_intent_is_on_disk_before_the_effect(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", verify="true", output={"n": "integer"}), shell("b", "true"), context="compact")
    seen = watched(run, [sh("true"), done(n=1)])
    assert seen[:2] == ["session", "sync"]
    for at, kind in enumerate(seen):
        if kind == "tool_start":
            assert seen[at + 1] == "sync", seen
        if kind == "request":
            assert seen[at + 1] == "sync", seen
    assert set(seen[seen.index("end") + 1 :]) == {"sync"}


def test_an_effect_sees_the_intent_on_disk(tmp_path: Path) -> None:
    """The command itself reads the log: the record of its own intent is there."""
    run = project(tmp_path, step("a"), shell("b", "tail -n1 .thclaws/sessions/s.jsonl > seen-b"))
    assert ended(run.run([sh("tail -n1 .thclaws/sessions/s.jsonl > seen-a"), done()])) == OK
    assert '"type":"tool_start","call_id":"call_1","name":"Bash"' in run.file("seen-a")
    assert '"type":"tool_start","call_id":"run:b:1","name":"run"' in run.file("seen-b")


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    run = project(tmp_path, step("a"))
    run.run([calls(("Ls", {}), ("Ls", {"path": ".thclaws"})), done()])
    assert set(threading.enumerate()) <= before
