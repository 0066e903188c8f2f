"""`compact`: the older messages of a stopped session become a summary, in one record, and the run goes on from there."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import ProviderError
from planrun.testing.model import call, done
from planrun.testing.server import LoopbackServer
from planrun.testing.server import text as answer
from tests.cli.conftest import Call, one_object
from tests.cli.logs import Body, bodies, write
from tests.pairs import problems
from tests.runner.driving import Project, ask, ended, step
from tests.runner.driving import project as plan_of

SUMMARY = "Facts: numbers were counted [{}]\nDone: six counts\nFiles: none\nOpen: go on"
Serve = Callable[..., LoopbackServer]


def counts(number: int) -> list[Any]:
    return [call("Bash", command=f"seq {n} 300") for n in range(1, number + 1)]


def context(planrun: Call) -> dict[str, Any]:
    return one_object(planrun("context", "s", "--format", "json").stdout)


def roles(messages: list[Body]) -> str:
    return "".join(m["role"][0] for m in messages)


@pytest.fixture
def stopped(project: Path) -> Project:
    """Eight turns into the only step, when the endpoint failed."""
    made = plan_of(project, step("one"))
    assert ended(made.run([*counts(8), ProviderError("away")])) == ("provider", 75)
    return made


def test_a_model_sums_up_all_but_the_last_messages(planrun: Call, stopped: Project, served: Serve) -> None:
    made = stopped
    server = served(answer(SUMMARY.format(made.of("message")[2]["seq"])))
    before = bodies(made.log)
    old = context(planrun)["messages"]
    ran = planrun("compact", "s")
    assert ran.exit_code == 0, ran.stderr
    assert "12 messages summarised" in ran.stdout and "18 -> 8 messages" in ran.stdout
    assert len(server.requests) == 1 and "waiting for" in ran.stderr
    (record,) = made.of("compaction")
    assert (record["trigger"], record["strategy"], record["replaces_count"]) == ("manual", "summary", 12)
    assert (record["messages_before"], record["messages_after"]) == (18, 8)
    new = context(planrun)["messages"]
    assert new[:2] == old[:2] and new[-4:] == old[-4:] and roles(new) == "suauatat"
    assert "six counts" in new[2]["content"] and problems(new, alternate=True) == []
    assert bodies(made.log)[: len(before)] == before
    assert bodies(made.log)[-1]["type"] == "end", "it still says how the run ended"


def test_the_digest_where_no_model_writes_a_good_one(planrun: Call, stopped: Project, served: Serve) -> None:
    served(answer("no"), answer("no"))
    assert planrun("compact", "s").exit_code == 0
    (record,) = stopped.of("compaction")
    assert record["edits"][0]["deterministic"] is True
    assert ended(stopped.resume([*counts(1), done()])) == ("finished", 0)
    assert "Bash 6 times" in stopped.messages(0)[2]["content"]
    assert len(stopped.of("compaction")) == 1


def test_the_source_has_previews_of_results(planrun: Call, stopped: Project, served: Serve) -> None:
    server = served(answer("no"), answer("no"))
    planrun("compact", "s")
    source = server.bodies[0]["messages"][-1]["content"]
    assert "characters …" in source and len(source) < 6 * 900 < 6 * len(stopped.messages()[3]["content"])


def test_a_dry_run_says_what_would_come_of_it_and_writes_nothing(planrun: Call, stopped: Project, served: Serve) -> None:
    server = served(answer("no"), answer("no"))
    before = {p: p.read_bytes() for p in stopped.folder.rglob("*") if p.is_file()}
    shown = planrun("compact", "s", "--dry-run")
    assert shown.exit_code == 0 and "nothing was written" in shown.stdout and "Bash 6 times" in shown.stdout
    assert {p: p.read_bytes() for p in stopped.folder.rglob("*") if p.is_file()} == before
    assert server.requests == []
    planrun("compact", "s")
    (record,) = stopped.of("compaction")
    assert f"{record['tokens_before']:,} -> {record['tokens_after']:,} tokens" in shown.stdout
    assert f"{record['messages_before']} -> {record['messages_after']} messages" in shown.stdout
    assert record["tokens_after"] < record["tokens_before"]


@pytest.mark.parametrize(("keep", "kept"), [("1", 2), ("3", 4), ("4", 4), ("9", 10)])
def test_the_cut_never_parts_a_call_from_its_result(
    planrun: Call, stopped: Project, served: Serve, keep: str, kept: int
) -> None:
    served(answer("no"), answer("no"))
    old = context(planrun)["messages"]
    assert planrun("compact", "s", "--keep", keep).exit_code == 0
    new = context(planrun)["messages"]
    assert len(new) == 4 + kept and new[-kept:] == old[-kept:] and problems(new, alternate=True) == []


def test_twice_is_once(planrun: Call, stopped: Project, served: Serve) -> None:
    served(answer("no"), answer("no"))
    planrun("compact", "s")
    before = stopped.log.read_bytes()
    ran = planrun("compact", "s")
    assert ran.exit_code == 0 and "nothing to gain" in ran.stdout
    assert stopped.log.read_bytes() == before


def test_what_is_pinned_stays_between_two_summaries(planrun: Call, project: Path, served: Serve) -> None:
    made = plan_of(project, step("one", context="keep"), step("two", context="keep"))
    made.run([*counts(3), done(), *counts(6)], ask(flags={"max_turns": 10}))
    served(*[answer("no")] * 4)
    old = context(planrun)["messages"]
    assert planrun("compact", "s").exit_code == 0
    (record,) = made.of("compaction")
    assert len(record["edits"]) == 2
    new = context(planrun)["messages"]
    assert new[:2] == old[:2] and roles(new) == "suauauatat" and "Step two:" in new[3]["content"]
    assert problems(new, alternate=True) == []


def test_a_small_context_is_left_alone_unless_it_is_asked_for(planrun: Call, project: Path, served: Serve) -> None:
    made = plan_of(project, step("one"))
    made.run(counts(2), ask(flags={"max_turns": 2}))
    served(answer("no"), answer("no"))
    before = made.log.read_bytes()
    ran = planrun("compact", "s")
    assert ran.exit_code == 0 and "6 messages only" in ran.stdout and made.log.read_bytes() == before
    assert "nothing to gain" in planrun("compact", "s", "--force").stdout
    assert made.log.read_bytes() == before
    assert planrun("compact", "s", "--force", "--keep", "2").exit_code == 0
    assert roles(context(planrun)["messages"]) == "suauat"


def test_refused_while_an_approval_is_pending(planrun: Call, project: Path) -> None:
    made = plan_of(project, step("one", approve="after"))
    assert ended(made.run([*counts(8), done()], ask(approve="none"))) == ("needs_human", 4)
    before = made.log.read_bytes()
    for more in ((), ("--force",), ("--dry-run",)):
        ran = planrun("compact", "s", *more)
        assert ran.exit_code == 4 and "an approval is pending" in ran.stderr
    assert made.log.read_bytes() == before


def test_refused_while_a_call_is_unanswered(planrun: Call, stopped: Project) -> None:
    records = bodies(stopped.log)
    at = max(n for n, r in enumerate(records) if r["type"] == "tool_start")
    write(stopped.log, records[: at + 1])
    before = stopped.log.read_bytes()
    ran = planrun("compact", "s")
    assert ran.exit_code == 4 and "Bash has no result yet" in ran.stderr and stopped.log.read_bytes() == before


def test_busy(planrun: Call, stopped: Project) -> None:
    before = stopped.log.read_bytes()
    with stopped.log.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = planrun("compact", "s")
    assert ran.exit_code == 5 and stopped.log.read_bytes() == before


def test_a_hook_may_put_it_off(planrun: Call, stopped: Project, served: Serve) -> None:
    server = served()
    stopped.settings(hooks={"pre_compact": "echo not now >&2; exit 2"})
    ran = planrun("compact", "s")
    assert ran.exit_code == 0 and "a hook put off the compaction" in ran.stdout and "not now" in ran.stdout
    assert stopped.of("compaction") == [] and server.requests == []
    assert bodies(stopped.log)[-1]["type"] == "end"


def test_a_finished_session_stays_finished_and_its_time_stands(planrun: Call, project: Path, served: Serve) -> None:
    made = plan_of(project, step("one"))
    made.run([*counts(8), done()])
    records = bodies(made.log)
    write(made.log, [r | {"timestamp": r["timestamp"] - 86_400} for r in records])  # it was yesterday
    was = one_object(planrun("show", "s", "--format", "json").stdout)
    served(answer("no"), answer("no"))
    assert planrun("compact", "s").exit_code == 0
    now = one_object(planrun("show", "s", "--format", "json").stdout)
    assert now["compactions"] == 1 and now["usage"]["requests"] == was["usage"]["requests"] + 2
    for name in ("outcome", "exit_code", "reason", "output"):
        assert now[name] == was[name]
    assert now["steps"][0]["seconds"] == was["steps"][0]["seconds"]
    (duration,) = (line for line in planrun("show", "s").stdout.splitlines() if "duration:" in line)
    assert "h" not in duration, "a day lies between"
    assert planrun("resume").exit_code == 2, "there is nothing to go on with"
