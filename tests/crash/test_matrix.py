"""The crash matrix of recorded sessions: nothing is run, everything is counted, every cut comes to the same."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planrun import api
from planrun.errors import ConfigError, Interrupted, ProviderError, SessionDamaged
from planrun.models.base import ModelRequest, Reply
from planrun.testing.crash import Crash
from planrun.testing.matrix import Cut, matrix
from planrun.testing.model import call, calls, done, say
from tests.cli.logs import bodies, write
from tests.core.pressing import SUMMARY
from tests.runner.driving import Project, Yes, again, ask, project, shell, step
from tests.runner.test_window import summarises
from tests.support import last_user, tool_results

QUICKSTART = Path(__file__).parents[2] / "plans" / "quickstart.session.jsonl"


def script(body: dict[str, Any]) -> Reply:
    if summarises(body):
        return say(SUMMARY)
    brief, results = last_user(body["messages"]), tool_results(body["messages"])
    if "Step one:" in brief:  # three calls, two of them side by side, one of them asks a human
        return done(n=1) if results else calls(("Ls", {}), ("Glob", {"pattern": "*"}), ("Bash", {"command": "echo a"}))
    if "Step two:" in brief:
        return done() if "failed" in brief else call("UpdatePlanStep", status="failed", note="not yet")
    if "Step three:" in brief:
        return done() if len(results) == 6 else call("Bash", command=f"seq {len(results)} 500")
    return done() if results else call("Bash", command="forbidden")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Calls side by side, an approval, a retry, checks, file outputs, hooks that allow and deny, a compaction inside a step, a
    summary at a boundary, a command, `finally`."""
    made = project(
        tmp_path_factory.mktemp("recorded"),
        step("one", output={"n": "integer"}, verify=[{"unchanged": ["plan.yaml"]}, "true"], approve="before"),
        step("two", retry={"attempts": 2}),
        step("three", "Read much.", tools=["Bash"]),
        step("four", context="summary"),
        shell("five", "echo x > made; echo out", output={"said": "string", "made": {"type": "file", "path": "made"}}),
        window=4_500,
        **{"finally": [shell("tidy", "true")], "output": {"n": "${{ steps.one.output.n }}"}},
    )
    hooks = dict.fromkeys(("session_start", "session_end", "step_start", "step_end", "post_tool_use", "pre_compact"), "true")
    deny = "case $(cat) in *forbidden*) echo never >&2; exit 2;; esac"
    made.settings(hooks={**hooks, "pre_tool_use": deny}, permissions={"ask": ["Bash(echo*)"]})
    made.human = Yes()
    assert made.run(script).state.ended.outcome == "finished"
    return made


def faults(cuts: list[Cut]) -> list[str]:
    return [f"{cut}: {fault}" for cut in cuts for fault in cut.faults]


def test_the_session_has_what_it_should(recorded: Project) -> None:
    kinds = {(r["type"], r.get("strategy"), r.get("trigger")) for r in recorded.of("compaction")}
    assert {t for _, _, t in kinds} == {"boundary", "budget"}
    assert "summary" in {s for _, s, _ in kinds}
    assert {h["status"] for h in recorded.of("hook")} == {"ok", "denied"}
    assert {a["decision"] for a in recorded.of("approval")} == {"asked", "approved"}


@pytest.mark.parametrize("block", range(12))
def test_every_cut_comes_to_the_same(recorded: Project, block: int) -> None:
    before, total = recorded.log.read_bytes(), len(recorded.records())
    only = range(1 + block, total + 1, 12)
    cuts = list(matrix(recorded.log, only))
    assert faults(cuts) == []
    assert len(cuts) == 3 * len(only) - (block == 0)
    assert cuts[0].executions > 0
    assert recorded.log.read_bytes() == before


def test_the_quickstart(tmp_path: Path) -> None:
    assert faults(list(matrix(QUICKSTART, range(1, 93, 7)))) == []


def test_an_effect_that_is_not_on_record_is_found(recorded: Project, tmp_path: Path) -> None:
    """The beginning of a call is taken out of the log: whatever comes before it asks for something that never was."""
    found = bodies(recorded.log)
    at = next(i for i, r in enumerate(found) if r["type"] == "tool_start" and r["name"] == "Bash")
    write(
        tmp_path / "s.jsonl",
        [*found[:at], {"type": "note", "kind": "x", "timestamp": found[at]["timestamp"]}, *found[at + 1 :]],
    )
    told = faults(list(matrix(tmp_path / "s.jsonl", [at - 1, at + 3])))
    assert "a call of Bash that is not on record" in told[0]
    assert all(f"record {at - 1} " in t for t in told)


def test_what_is_no_session_is_said(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("{}\n")
    with pytest.raises(SessionDamaged):
        list(matrix(tmp_path / "s.jsonl"))


TIDY = [shell("x", "echo x >> tidied"), shell("y", "echo y >> tidied", verify="true")]
PLAN = [shell("first", "true"), step("one"), step("two", "Second.")]


def works(body: dict[str, Any]) -> Reply:
    """Three turns with effects, then done; the second step is done at once."""
    brief, results = last_user(body["messages"]), tool_results(body["messages"])
    if "Second." in brief or len(results) == 2:
        return done()
    return call("Bash", command=f"echo {len(results)} >> work")


@dataclass
class Until:
    """A model that works for some requests; then `stop` is called instead."""

    requests_left: int
    stop: Callable[[], None]

    def complete(self, request: ModelRequest) -> Reply:
        self.requests_left -= 1
        if self.requests_left < 0:
            self.stop()
        return works(json.loads(request.body))


def dead() -> None:
    raise ProviderError("503")


def refused() -> None:
    raise ConfigError("401")


def terminate() -> None:
    raise Interrupted(signal.SIGTERM)


def provider(run: Project) -> None:
    run.run(Until(2, dead))


def key(run: Project) -> None:
    run.run(Until(2, refused))


def between_steps(run: Project) -> None:
    run.run(Until(3, dead))


def signalled(run: Project) -> None:
    run.run(Until(2, terminate))


def turns(run: Project) -> None:
    run.run(works, ask(flags={"max_turns": 2}))


def tokens(run: Project) -> None:
    run.run(works, ask(flags={"max_tokens": 2_500}))


def tokens_raised(run: Project) -> None:
    tokens(run)
    run.resume(works, again(flags={"max_tokens": 90_000}))


def failed(run: Project) -> None:
    run.run(
        lambda body: (
            call("UpdatePlanStep", status="failed", note="no") if "Second." in last_user(body["messages"]) else works(body)
        )
    )


def resumed_twice(run: Project) -> None:
    provider(run)
    run.resume(Until(1, terminate))
    run.resume(works)


def by_hand(run: Project) -> None:
    run.run(works)
    run.resume(works, again(rerun="two"))


def killed(run: Project) -> None:
    with pytest.raises(Crash):
        run.run(works, crash=(25, "after"))


STOPPED = {
    provider: "provider",
    key: "config",
    between_steps: "provider",
    signalled: "interrupted",
    turns: "turn_limit",
    tokens: "budget",
    tokens_raised: "finished",
    failed: "step_failed",
    resumed_twice: "finished",
    by_hand: "finished",
    killed: None,
}


@pytest.mark.parametrize("how", STOPPED, ids=lambda how: how.__name__)
def test_a_run_that_something_stopped(tmp_path: Path, how: Callable[[Project], None]) -> None:
    run = project(tmp_path, *PLAN, **{"finally": TIDY})
    how(run)
    last = run.records()[-1]
    assert last.get("outcome") == STOPPED[how]
    cuts = list(matrix(run.log))
    assert faults(cuts) == []
    assert len(cuts) > 2.8 * len(run.records())  # but where something was changed by hand


@pytest.mark.parametrize("command", ["kill -TERM $PPID; sleep 30", "sleep 30"])
def test_a_command_that_was_cut_off(tmp_path: Path, command: str) -> None:
    """By a signal, or by the limit of time."""
    run = project(tmp_path, step("one"), shell("two", command), limits={"time": "1"}, **{"finally": TIDY})
    run.run(works)
    assert run.records()[-1]["outcome"] in ("interrupted", "time_limit")
    assert faults(list(matrix(run.log))) == []


def test_a_command_under_finally_that_fails_is_tried_again(tmp_path: Path) -> None:
    run = project(tmp_path, step("one"), **{"finally": [shell("x", "false", retry={"attempts": 2}), TIDY[1]]})
    turns(run)
    assert faults(list(matrix(run.log))) == []


def forgetful(name: str, *args: Any, cwd: Path, **more: Any) -> api.Result:
    """A resume that does not see the last record."""
    log = cwd / ".thclaws" / "sessions" / f"{name}.jsonl"
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"".join(line + b"\n" for line in lines[:-2]))
    return api.resume(name, *args, cwd=cwd, **more)


@pytest.mark.parametrize("how", [provider, signalled, turns, failed], ids=lambda how: how.__name__)
def test_a_resume_that_repeats_what_is_on_record_is_found(tmp_path: Path, how: Callable[[Project], None]) -> None:
    """The end of a call, of a step's work or under `finally`, is lost: it runs again, or is taken for interrupted."""
    run = project(tmp_path, *PLAN, **{"finally": TIDY})
    how(run)
    ends = [r["seq"] for r in run.records() if r["type"] == "tool_end" and r["name"] == "run"]
    results = [r["seq"] for r in run.records() if r["type"] == "message" and r["role"] == "tool"]
    found = {c.record: c for c in matrix(run.log, [*ends, *results], forgetful) if c.where == "whole"}
    assert [n for n in [*ends, *results] if not found[n].faults] == []
