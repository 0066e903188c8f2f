"""SIG-01: a signal while a tool runs, while the endpoint is silent, while a retry is waited for; and a second one."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from planrun.testing.server import LoopbackServer, call, done, error, raw
from tests.cases.cli import PLAN, alive, case, log_of, records, resume, running, serving, until, write

BOTH = [signal.SIGTERM, signal.SIGINT]


def tool(length: int) -> Any:
    """The case's command, of a length that only this test has."""
    wire = json.loads(case("SIG-01.response.json").read_text())
    command = json.loads(wire["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])["command"]
    return call("Bash", {"command": command.replace("sleep 90", f"touch begun; sleep {length}")}, "k")


WHILE: dict[str, Callable[[int], list[Any]]] = {
    "a tool": lambda n: [tool(n)],
    "the endpoint is silent": lambda n: [raw(200, b"", hang=True)],
    "an answer comes in": lambda n: [done({}, every=30.0, pieces=3)],
    "a retry": lambda n: [error(429, "slow down", headers={"Retry-After": "50"})],
}


def begun(folder: Path, server: LoopbackServer, where: str) -> Callable[[], bool]:
    if where == "a tool":
        return (folder / "begun").exists
    return lambda: len(server.requests) == 1


@pytest.mark.parametrize("number", BOTH)
@pytest.mark.parametrize("where", WHILE)
def test_sig_01(tmp_path: Path, where: str, number: signal.Signals) -> None:
    length = 90_000 + 10 * list(WHILE).index(where) + number
    write(tmp_path, PLAN)
    with serving(WHILE[where](length)) as server:
        with running(tmp_path, server, "run", "plan.yaml", "--session", "s", "--format", "json") as process:
            until(process, begun(tmp_path, server, where), where, b"slow down" if where == "a retry" else b"")
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in err
    assert json.loads(out)["outcome"] == "interrupted"
    assert alive(f"sleep {length}") == []
    last = records(tmp_path)[-1]
    assert (last["type"], last["outcome"], last["exit_code"]) == ("end", "interrupted", 128 + number)
    ran = resume(tmp_path, [done({}, id="again")])
    assert ran.ended == ("finished", 0)
    assert ran.result["steps"][0]["attempts"] == 1
    assert not (tmp_path / "late.txt").exists()
    if where == "a tool":
        assert "interrupted" in ran.results(0)[-1]


@pytest.mark.parametrize("number", BOTH)
def test_a_second_signal_ends_it_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """The command ignores TERM, so the first signal may take a moment."""
    length = 91_000 + number
    write(tmp_path, PLAN)
    with serving([call("Bash", {"command": f"trap '' TERM INT; touch begun; sleep {length}"}, "k")]) as server:
        with running(tmp_path, server, "run", "plan.yaml", "--session", "s") as process:
            until(process, (tmp_path / "begun").exists, "the command")
            process.send_signal(number)
            process.send_signal(number)
            process.communicate(timeout=90)
    assert process.returncode == 128 + number
    limit = monotonic() + 60
    while alive(f"sleep {length}"):
        assert monotonic() < limit
    ran = resume(tmp_path, [done({}, id="again")])
    assert ran.ended == ("finished", 0)


def test_a_signal_in_a_command_of_the_plan(tmp_path: Path) -> None:
    write(tmp_path, "name: c\nsteps:\n  - {id: a, run: 'test -e begun && exit 0; touch begun; sleep 92001'}\n")
    with serving([]) as server:
        with running(tmp_path, server, "run", "plan.yaml", "--session", "s") as process:
            until(process, (tmp_path / "begun").exists, "the command")
            process.terminate()
            process.communicate(timeout=90)
    assert process.returncode == 143
    assert alive("sleep 92001") == []
    assert resume(tmp_path, []).ended == ("finished", 0)


def test_a_signal_in_a_check(tmp_path: Path) -> None:
    write(tmp_path, PLAN.replace("Do it.", "Do it., verify: 'test -e begun || { touch begun; sleep 92002; }'"))
    with serving([]) as server:
        with running(tmp_path, server, "run", "plan.yaml", "--session", "s") as process:
            until(process, (tmp_path / "begun").exists, "the check")
            process.terminate()
            process.communicate(timeout=90)
    assert process.returncode == 143
    ran = resume(tmp_path, [])
    assert ran.ended == ("finished", 0)
    assert ran.server.requests == [], "the claim is on record: only its check is asked again"
    assert log_of(tmp_path).exists()
