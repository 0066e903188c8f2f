"""Parking: a run that waits for a reset that the endpoint names, as a process."""

from __future__ import annotations

import signal
from pathlib import Path

from planrun.testing.server import Script, done, error
from tests.cases.cli import PATIENCE, PLAN, planrun, resume, run, running, serving, until, write

HOURLY = error(429, "hourly limit reached, try again in 1h", "rate_limit_exceeded")
OK = ("finished", 0)


def test_a_parked_run_says_what_it_waits_for_and_stops_at_once(tmp_path: Path) -> None:
    write(tmp_path, PLAN)
    with serving(Script([HOURLY], repeat_last=True)) as server:
        command = ("run", "plan.yaml", "--session", "s", "--wait-limit", "2h", "--max-time", "3h")
        with running(tmp_path, server, *command) as process:
            says = b"parked, next request in 1h (1h of --wait-limit left then): hourly limit reached"
            until(process, lambda: len(server.requests) == 1, "the pause", says=says)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
            assert process.returncode == 130
        assert len(server.requests) == 1
    again = resume(tmp_path, [done({})])
    assert again.ended == OK
    usage = again.result["usage"]
    assert (usage["requests"], usage["estimated"]) == (2, False), "a request that was refused costs nothing"


def test_without_it_nobody_waits_for_an_hour(tmp_path: Path) -> None:
    ran = run(tmp_path, [HOURLY])
    assert (ran.ended, len(ran.server.requests)) == (("provider", 75), 1)
    assert "or wait with --wait-limit: hourly limit reached" in ran.result["reason"]
    assert ran.steps == ["in_progress"]


def test_the_environment_may_say_it_and_the_time_limit_bounds_it(tmp_path: Path) -> None:
    short = error(429, "slow down", headers={"retry-after-ms": "30"})
    for name in ("PLANRUN_WAIT_LIMIT", "PLANRUN_RUN_WAIT_LIMIT"):
        ran = run(tmp_path / name, [short, done()], env={name: "90m"})
        assert ran.ended == OK and "of --wait-limit left then): slow down" in ran.err
    ran = run(tmp_path / "bounded", [HOURLY], "--wait-limit", "2h", "--max-time", "30m")
    assert ran.ended == ("provider", 75)
    assert "the time limit leaves no room to wait 3600 s" in ran.result["reason"]


def test_a_wait_limit_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, PLAN)
    with serving([]) as server:
        for value in ("0", "-1", "soon", ""):
            ran = planrun(tmp_path, server, "run", "plan.yaml", "--wait-limit", value)
            assert ran.code == 2 and "--wait-limit" in ran.err
        assert server.requests == []
    assert not (tmp_path / ".thclaws").exists()
