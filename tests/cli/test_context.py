"""`context`: what the model saw is what was sent, and what it would see is what a resume sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planrun.testing.model import ScriptedModel, call, done, failed, say
from tests.cli.conftest import Call, one_object
from tests.cli.logs import Body, bodies, rewrite
from tests.runner.driving import Project, again, ask, shell, step
from tests.runner.driving import project as plan_of

WORK = "seq 1 400"


def sent(requests: list[Body]) -> list[list[Body]]:
    """The messages of the requests to steps; those for summaries carry no tools."""
    return [r["messages"] for r in requests if "tools" in r]


def shown(planrun: Call, *args: str) -> dict[str, Any]:
    found = planrun("context", "s", *args, "--format", "json")
    assert found.exit_code == 0, found.stderr
    return one_object(found.stdout)


@pytest.fixture
def ran(project: Path) -> Project:
    """Two steps of which the second keeps its whole history in a small window."""
    made = plan_of(project, step("one"), step("two", context="compact"))
    script = [call("Bash", command=WORK), done(), *[call("Bash", command=f"seq {n} 900") for n in range(8)], done()]
    replies = iter(script)
    model = ScriptedModel(lambda body: next(replies) if "tools" in body else say("no"))
    assert made.run(model, ask(flags={"window": 8_000})).state.ended
    assert any(b["trigger"] != "boundary" for b in made.of("compaction")), "the ladder ran"
    return made


def test_every_request_is_shown_as_it_was_sent_and_proved(planrun: Call, ran: Project) -> None:
    wanted = sent(ran.requests)
    records = [r for r in ran.of("request") if r.get("purpose", "step") == "step"]
    assert len(wanted) == len(records) > 8
    for number, (messages, record) in enumerate(zip(wanted, records, strict=True), 1):
        found = shown(planrun, "--turn", str(number))
        assert found["messages"] == messages
        assert (found["proved"], found["digest"], found["record"]) == (True, record["digest"], record["seq"])
        assert found["tokens"] == record["tokens"] and len(found["message_tokens"]) == len(messages)
        assert found["used"] <= found["budget"] < found["window"] == 8_000


def test_a_step_is_its_last_request(planrun: Call, ran: Project) -> None:
    assert shown(planrun, "--step", "one")["turn"] == 2
    assert shown(planrun, "--step", "two")["turn"] == len(sent(ran.requests))
    text = planrun("context", "s", "--step", "two").stdout
    assert "digest ok" in text and "the window is 8,000 by settings" in text and "Step two:" in text


def test_looking_changes_nothing(planrun: Call, ran: Project) -> None:
    before = {p: p.read_bytes() for p in ran.folder.rglob("*") if p.is_file()}
    for args in ((), ("--turn", "1"), ("--step", "two")):
        assert planrun("context", "s", *args).exit_code == 0
    assert {p: p.read_bytes() for p in ran.folder.rglob("*") if p.is_file()} == before


def test_what_is_not_there_is_a_usage_error(planrun: Call, ran: Project) -> None:
    for args, words in {
        ("--turn", "99"): "no number 99",
        ("--step", "nope"): "its steps are: one, two",
        ("--step", "one", "--turn", "1"): "give one of them",
        ("--turn", "0"): "0",
    }.items():
        found = planrun("context", "s", *args)
        assert found.exit_code == 2 and words in found.stderr, args


def test_a_context_that_is_not_the_one_that_was_sent_is_exit_5(planrun: Call, ran: Project) -> None:
    def altered(body: Body) -> Body:
        return body | {"content": f"{body['content']} And more."} if body.get("role") == "system" else body

    rewrite(ran.log, altered)
    found = planrun("context", "s", "--turn", "1")
    assert found.exit_code == 5 and "DIGEST DIFFERS" in found.stdout and "DIGEST DIFFERS" in found.stderr
    found = planrun("context", "s", "--turn", "1", "--format", "json")
    assert found.exit_code == 5 and one_object(found.stdout)["proved"] is False


def test_other_tools_than_today_prove_nothing(planrun: Call, ran: Project) -> None:
    def other(body: Body) -> Body:
        tools = {"tools": body["tools"] | {"Bash": 1}} if body["type"] == "session" else {}
        return body | tools | ({"digest": "of other tools"} if body["type"] == "request" else {})

    rewrite(ran.log, other)
    found = planrun("context", "s", "--turn", "1")
    assert found.exit_code == 0 and "tools differ" in found.stdout
    assert shown(planrun, "--turn", "1")["proved"] is None


@pytest.mark.parametrize("context", ["keep", "compact", "clear"])
def test_between_steps_it_shows_what_a_resume_sends(planrun: Call, project: Path, context: str) -> None:
    made = plan_of(project, step("one"), step("two", context=context))
    made.run([call("Bash", command=WORK), done()], ask(until="one"))
    found = shown(planrun)
    assert (found["step"], found["proved"], found["before_it"], found["turn"]) == ("two", None, None, None)
    made.resume([done()])
    assert found["messages"] == made.requests[0]["messages"]
    assert found["digest"] == made.of("request")[-1]["digest"]


def test_inside_a_step_it_shows_what_a_resume_sends(planrun: Call, project: Path) -> None:
    made = plan_of(project, step("one"))
    made.run([call("Bash", command=WORK)], ask(flags={"max_turns": 1}))
    found = shown(planrun)
    made.resume([done()], again(flags={"max_turns": 9}))
    assert found["messages"] == made.requests[0]["messages"]
    assert found["records"][-1] == made.of("message")[3]["seq"]


def test_a_failed_step_is_shown_as_its_next_attempt(planrun: Call, project: Path) -> None:
    made = plan_of(project, step("one"))
    made.run([failed("no luck")])
    found = shown(planrun)
    assert "no luck" in found["messages"][-1]["content"] and found["records"][-1] is None
    made.resume([done()])
    assert found["messages"] == made.requests[0]["messages"]


@pytest.mark.parametrize(
    ("steps", "script", "more", "words"),
    [
        ([step("one"), shell("two", "true"), step("three")], [done()], {"until": "one"}, "the command of step two runs first"),
        ([step("one", approve="before")], [], {"approve": "none"}, "an approval comes first: Start step one?"),
        ([step("one")], [done()], {}, "there is no next request: the run ends finished"),
    ],
)
def test_what_comes_first_is_told(
    planrun: Call, project: Path, steps: list[Body], script: list[Any], more: dict[str, Any], words: str
) -> None:
    made = plan_of(project, *steps)
    made.run(script, ask(**more))
    before = bodies(made.log)
    assert words in str(shown(planrun)["before_it"])
    assert words in planrun("context", "s").stdout
    assert bodies(made.log) == before
