"""HTTP and CFG: waits, retries, addresses. What has to wait for real waits side by side."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from planrun.testing.server import LoopbackServer, done
from tests.cases.cli import KEY, PLAN, Ran, case, log_of, planrun, repeated, resume, run, serving, write

OK, PROVIDER = ("finished", 0), ("provider", 75)
WAITING = {"HTTP-01a": [3.0], "HTTP-01b": [3.0, 1.5], "HTTP-03a": [0.5, 0.5], "HTTP-03b": [0.5, 0.5], "HTTP-03c": [0.5]}


def gaps(server: LoopbackServer) -> list[float]:
    return [b.at - a.at for a, b in pairwise(server.requests)]


def test_waits_that_are_over_in_time(tmp_path: Path) -> None:
    with ThreadPoolExecutor(len(WAITING)) as pool:
        names = list(WAITING)
        ran = dict(zip(names, pool.map(lambda n: run(tmp_path / n, f"{n}.http.json"), names), strict=True))
    for name, least in WAITING.items():
        assert ran[name].ended == OK, name
        found = gaps(ran[name].server)
        assert len(found) == len(least), name
        assert all(gap >= wanted for gap, wanted in zip(found, least, strict=True)), (name, found)
    assert gaps(ran["HTTP-03a"].server)[1] > gaps(ran["HTTP-03a"].server)[0], "pauses grow"
    assert "slow down" in ran["HTTP-01a"].err
    assert "Bad gateway" in ran["HTTP-03b"].err and "<" not in ran["HTTP-03b"].err.split("Bad gateway")[0].splitlines()[-1]
    assert "overloaded" in ran["HTTP-03c"].err


@pytest.mark.parametrize(
    ("name", "words"), [("HTTP-01c", ["86400 s", "daily limit"]), ("HTTP-01d", ["you have no credit left"])]
)
def test_not_tried_again(tmp_path: Path, name: str, words: list[str]) -> None:
    ran = run(tmp_path, f"{name}.http.json")
    assert ran.ended == PROVIDER
    assert len(ran.server.requests) == 1
    assert all(w in ran.result["reason"] for w in words), ran.result["reason"]
    assert ran.steps == ["in_progress"]
    again = resume(tmp_path, [done({})])
    assert again.ended == OK


def test_http_03d_what_stays_down_interrupts_the_step(tmp_path: Path) -> None:
    """The time limit ends the waiting early; the number of attempts is a test of the retrying model."""
    ran = run(tmp_path, "HTTP-03d.http.json", "--max-time", "2")
    assert ran.ended in (PROVIDER, ("time_limit", 3))
    assert ran.steps == ["in_progress"]
    again = resume(tmp_path, [done({})], "--max-time", "60")
    assert (again.ended, again.result["steps"][0]["attempts"]) == (OK, 1)


def address(folder: Path, server: LoopbackServer, url: str) -> Ran:
    write(folder, PLAN)
    return planrun(folder, server, "run", "plan.yaml", "--session", "s", "--format", "json", "--base-url", url)


def test_cfg_01_addresses(tmp_path: Path) -> None:
    rows = json.loads(case("CFG-01.urls.json").read_text())
    with serving([]) as server:
        host = server.origin.removeprefix("http://")
        for number, row in enumerate(rows[:3]):
            before = len(server.requests)
            ran = address(tmp_path / str(number), server, row["base_url"].replace("127.0.0.1:8001", host))
            assert ran.ended == OK, row
            assert [r.path for r in server.requests[before:]] == ["/v1/chat/completions"]
            assert ("/chat/completions" in ran.err) == ("warning" in row["want"])


def test_cfg_01_no_scheme(tmp_path: Path) -> None:
    with serving([]) as server:
        ran = address(tmp_path, server, f"{server.origin.removeprefix('http://')}/v1")
        assert ran.ended == ("usage", 2)
        assert "http" in ran.result["reason"] and server.requests == []
        assert not log_of(tmp_path).exists()


def test_cfg_01_without_v1_the_404_is_explained(tmp_path: Path) -> None:
    from planrun.testing.server import raw

    with serving([raw(404, '{"error": "no such page"}')] * 3) as server:
        ran = address(tmp_path, server, server.origin)
        assert ran.ended == ("config", 2)
        assert [r.path for r in server.requests] == ["/chat/completions"]
        assert "/v1" in ran.result["reason"]


def test_cfg_01_html_is_no_endpoint(tmp_path: Path) -> None:
    ran = run(tmp_path, "CFG-01.http.json")
    assert ran.ended[1] in (2, 75)
    assert len(ran.server.requests) == 1
    reason = ran.result["reason"]
    assert "127.0.0.1" in reason and "OpenAI" in reason and "<" not in reason
    assert len(reason) < 400 and KEY not in ran.err + ran.out


def test_sec_01_a_refused_key_is_masked(tmp_path: Path) -> None:
    ran = run(tmp_path, repeated("SEC-01.http.json"))
    assert ran.ended == ("config", 2)
    assert len(ran.server.requests) == 1
    assert "wrong key" in ran.err
    assert KEY not in ran.err + ran.out + log_of(tmp_path).read_text()
    assert ran.result["usage"]["prompt_tokens"] == 0
