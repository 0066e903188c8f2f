"""Hooks that may refuse, hooks that fail, and what becomes of the run."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from planrun.errors import ContextOverflow
from planrun.testing.model import call, calls, done
from tests.runner.driving import Yes, ask, contents, ended, last_result, project, statuses, step
from tests.runner.hooking import LATER, LONG, READS, TELL, hooked, records, sh, told

OK = ("finished", 0)


def test_a_gate_denies(tmp_path: Path) -> None:
    gate = "grep -q secret && { echo not that one >&2; exit 2; }; exit 0"
    run = hooked(tmp_path, hooks={"pre_tool_use": gate, "permission_denied": TELL, "post_tool_use": "echo ran >> post"})
    assert ended(run.run([sh("echo secret > out"), sh("echo fine > out"), done()])) == OK
    assert contents(run.messages(1), "tool") == ["Not allowed: a hook denied this call: not that one"]
    assert run.file("out") == "fine\n"
    assert [(r["status"], r.get("text", "")) for r in records(run, "pre_tool_use")] == [("denied", "not that one"), ("ok", "")]
    assert [t["reason"] for t in told(run)] == ["not that one"]
    assert run.file("post") == "ran\n"
    assert [r["call_id"] for r in run.of("tool_start")] == ["call_2"]
    assert [m["status"] for m in run.of("message") if m.get("tool_call_id") == "call_1"] == ["denied"]


def test_a_gate_denies_one_of_several_side_by_side(tmp_path: Path) -> None:
    run = hooked(tmp_path, hooks={"pre_tool_use": "! grep -q two || exit 2", "post_tool_use": TELL})
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text(name)
    wanted = calls(*(("Read", {"file_path": name}) for name in ("one", "two", "three")))
    assert ended(run.run([wanted, done()])) == OK
    first, second, third = contents(run.messages(1), "tool")
    assert ("one" in first, "three" in third) == (True, True)
    assert second.startswith("Not allowed: a hook denied this call: the hook `! grep")
    assert len(records(run, "pre_tool_use")) == 3
    assert [t["tool_input"]["file_path"] for t in told(run)] == ["one", "three"]


def test_the_first_denial_is_the_last_hook(tmp_path: Path) -> None:
    run = hooked(tmp_path, hooks={"pre_tool_use": ["exit 2", "touch second"]})
    assert ended(run.run([sh("true"), done()])) == OK
    assert not (tmp_path / "second").exists()


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("echo oh; exit 3", "error", "exited with 3: oh"),
        ("kill -9 $$", "error", "killed by signal 9"),
        ("no-such-command", "error", "exited with 127"),
        ("sleep 60", "timeout", "timeout of 0.2 s"),
    ],
)
@pytest.mark.parametrize("closed", [False, True])
def test_a_hook_that_fails(tmp_path: Path, command: str, status: str, words: str, closed: bool) -> None:
    hook = {"command": command, "timeout": 0.2 if status == "timeout" else 30, "failClosed": closed}
    run = hooked(tmp_path, hooks={"pre_tool_use": hook, "step_end": hook})
    assert ended(run.run([sh("touch out"), done()])) == OK
    assert (tmp_path / "out").exists() is not closed
    gate, other = run.of("hook")
    assert (gate["status"], other["status"]) == ("denied" if closed else status, status)
    assert words in gate["text"]
    assert words in other["text"]
    if closed:
        assert "failClosed" in last_result(run.messages(1))


def test_a_timeout_kills_the_whole_group(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    reader = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        command = "exec 9>held; echo up >&9; trap '' TERM; sleep 60 & sleep 60"
        run = hooked(tmp_path, hooks={"step_start": {"command": command, "timeout": 1.5}})
        assert ended(run.run([done()])) == OK
        assert os.read(reader, 100) == b"up\n"
        assert select.select([reader], [], [], 20)[0]
        assert os.read(reader, 100) == b""  # nobody holds the other end any more
    finally:
        os.close(reader)
    assert run.of("hook")[0]["status"] == "timeout"


def test_compaction_hooks_only_where_something_is_cut(tmp_path: Path) -> None:
    run = hooked(tmp_path, *LATER, hooks={"pre_compact": TELL, "post_compact": TELL})
    assert ended(run.run([call("Glob", pattern="none*"), done(), done()])) == OK
    assert (run.of("compaction"), run.of("hook")) == ([], [])


def test_a_denied_compaction_is_put_off(tmp_path: Path) -> None:
    gate = 'test "$PLANRUN_STEP" != b || { echo not yet >&2; exit 2; }'
    hooks = {"pre_compact": gate, "post_compact": "true", "step_start": "true"}
    run = hooked(tmp_path, *LATER, step("c"), hooks=hooks, goal=LONG)
    assert ended(run.run([READS, done(), done(), done()])) == OK
    assert [(r["event"], r["status"]) for r in run.of("hook")] == [
        ("step_start", "ok"), ("pre_compact", "denied"), ("step_start", "ok"),
        ("pre_compact", "ok"), ("post_compact", "ok"), ("step_start", "ok"),
    ]  # fmt: skip
    (record,) = run.of("compaction")
    assert record["boundary"] == "c"
    assert [(n["step"], "not yet" in n["text"]) for n in run.of("note") if n["kind"] == "deferred"] == [("b", True)]
    assert LONG in contents(run.messages(2), "tool")[0]
    assert "elided" in contents(run.messages(3), "tool")[0]


def test_a_compaction_inside_a_step_is_put_off_until_it_cannot_wait(tmp_path: Path) -> None:
    gate = {"command": "cat >> told; echo no >&2; exit 2"}
    run = hooked(tmp_path, hooks={"pre_compact": gate, "post_compact": TELL})
    (tmp_path / "big").write_text("word " * 1_000)
    reads = [call("Read", file_path="big", limit=i) for i in range(1, 5)]
    result = run.run([*reads, ContextOverflow("too long"), done()], ask(flags={"window": 6_000}))
    assert (ended(result), statuses(result)) == (OK, ["done"])
    assert {t["trigger"] for t in told(run)} == {"budget", "overflow"}
    deferred = [n["seq"] for n in run.of("note") if n["kind"] == "deferred"]
    assert deferred
    (record,) = run.of("compaction")
    assert (record["trigger"], record["seq"] > deferred[-1]) == ("overflow", True)
    assert any("cannot wait" in n["text"] for n in run.of("note"))
    assert told(run)[-1].items() >= {"event": "post_compact", "compact_tokens": record["tokens_after"], "step": "a"}.items()


def test_a_denied_summary_costs_nothing(tmp_path: Path) -> None:
    run = hooked(tmp_path, *LATER, hooks={"pre_compact": "cat >> told; exit 2"}, context="summary")
    (tmp_path / "big").write_text("word " * 1_000)
    assert ended(run.run([call("Read", file_path="big"), done(), done()])) == OK
    assert [(t["strategy"], t["trigger"]) for t in told(run)] == [("summary", "boundary")]
    assert (run.of("compaction"), [r.get("purpose", "step") for r in run.of("request")]) == ([], ["step"] * 3)


def test_a_human_who_says_no(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.settings(hooks={"permission_denied": TELL, "pre_tool_use": TELL}, permissions={"ask": ["Bash(touch *)"]})
    run.human = Yes(answer=False)
    assert ended(run.run([sh("touch out"), done()])) == OK
    assert [t["event"] for t in told(run)] == ["permission_denied"]


def test_a_signal_ends_a_hook_and_the_run_still_has_its_end(tmp_path: Path) -> None:
    run = hooked(
        tmp_path, hooks={"pre_tool_use": {"command": "kill -TERM $PPID; sleep 60", "timeout": 60}, "session_end": TELL}
    )
    result = run.run([sh("touch out")])
    assert ended(result) == ("interrupted", 128 + signal.SIGTERM)
    assert [t["outcome"] for t in told(run)] == ["interrupted"]
    assert not (tmp_path / "out").exists()
    run.settings()
    assert ended(run.resume([done()])) == OK
    assert (tmp_path / "out").exists()
