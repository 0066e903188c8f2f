"""The crash matrix of recorded sessions: nothing is run, everything is counted, every cut comes to the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planrun.errors import SessionDamaged
from planrun.models.base import Reply
from planrun.testing.matrix import Cut, matrix
from planrun.testing.model import call, calls, done, say
from tests.cli.logs import bodies, write
from tests.core.pressing import SUMMARY
from tests.runner.driving import Project, Yes, project, shell, step
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
