"""Hooks: each event runs its own, with all that it should know; nothing that a hook does or fails to do is silent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planrun.models.base import Reply
from planrun.settings_form import EVENTS
from planrun.testing.crash import MOMENTS, Crash, Moment
from planrun.testing.model import call, done, failed
from tests.runner.driving import Project, Wire, again, ask, ended, reason, shell, statuses, step
from tests.runner.hooking import LATER, LONG, READS, TELL, hooked, records, sh, told

OK = ("finished", 0)
EXPECTED: dict[str, tuple[list[Reply], tuple[Wire, ...], Wire]] = {
    "session_start": ([done()], (), {"resumed": False, "model": "scripted"}),
    "session_end": ([done()], (), {"outcome": "finished", "exit_code": 0, "step": None}),
    "step_start": ([done()], (), {"step": "a", "attempt": 1}),
    "step_end": ([done(n=3)], (step("a", output={"n": "integer"}),), {"status": "done", "output": {"n": 3}}),
    "pre_tool_use": ([sh("echo hi"), done()], (), {"tool_name": "Bash", "tool_input": {"command": "echo hi"}}),
    "post_tool_use": ([sh("echo hi"), done()], (), {"tool_output": "hi", "tool_status": "ok", "step": "a"}),
    "post_tool_use_failure": ([sh("echo no; exit 4"), done()], (), {"tool_error": "no\n[exit code 4]", "tool_status": "error"}),
    "permission_denied": ([sh("git push"), done()], (), {"tool_name": "Bash", "tool_input": {"command": "git push"}}),
    "pre_compact": ([READS, done(), done()], LATER, {"step": "b", "strategy": "compact", "trigger": "boundary"}),
    "post_compact": ([READS, done(), done()], LATER, {"step": "b", "strategy": "compact", "trigger": "boundary"}),
}


@pytest.mark.parametrize("event", EVENTS)
def test_each_event(tmp_path: Path, event: str) -> None:
    replies, steps, expected = EXPECTED[event]
    run = hooked(tmp_path, *steps, hooks={event: [TELL, "echo second"]}, goal=LONG)
    assert ended(run.run(replies)) == OK
    first = told(run)[0]
    assert first.items() >= {"event": event, "session_id": "s", "cwd": str(tmp_path), **expected}.items()
    ran = records(run, event)
    assert [(r["command"], r["status"], r.get("text", "")) for r in ran[:2]] == [
        (TELL, "ok", ""),
        ("echo second", "ok", "second"),
    ]
    assert all(r["seconds"] >= 0 for r in ran)
    assert len(run.of("hook")) == len(ran)


def test_where_their_records_stand(tmp_path: Path) -> None:
    run = hooked(tmp_path, *LATER, hooks=dict.fromkeys(EVENTS, "true"), goal=LONG)
    assert ended(run.run([READS, done(), done()])) == OK
    rows = [r["event"] if r["type"] == "hook" else f"({r['type']} {r.get('status', '')})" for r in run.records()]
    told = [r for r in rows if r.split()[0] not in ("(message", "(request", "(response")]
    assert told == [
        "(session )", "session_start", "(step in_progress)", "step_start",
        "pre_tool_use", "(tool_start )", "(tool_end ok)", "post_tool_use", "(step done)", "step_end",
        "pre_compact", "(compaction )", "post_compact", "(step in_progress)", "step_start", "(step done)", "step_end",
        "session_end", "(end )",
    ]  # fmt: skip


def test_the_environment(tmp_path: Path) -> None:
    run = hooked(tmp_path, step("a"), hooks={"post_tool_use_failure": "env | sort > env"}, secrets=["DEPLOY_TOKEN"])
    run.environ |= {
        "OPENAI_API_KEY": "sk-of-the-endpoint",
        "DEPLOY_TOKEN": "declared-value",
        "OTHER_TOKEN": "undeclared",
        "THCLAWS_TOOL_OUTPUT": "stale",
        "THCLAWS_COMPACT_TOKENS": "stale",
        "PLANRUN_SOMETHING": "stale",
        "LANG": "C.UTF-8",
    }
    assert ended(run.run([call("Bash", cmd="exit 4"), done()])) == OK
    rows = run.file("env").splitlines()
    ours = [r for r in rows if r.startswith(("PLANRUN_", "THCLAWS_"))]
    both = ["MODEL=scripted", "SESSION_ID=s", 'TOOL_INPUT={"command":"exit 4"}', "TOOL_NAME=Bash"]
    for name in ("PLANRUN", "THCLAWS"):
        assert [f"{name}_{row}" for row in both] == [r for r in ours if r in {f"{name}_{row}" for row in both}]
        assert f"{name}_TOOL_ERROR=(no output)" in ours
    assert {"PLANRUN_EVENT=post_tool_use_failure", "PLANRUN_STEP=a", "THCLAWS_HOOK_EVENT=post_tool_use_failure"} <= set(ours)
    assert {"DEPLOY_TOKEN=declared-value", "LANG=C.UTF-8"} <= set(rows)
    assert not [r for r in rows if "sk-of-the-endpoint" in r or "undeclared" in r or "stale" in r]


def test_the_environment_of_a_compaction(tmp_path: Path) -> None:
    write = 'echo "$THCLAWS_COMPACT_MESSAGES $PLANRUN_COMPACT_TOKENS" >> sizes'
    run = hooked(tmp_path, *LATER, hooks={"pre_compact": write, "post_compact": write}, goal=LONG)
    assert ended(run.run([READS, done(), done()])) == OK
    (record,) = run.of("compaction")
    assert run.file("sizes").splitlines() == [f"{record[f'messages_{w}']} {record[f'tokens_{w}']}" for w in ("before", "after")]
    assert record["tokens_after"] < record["tokens_before"]


def test_stdin_has_the_whole_and_the_environment_what_fits(tmp_path: Path) -> None:
    """A hook that reads nothing of it does not block either."""
    measure = 'printf %s "$THCLAWS_TOOL_INPUT" > given; cat > told'
    run = hooked(tmp_path, hooks={"pre_tool_use": [measure, "true"]})
    assert ended(run.run([call("Write", file_path="big", content="日" * 50_000), done()])) == OK
    assert json.loads(run.file("told"))["tool_input"]["content"] == "日" * 50_000
    given = (tmp_path / "given").read_bytes()
    assert 99_990 < len(given) <= 100_000
    assert given.decode("utf-8").startswith('{"file_path":"big","content":"日')


def test_long_output_is_clipped_in_the_record(tmp_path: Path) -> None:
    run = hooked(tmp_path, hooks={"step_start": "seq 10000"})
    assert ended(run.run([done()])) == OK
    assert 400 < len(run.of("hook")[0]["text"]) <= 500


def test_the_end_of_a_failed_step_and_of_its_run(tmp_path: Path) -> None:
    run = hooked(tmp_path, hooks={"step_end": TELL, "session_end": TELL})
    assert ended(run.run([failed("too hard")])) == ("step_failed", 1)
    step_end, session_end = told(run)
    assert (step_end["status"], step_end["note"], step_end["reason"]) == ("failed", "too hard", "step_failed")
    assert (session_end["outcome"], session_end["exit_code"]) == ("step_failed", 1)
    assert "too hard" in session_end["reason"]


def test_run_steps_have_them_too(tmp_path: Path) -> None:
    run = hooked(tmp_path, shell("a", "true"), shell("b", "exit 1"), hooks={"step_start": TELL, "step_end": TELL})
    assert ended(run.run([])) == ("step_failed", 1)
    assert [(t["step"], t["event"], t.get("status")) for t in told(run)] == [
        ("a", "step_start", None), ("a", "step_end", "done"), ("b", "step_start", None), ("b", "step_end", "failed")
    ]  # fmt: skip


def test_a_resume_begins_and_ends_too(tmp_path: Path) -> None:
    run = hooked(tmp_path, *LATER, hooks={"session_start": TELL, "session_end": TELL})
    assert ended(run.run([done()], ask(until="a"))) == OK
    assert ended(run.resume([done()], again())) == OK
    assert [(t["event"], t.get("resumed")) for t in told(run)] == [
        ("session_start", False), ("session_end", None), ("session_start", True), ("session_end", None)
    ]  # fmt: skip


STORY = [READS, sh("echo kept >> effects"), sh("echo refused >> effects"), done(), done()]


def story(folder: Path) -> Project:
    gate = "! grep -q refused || exit 2"
    hooks = dict.fromkeys(EVENTS, "true") | {"pre_tool_use": gate, "pre_compact": "exit 2"}
    return hooked(folder, *LATER, hooks=hooks, goal=LONG)


def said(run: Project, request: int) -> list[tuple[str, Any]]:
    """A request without the ids of its calls, which the scripted model of a resume counts anew."""
    return [(m["role"], m["content"]) for m in run.messages(request)]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_crash_at_the_record_of_a_hook(tmp_path: Path, moment: Moment) -> None:
    """The run goes on as if nothing had been; only the hook itself may run again."""
    whole = story(tmp_path / "whole")
    assert ended(whole.run(STORY)) == OK
    points = [r["seq"] for r in whole.records() if r["type"] == "hook"]
    assert len(points) == 13
    for at in points:
        run = story(tmp_path / f"{at}")
        with pytest.raises(Crash):
            run.run(STORY, crash=(at, moment))
        given = len(run.of("response"))
        result = run.resume(STORY[given:])
        assert (ended(result), reason(result), statuses(result)) == (OK, "every step is done", ["done", "done"]), at
        assert run.file("effects") == "kept\n", at
        known = [said(whole, i) for i in range(len(whole.requests))]
        assert all(said(run, i) in known for i in range(len(run.requests))), at
