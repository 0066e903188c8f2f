"""`list`, `show`, `logs`, `output`, `resume`: sessions, looked at and gone on with."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from planrun.testing.server import LoopbackServer
from tests.cli.conftest import Call, one_object

Serve = Callable[..., LoopbackServer]


@pytest.fixture
def sessions(planrun: Call, plan: Path, project: Path) -> Path:
    """Two sessions of commands: `alpha` finished, `beta` stopped after its first step."""
    assert planrun("run", "plan.yaml", "--session", "alpha").exit_code == 0
    assert planrun("run", "plan.yaml", "--session", "beta", "--until", "first").exit_code == 0
    return project / ".thclaws" / "sessions"


def test_list_shows_the_newest_first(planrun: Call, sessions: Path) -> None:
    head, newest, oldest = planrun("list").stdout.splitlines()
    assert head.split() == ["SESSION", "OUTCOME", "STEPS", "STARTED", "PLAN"]
    assert newest.split()[:4] == ["beta", "finished", "(partial)", "1/2"] and newest.endswith("commands")
    assert oldest.split()[:3] == ["alpha", "finished", "2/2"]


def test_list_counts_what_cannot_be_read_and_names_other_folders(
    planrun: Call, sessions: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (sessions / "junk.jsonl").write_bytes(b"{]\n")
    monkeypatch.chdir(tmp_path)
    shown = planrun("list", "--session-dir", str(sessions))
    assert "1 file in " in shown.stderr and "could not be read" in shown.stderr
    assert shown.stdout.count(f"(in {sessions.parent.parent.resolve()})") == 2
    found = one_object(planrun("list", "--session-dir", str(sessions), "--format", "json").stdout)
    assert [s["session"] for s in found["sessions"]] == ["beta", "alpha"] and found["unreadable"] == 1


def test_list_of_nothing(planrun: Call, project: Path) -> None:
    shown = planrun("list")
    assert shown.exit_code == 0 and "no sessions in" in shown.stdout
    assert not (project / ".thclaws").exists()


def test_a_session_under_way_is_shown_as_running(planrun: Call, sessions: Path) -> None:
    log = sessions / "beta.jsonl"
    log.write_bytes(b"\n".join(log.read_bytes().split(b"\n")[:-2]) + b"\n")
    assert "unfinished" in planrun("list").stdout
    (sessions / "beta.lock").write_text("pid 4242 on somewhere\n", encoding="utf-8")
    assert "unfinished" in planrun("list").stdout, "the name of a writer that is gone means nothing"
    with log.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "running" in planrun("list").stdout
        assert planrun("show", "beta").stdout.startswith("Session beta: running (pid 4242 on somewhere)\n")
        assert planrun("resume", "beta").exit_code == 5


def test_show_without_a_name_is_the_newest_of_this_directory(
    planrun: Call, sessions: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = planrun("show").stdout
    assert shown.startswith("Session beta: finished (exit code 0)\n")
    assert "first.said = " in shown and "Go on with: planrun resume beta" in shown
    monkeypatch.chdir(tmp_path)
    for command in ("show", "logs", "output"):
        there = planrun(command, "--session-dir", str(sessions))
        assert there.exit_code == 2 and "there is no session of" in there.stderr


def test_show_as_json_is_what_the_run_printed(planrun: Call, plan: Path) -> None:
    ran = planrun("run", "plan.yaml", "--format", "json").stdout
    assert one_object(planrun("show", "--format", "json").stdout) == one_object(ran)


def test_a_unique_beginning_is_a_name(planrun: Call, sessions: Path) -> None:
    assert planrun("show", "al").stdout.startswith("Session alpha")
    shown = planrun("show", "gamma")
    assert shown.exit_code == 2 and "alpha, beta" in shown.stderr


def test_logs_print_a_line_for_each_record(planrun: Call, sessions: Path) -> None:
    raw = (sessions / "alpha.jsonl").read_bytes()
    shown = planrun("logs", "alpha")
    assert len(shown.stdout.splitlines()) == raw.count(b"\n")
    numbers = [int(line.split()[0]) for line in shown.stdout.splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert planrun("logs", "alpha", "--format", "jsonl").stdout_bytes == raw
    assert planrun("logs", "-f", "alpha").stdout == shown.stdout, "it has ended, so there is nothing to wait for"


def test_following_a_log_that_nobody_writes_ends_and_says_so(planrun: Call, sessions: Path) -> None:
    log = sessions / "beta.jsonl"
    log.write_bytes(b"\n".join(log.read_bytes().split(b"\n")[:-2]) + b"\n")
    shown = planrun("logs", "-f", "beta")
    assert shown.exit_code == 0 and "nobody is running session beta" in shown.stderr


def test_a_damaged_log_is_exit_5_with_its_line(planrun: Call, sessions: Path) -> None:
    log = sessions / "alpha.jsonl"
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([*lines[:2], b"{]", *lines[3:]]))
    for command in ("show", "logs", "output", "resume"):
        shown = planrun(command, "alpha")
        assert shown.exit_code == 5 and "line 3" in shown.stderr, command


def test_output_prints_strings_raw_and_the_rest_as_json(planrun: Call, sessions: Path) -> None:
    assert planrun("output", "alpha", "second.text").stdout_bytes == b"a b\nc"
    assert planrun("output", "alpha", "said").stdout_bytes == b"hello"
    assert json.loads(planrun("output", "alpha", "first").stdout) == {"said": "hello"}
    assert json.loads(planrun("output", "alpha").stdout) == {"said": "hello", "lines": "a b\nc"}
    shown = planrun("output", "alpha", "first.nope")
    assert shown.exit_code == 2 and "said, lines, first.said, second.text" in shown.stderr


def test_resume_goes_on_with_the_newest_unfinished(planrun: Call, sessions: Path) -> None:
    shown = planrun("resume", "--format", "json")
    found = one_object(shown.stdout)
    assert (found["session"], found["outcome"]) == ("beta", "finished")
    assert [s["attempts"] for s in found["steps"]] == [1, 1]
    shown = planrun("resume", "--format", "json")
    assert (shown.exit_code, one_object(shown.stdout)["outcome"]) == (2, "usage")


def test_resume_takes_steps_to_skip_and_to_run_again(planrun: Call, sessions: Path, plan: Path) -> None:
    found = one_object(planrun("resume", "alpha", "--from", "second", "--format", "json").stdout)
    assert [s["attempts"] for s in found["steps"]] == [1, 2]
    plan.write_text(plan.read_text(encoding="utf-8").replace("echo ${{", "echo new ${{"), encoding="utf-8")
    assert planrun("resume", "beta").exit_code == 5
    found = one_object(planrun("resume", "beta", "--rerun", "stale", "--format", "json").stdout)
    assert found["output"]["said"] == "new hello"
    assert planrun("resume", "beta", "--skip", "nope").exit_code == 2


def test_a_session_of_that_name_is_not_run_over(planrun: Call, sessions: Path) -> None:
    before = (sessions / "alpha.jsonl").read_bytes()
    assert planrun("run", "plan.yaml", "--session", "alpha").exit_code == 2
    assert planrun("run", "plan.yaml", "--session", "../alpha").exit_code == 2
    assert (sessions / "alpha.jsonl").read_bytes() == before


def test_an_endpoint_named_by_hand_is_asked_again_on_resume(
    planrun: Call, served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = served()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    asked = ("--base-url", server.url, "--approve", "none")
    Path("ask.yaml").write_text("steps: [{id: a, prompt: A, approve: before, output: {word: string}}]", encoding="utf-8")
    assert planrun("run", "ask.yaml", "--session", "s", *asked).exit_code == 4
    assert planrun("resume", "s", "--approve", "all").exit_code == 0
    assert len(server.requests) == 1


def test_an_endpoint_whose_password_was_not_recorded_has_to_be_named_again(planrun: Call, served: Serve) -> None:
    server = served()
    Path("ask.yaml").write_text("steps: [{id: a, prompt: A, approve: before, output: {word: string}}]", encoding="utf-8")
    url = server.url.replace("//", "//user:word-that-passes@")
    assert planrun("run", "ask.yaml", "--session", "s", "--base-url", url).exit_code == 4
    assert planrun("context", "s").exit_code == 0
    shown = planrun("resume", "s", "--approve", "all")
    assert shown.exit_code == 2 and "name it again with --base-url" in shown.stderr
    assert planrun("resume", "s", "--approve", "all", "--base-url", url).exit_code == 0
    assert [r.headers["authorization"][:6] for r in server.requests] == ["Basic "]
