"""The log of a run: which records come in which order, and what each one carries."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from planrun.errors import ProviderError
from planrun.session.reader import GENESIS, line_digest
from planrun.testing.model import call, calls, done
from tests.runner.driving import Project, Yes, ask, project, shell, step


def whole(folder: Path) -> Project:
    run = project(
        folder,
        step("a", output={"n": "integer"}, verify="test -e made", fix=1),
        shell("b", "echo b", approve="before", verify={"exists": ["made"]}),
        step("c", retry={"attempts": 2}, verify="test -e c"),
        limits={"turns": 40}, output={"n": "${{ steps.a.output.n }}"},
    )  # fmt: skip
    run.human = Yes()
    long = "seq 1 200; touch made"
    run.run(
        [done(n=1), calls(("Bash", {"command": long}), ("Ls", {})), done(n=1), done(), call("Bash", command="touch c"), done()]
    )
    return run


def test_every_record_has_number_type_time_and_chain(tmp_path: Path) -> None:
    run = whole(tmp_path)
    lines = run.log.read_bytes().split(b"\n")
    assert lines.pop() == b""
    prev, at = GENESIS, 0.0
    for number, line in enumerate(lines, 1):
        record = json.loads(line)
        assert (record["seq"], record["prev"]) == (number, prev)
        assert record["type"] and record["timestamp"] >= at
        prev, at = line_digest(line), record["timestamp"]
    assert json.loads(lines[-1])["type"] == "end"


def test_the_order_of_records(tmp_path: Path) -> None:
    run = whole(tmp_path)
    kinds = [r["type"] for r in run.records()]
    ask_model = ["request", "message", "response"]
    assert kinds == [
        "session",
        "step", "message", "message",  # a begins, system, brief
        *ask_model, "tool_start", "tool_end", "message",  # the claim, its check, the refusal
        *ask_model, "tool_start", "message", "tool_end", "tool_start", "message", "tool_end",
        *ask_model, "tool_start", "tool_end", "step", "message", "message",  # done, Accepted, closing
        "approval", "approval",
        "step", "tool_start", "tool_end", "tool_start", "tool_end", "step",
        "compaction", "step", "message",
        *ask_model, "tool_start", "tool_end", "message",
        "step", "message",  # the second attempt
        *ask_model, "tool_start", "message", "tool_end",
        *ask_model, "tool_start", "tool_end", "step", "message", "message",
        *["tool_start", "tool_end"] * 3,  # asked once more
        "end",
    ]  # fmt: skip


def test_the_header(tmp_path: Path) -> None:
    run = whole(tmp_path)
    head = run.records()[0]
    assert {"format", "session", "cwd", "plan_path", "plan", "plan_digest", "params", "model", "settings"} <= set(head)
    assert (head["session"], head["cwd"], head["plan_path"]) == ("s", str(tmp_path.resolve()), str(run.plan_path.resolve()))
    assert head["plan"] == run.plan and head["model"] == "scripted"
    assert len(head["plan_digest"]) == len(hashlib.sha256().hexdigest())


def test_messages_are_in_openai_form_with_their_origin(tmp_path: Path) -> None:
    run = whole(tmp_path)
    found = run.of("message")
    assert all({"role", "content", "origin"} <= set(m) for m in found)
    assert {(m["role"], m["origin"]) for m in found} == {
        ("system", "runner"), ("user", "user"), ("assistant", "model"), ("tool", "tool"), ("assistant", "runner")}  # fmt: skip
    assert {(m.get("step"), m.get("attempt", 0)) for m in found if m["role"] != "system"} == {("a", 1), ("c", 1), ("c", 2)}


def test_requests_and_responses(tmp_path: Path) -> None:
    run = whole(tmp_path)
    assert all(r["tokens"] > 100 and len(r["digest"]) == 32 and r["messages"] >= 2 for r in run.of("request"))
    for r in run.of("response"):
        assert set(r["usage"]) == {"prompt_tokens", "cached_tokens", "completion_tokens"}
        assert {"model", "seconds"} <= set(r)
    sent = [len(r["messages"]) for r in run.requests]
    assert [r["messages"] for r in run.of("request")] == sent


def test_tool_starts_and_ends_pair_up(tmp_path: Path) -> None:
    run = whole(tmp_path)
    pending: list[str] = []
    for r in run.records():
        if r["type"] == "tool_start":
            pending.append(r["call_id"])
        elif r["type"] == "tool_end":
            pending.remove(r["call_id"])
            assert r["status"] in ("ok", "error")
    assert pending == []


def test_step_records_carry_attempt_note_and_output(tmp_path: Path) -> None:
    run = whole(tmp_path)
    rows = [(r["step"], r["status"], r["attempt"], r.get("output")) for r in run.of("step")]
    assert rows == [
        ("a", "in_progress", 1, None), ("a", "done", 1, {"n": 1}), ("b", "in_progress", 1, None), ("b", "done", 1, {}),
        ("c", "in_progress", 1, None), ("c", "in_progress", 2, None), ("c", "done", 2, {}),
    ]  # fmt: skip
    assert "`test -e c`" in run.of("step")[5]["note"]


def test_the_end_says_how(tmp_path: Path) -> None:
    (end,) = whole(tmp_path).of("end")
    assert (end["outcome"], end["exit_code"], end["output"]) == ("finished", 0, {"n": 1})


@pytest.mark.parametrize("outcome", ["provider", "budget"])
def test_each_stop_has_an_end_and_each_resume_a_note(tmp_path: Path, outcome: str) -> None:
    run = project(tmp_path, step("a"), limits={} if outcome == "provider" else {"tokens": 1})
    run.run([ProviderError("away")] if outcome == "provider" else [call("Ls")])
    run.resume([ProviderError("away")])
    kinds = [(r["type"], r.get("outcome") or r.get("kind")) for r in run.records() if r["type"] in ("end", "note")]
    assert kinds == [("end", outcome), ("note", "resumed"), ("end", outcome)]


def test_a_failed_request_is_on_record_with_the_servers_words(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"))
    run.run([ProviderError("overloaded, come back", attempts=4)])
    (response,) = run.of("response")
    assert (response["error"], response["retries"], response["usage"]) == ("overloaded, come back", 3, None)


def test_unknown_records_are_kept_and_skipped(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "true"), shell("b", "echo b > b"))
    run.run([], ask(until="a"))
    lines = run.log.read_bytes()
    last = json.loads(lines.splitlines()[-1])
    odd = {"seq": last["seq"] + 1, "type": "from-the-future", "x": [1], "timestamp": last["timestamp"],
           "prev": line_digest(lines.splitlines()[-1])}  # fmt: skip
    run.log.write_bytes(lines + json.dumps(odd).encode() + b"\n")
    run.resume([])
    assert run.file("b") == "b\n"
    assert run.of("from-the-future")[0]["x"] == [1]
