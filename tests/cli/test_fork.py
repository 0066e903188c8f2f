"""`fork`: a new session that goes on from a summary of an old one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planrun import api, forking
from planrun.errors import EXIT_CODES, ConfigError, Outcome
from planrun.models.base import Model
from planrun.settings import Flags
from planrun.testing.model import call, done, failed
from planrun.testing.server import LoopbackServer
from planrun.testing.server import text as answer
from tests.cli.conftest import Call, one_object
from tests.cli.logs import Body, bodies, write
from tests.pairs import problems
from tests.runner.driving import Project, ask, ended, shell, step
from tests.runner.driving import project as plan_of
from tests.support import ENVIRON

SUMMARY = "Facts: it counted [{}]\nDone: counting\nFiles: none\nOpen: two"
Serve = Callable[..., LoopbackServer]
HEAD = {"goal": "Count it all.", "output": {"n": "${{ steps.one.output.n }}"}}


@pytest.fixture
def stopped(project: Path) -> Project:
    """The first of two steps is done; the second has just begun to count."""
    (project / "kept.txt").write_text("kept")
    checked = step("one", output={"n": "integer"}, verify=[{"unchanged": ["*.txt"]}])
    made = plan_of(project, checked, step("two", context="keep"), **HEAD)
    counts = [call("Bash", command=f"seq {n} 300") for n in range(3)]
    assert ended(made.run([*counts, done(n=3), call("Bash", command="seq 200")], ask(flags={"max_turns": 5})))[1] == 3
    return made


def log_of(made: Project, name: str) -> Path:
    return made.log.with_stem(name)


def resumed(made: Project, name: str, script: list[Any]) -> api.Result:
    return made._drive(
        lambda front, seams: api.resume(name, api.Ask(), front, cwd=made.folder, environ=ENVIRON, seams=seams), script, None
    )


def test_it_goes_on_from_a_summary(planrun: Call, stopped: Project, served: Serve) -> None:
    server = served(answer(SUMMARY.format(stopped.of("message")[2]["seq"])))
    before = stopped.log.read_bytes()
    ran = planrun("fork", "s", "--session", "new")
    assert (ran.exit_code, ran.stdout) == (0, "new\n"), ran.stderr
    assert "planrun resume new" in ran.stderr and len(server.requests) == 1
    assert stopped.log.read_bytes() == before
    first, *_, last = bodies(log_of(stopped, "new"))
    assert (first["parent"], first["session"], first["model"]) == ("s", "new", "scripted")
    assert (last["type"], last["partial"]) == ("end", True)
    result = resumed(stopped, "new", [done()])
    assert ended(result) == ("finished", 0), "and the check of the first step still has what it compares with"
    assert result.state.ended is not None and result.state.ended.output == {"n": 3}
    (request,) = stopped.requests
    messages = request["messages"]
    assert problems(messages, alternate=True) == []
    assert "".join(m["role"][0] for m in messages) == "suau"
    assert [m["content"].count("Count it all.") for m in messages] == [0, 1, 0, 0]
    assert "it counted" in messages[2]["content"] and 'ExpandHistory(ids="s:' in messages[2]["content"]
    assert "one.n = 3" in messages[3]["content"] and "Step two:" in messages[3]["content"]


def test_finished_steps_stay_finished_and_the_one_under_way_goes_on(planrun: Call, stopped: Project, served: Serve) -> None:
    served(answer("no"), answer("no"))
    name = planrun("fork").stdout.strip()
    shown = one_object(planrun("show", name, "--format", "json").stdout)
    assert [(s["id"], s["status"], s["attempts"], s["output"]) for s in shown["steps"]] == [
        ("one", "done", 1, {"n": 3}),
        ("two", "in_progress", 2, None),
    ]
    assert (shown["outcome"], shown["exit_code"]) == ("finished", 0)
    assert "forked from:" in planrun("show", name).stdout
    assert "Bash 4 times" in one_object(planrun("context", name, "--format", "json").stdout)["messages"][2]["content"]
    statuses = [(r["step"], r["status"]) for r in bodies(log_of(stopped, name)) if r["type"] == "step"]
    assert statuses == [("one", "in_progress"), ("one", "done"), ("two", "in_progress")]


def test_what_a_summary_cites_can_be_brought_back(planrun: Call, stopped: Project, served: Serve) -> None:
    served(answer("no"), answer("no"))
    planrun("fork", "s", "--session", "new")
    text = bodies(log_of(stopped, "new"))[-2]["content"]
    ids = text.split('ids="')[1].split('"')[0]
    assert "Count it all." in planrun("expand", ids, "--session", "new").stdout
    resumed(stopped, "new", [call("ExpandHistory", ids=ids), done()])
    assert "Count it all." in stopped.messages()[-1]["content"]


def test_a_failed_step_is_tried_again_with_what_it_said(planrun: Call, project: Path, served: Serve) -> None:
    made = plan_of(project, step("one"))
    made.run([failed("no luck")])
    served(answer("no"), answer("no"))
    assert planrun("fork", "s", "--session", "new").exit_code == 0
    assert ended(resumed(made, "new", [done()])) == ("finished", 0)
    assert "no luck" in made.messages()[-1]["content"]
    assert [r["attempt"] for r in bodies(log_of(made, "new")) if r["type"] == "step"] == [1, 1, 2, 2]


def test_a_fork_of_a_fork(planrun: Call, stopped: Project, served: Serve) -> None:
    served(*[answer("no")] * 4)
    planrun("fork", "s", "--session", "new")
    assert planrun("fork", "new", "--session", "newer").exit_code == 0
    assert ended(resumed(stopped, "newer", [done()])) == ("finished", 0)
    assert problems(stopped.messages(), alternate=True) == []


def test_a_session_without_messages(planrun: Call, plan: Path) -> None:
    assert planrun("run", "plan.yaml", "--session", "s", "--until", "first").exit_code == 0
    assert planrun("fork", "s", "--session", "new").exit_code == 0
    found = one_object(planrun("resume", "new", "--format", "json").stdout)
    assert found["output"] == {"said": "hello", "lines": "a b\nc"}
    assert [s["attempts"] for s in found["steps"]] == [1, 1]


def test_steps_of_finally_run_again(planrun: Call, project: Path, served: Serve) -> None:
    made = plan_of(project, step("one"), **{"finally": [shell("tidy", "echo x >> tidied")]})
    made.run([failed("no luck")])
    served(answer("no"), answer("no"))
    planrun("fork", "s", "--session", "new")
    resumed(made, "new", [done()])
    assert made.file("tidied") == "x\nx\n"


@pytest.mark.parametrize("name", ["s", "a/b", "..", ""])
def test_names_that_cannot_be_are_refused(planrun: Call, stopped: Project, name: str) -> None:
    before = stopped.log.read_bytes()
    assert planrun("fork", "s", "--session", name).exit_code == 2
    assert list(stopped.log.parent.iterdir()) == [stopped.log] and stopped.log.read_bytes() == before


def test_nothing_is_left_of_one_that_was_interrupted(stopped: Project) -> None:
    def model(name: str) -> Model:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forking.fork(stopped.log, "new", api.Front(), flags=Flags(), environ=ENVIRON, seams=api.Seams(models=model))
    assert not log_of(stopped, "new").exists()


def test_advice_to_fork_comes_once(stopped: Project) -> None:
    """A log that has grown past 20 MB says so, in a note, and never again."""
    _grow(stopped)
    result = stopped.resume([call("Bash", command="seq 7"), call("Bash", command="seq 8")], api.Ask(flags=Flags(max_turns=7)))
    assert ended(result)[1] == EXIT_CODES[Outcome.TURN_LIMIT]
    (note,) = [n for n in stopped.of("note") if n["kind"] == "fork"]
    assert "21 MB" in note["text"] and "planrun fork s" in note["text"]
    stopped.resume([done()])
    assert len([n for n in stopped.of("note") if n["kind"] == "fork"]) == 1
    assert bodies(stopped.log)[-1]["type"] == "end"


def _grow(made: Project) -> None:
    records: list[Body] = bodies(made.log)
    large: Body = {"type": "note", "kind": "notice", "text": "x" * 21_000_000, "timestamp": records[-1]["timestamp"]}
    write(made.log, [*records[:-1], large, records[-1]])


def test_half_a_fork_is_no_session_and_stays_no_longer_than_to_the_next(planrun: Call, stopped: Project, served: Serve) -> None:
    """What a killed one leaves; one that is being made is left alone."""
    served(answer(SUMMARY))
    half, busy = (stopped.log.with_name(f".{name}.fork") for name in ("new", "busy"))
    for path in (half, busy):
        path.write_bytes(stopped.log.read_bytes())
    assert "fork that was cut off" in planrun("doctor").stdout
    assert len(planrun("list").stdout.splitlines()) == 2
    with busy.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert planrun("fork", "s", "--session", "new").stdout == "new\n"
    assert sorted(p.name for p in stopped.log.parent.iterdir()) == [".busy.fork", "new.jsonl", "s.jsonl"]


def test_a_fork_replaces_no_session_that_got_its_name_meanwhile(stopped: Project, served: Serve) -> None:
    served(answer(SUMMARY))
    new = log_of(stopped, "new")

    def taken(journal: Any) -> Any:
        new.write_text("theirs")
        return journal

    seams = api.Seams(journal=taken)
    with pytest.raises(ConfigError, match="cannot create the session log .*new.jsonl: File exists"):
        forking.fork(stopped.log, "new", api.Front(), flags=Flags(), environ=os.environ, seams=seams)
    assert new.read_text() == "theirs"
    assert sorted(p.name for p in new.parent.iterdir()) == ["new.jsonl", "s.jsonl"]
