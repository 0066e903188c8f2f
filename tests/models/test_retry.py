"""Trying again: exactly as often as configured, exactly as long as asked."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import ConfigError, ContextOverflow, Interrupted, ProviderError
from planrun.models.base import ModelRequest, Reply, Retry
from planrun.models.faults import Failure, Fault
from planrun.models.openai import OpenAIModel
from planrun.models.retry import RetryingModel
from planrun.testing.model import ScriptedModel, say
from planrun.testing.server import Answer, LoopbackServer, error, raw, script_from, text

CASES = Path(__file__).parents[1] / "cases"
BODY = json.dumps({"model": "m", "messages": [], "stream": True}).encode()
Script = list[Answer] | Callable[[dict[str, Any]], Answer]


class Run:
    """One request through both layers against a scripted endpoint; sleeping is recorded instead of done."""

    def __init__(self, script: Script, deadline: float | None = None, **how: Any) -> None:
        self.waits: list[float] = []
        self.told: list[Retry] = []
        self.reply: Reply | None = None
        self.error: BaseException | None = None
        with LoopbackServer(script) as server:
            model = RetryingModel(OpenAIModel(server.url, "key"), sleep=self.waits.append, **how)
            try:
                self.reply = model.complete(ModelRequest(BODY, "d", deadline, self.told.append))
            except (ProviderError, ConfigError, ContextOverflow) as error:
                self.error = error
        self.sent = len(server.requests)


def case(name: str, **how: Any) -> Run:
    return Run(script_from(CASES / f"{name}.http.json"), **how)


def test_http_01a_seconds() -> None:
    run = case("HTTP-01a")
    assert (run.sent, run.waits) == (2, [3.0])
    assert run.reply is not None and run.reply.retries == 1
    assert run.told == [Retry(1, 6, 3.0, "slow down")]


def test_http_01b_date_and_milliseconds() -> None:
    run = case("HTTP-01b")
    assert run.sent == 3
    assert 2.5 < run.waits[0] <= 4
    assert 1.5 <= run.waits[1] <= 2.0
    assert run.reply is not None and run.reply.retries == 2


def test_http_01c_a_wait_over_the_cap() -> None:
    run = case("HTTP-01c")
    assert (run.sent, run.waits) == (1, [])
    assert isinstance(run.error, ProviderError)
    wanted = "the server asks to wait 86400 s, over the limit of 60 s; try again later, or wait with --wait-limit: daily limit (HTTP 429)"
    assert (str(run.error), run.error.kind, run.error.attempts, run.error.exit_code) == (wanted, "rate", 1, 75)


def test_http_01d_quota_is_not_retried() -> None:
    run = case("HTTP-01d")
    assert (run.sent, run.waits) == (1, [])
    assert isinstance(run.error, ProviderError) and run.error.kind == "quota"
    assert str(run.error) == "you have no credit left (HTTP 429)"


@pytest.mark.parametrize("attempts", [1, 2, 6])
def test_http_01e_requests_are_the_attempts(attempts: int) -> None:
    run = case("HTTP-01e", attempts=attempts)
    assert (run.sent, len(run.waits), len(run.told)) == (attempts, attempts - 1, attempts - 1)
    assert isinstance(run.error, ProviderError)
    assert (run.error.attempts, run.error.status, run.error.kind) == (attempts, 500, "server")
    assert str(run.error).startswith("oops (HTTP 500)")


def test_http_03a_growing_pauses() -> None:
    run = case("HTTP-03a")
    assert run.sent == 3
    first, second = run.waits
    assert 0.5 <= first <= 1.0 <= second <= 2.0


def test_http_03b_html_and_empty_bodies() -> None:
    run = case("HTTP-03b")
    assert run.sent == 3
    assert [told.reason for told in run.told] == ["Bad gateway", "HTTP 504 without a text"]


def test_http_03c_an_error_in_a_200() -> None:
    run = case("HTTP-03c")
    assert (run.sent, run.told[0].reason) == (2, "overloaded")


def test_http_03d_attempts_used_up() -> None:
    run = case("HTTP-03d")
    assert run.sent == 6
    assert isinstance(run.error, ProviderError) and run.error.exit_code == 75
    assert str(run.error) == "overloaded (HTTP 529), after 6 requests"


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529])
def test_statuses_that_are_tried_again(status: int) -> None:
    assert Run([error(status, "x"), text("ok")]).sent == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, ProviderError), (401, ConfigError), (403, ConfigError), (404, ConfigError), (413, ContextOverflow), (422, ProviderError)],
)  # fmt: skip
def test_statuses_that_are_not(status: int, kind: type) -> None:
    run = Run([error(status, "x")])
    assert run.sent == 1
    assert isinstance(run.error, kind)


def test_resets_and_broken_streams_are_tried_again() -> None:
    run = Run([text("x", reset=True), text("hello", cut=30), text("hello", cut=9, stream=False), text("ok")])
    assert run.sent == 4
    assert run.reply is not None and run.reply.retries == 3


@pytest.mark.parametrize(("value", "wait"), [("0", None), ("-3", None), ("2", 2.0), ("never", None)])
def test_odd_header_values_fall_back_to_our_own_pause(value: str, wait: float | None) -> None:
    (found,) = Run([error(429, "x", headers={"Retry-After": value}), text("ok")]).waits
    assert found == wait if wait else 0.5 <= found <= 1.0


def test_an_absurd_header() -> None:
    run = Run([error(503, "x", headers={"Retry-After": "9" * 400})])
    assert run.sent == 1
    assert "asks to wait for good" in str(run.error)


def test_the_sum_of_waits_is_capped() -> None:
    run = Run(lambda body: error(429, "slow", headers={"Retry-After": "50"}), total=120.0)
    assert run.waits == [50.0, 50.0]
    assert str(run.error) == "the waits add up to more than 120 s; try again later: slow (HTTP 429), after 3 requests"


def test_the_deadline_leaves_no_room() -> None:
    run = Run([error(429, "slow", headers={"Retry-After": "50"})], deadline=time.monotonic() + 20)
    assert (run.sent, run.waits) == (1, [])
    assert "the time limit leaves no room to wait 50 s: slow" in str(run.error)


HOURLY = error(429, "hourly", headers={"Retry-After": "5400"})


def test_parked_until_a_known_reset() -> None:
    run = Run([HOURLY, text("ok")], park=7200.0)
    assert (run.sent, run.reply is not None and run.reply.retries) == (2, 1)
    assert run.waits == [600.0] * 9
    assert [(t.wait, t.left, t.reason) for t in run.told] == [(5400.0 - 600 * n, 1800.0, "hourly") for n in range(9)]


def test_parking_has_an_end() -> None:
    run = Run(lambda body: HOURLY, park=7200.0)
    assert (run.sent, sum(run.waits)) == (2, 5400.0)
    assert str(run.error) == "the waits add up to more than 7200 s; try again later: hourly (HTTP 429), after 2 requests"
    run = Run([error(429, "weekly", headers={"Retry-After": "604800"})], park=7200.0)
    assert (run.sent, run.waits) == (1, [])
    assert str(run.error) == "the server asks to wait 604800 s, over the limit of 7200 s; try again later: weekly (HTTP 429)"


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (error(429, "try again in 20m"), 1200.0),
        (error(429, "quota used up, resets in 1 hour and 10 minutes", code="quota_exhausted"), 4200.0),
        (error(402, "no credit", headers={"Retry-After": "90"}), 90.0),
        (error(503, "maintenance", headers={"Retry-After": "900"}), 900.0),
        (error(429, "x", headers={"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}), 360.0),
        (raw(429, '{"error": {"message": "limit", "resets_in_seconds": 1800}}'), 1800.0),
        (raw(429, '{"error": {"code": 429, "message": "q", "details": [{"retryDelay": "90s"}]}}'), 90.0),
    ],
)  # fmt: skip
def test_resets_that_are_known(answer: Answer, wait: float) -> None:
    run = Run([answer, text("ok")], park=7200.0)
    assert (run.sent, sum(run.waits)) == (2, wait)


def test_known_waits_are_no_attempts_but_unknown_ones_are() -> None:
    run = Run([error(429, "x", headers={"Retry-After": "50"})] * 9 + [text("ok")], park=7200.0)
    assert (run.sent, run.waits) == (10, [50.0] * 9)
    assert len(Run(lambda body: error(500, "x"), park=7200.0, attempts=3).waits) == 2
    assert Run([error(429, "no credit", code="insufficient_quota")], park=7200.0).sent == 1
    mixed = Run(lambda body: error(429, "x", headers={"Retry-After": "0"}), park=7200.0, attempts=4)
    assert mixed.sent == 4


def test_a_time_limit_bounds_parking() -> None:
    run = Run([HOURLY], deadline=time.monotonic() + 3600, park=7200.0)
    assert (run.sent, run.waits) == (1, [])
    assert "the time limit leaves no room to wait 5400 s: hourly" in str(run.error)


def test_pauses_stay_under_the_cap() -> None:
    run = Run(lambda body: error(500, "x"), attempts=9)
    assert all(a <= b for a, b in zip(run.waits[:5], run.waits[1:6], strict=True))
    assert max(run.waits) <= 30
    assert max(Run(lambda body: error(500, "x"), attempts=9, cap=2.0).waits) <= 2


def test_a_plain_provider_error_is_judged_by_its_kind() -> None:
    waits: list[float] = []
    inner = ScriptedModel([ProviderError("busy", kind="rate", status=429), say("ok")])
    assert RetryingModel(inner, sleep=waits.append).complete(ModelRequest(BODY, "d")).retries == 1
    inner = ScriptedModel([ProviderError("no", kind="refused", status=400)])
    with pytest.raises(ProviderError, match="no") as caught:
        RetryingModel(inner, sleep=waits.append).complete(ModelRequest(BODY, "d"))
    assert (caught.value.kind, caught.value.attempts, len(waits)) == ("refused", 1, 1)


def test_an_interrupt_in_a_pause_passes_through() -> None:
    def interrupted(seconds: float) -> None:
        raise Interrupted(15)

    inner = ScriptedModel([Failure(Fault("server", "x", retryable=True)), say("never")])
    with pytest.raises(Interrupted):
        RetryingModel(inner, sleep=interrupted).complete(ModelRequest(BODY, "d"))
    assert len(inner.requests) == 1


def test_an_interrupt_in_a_request_is_not_retried() -> None:
    inner = ScriptedModel([Interrupted(2)])
    with pytest.raises(Interrupted):
        RetryingModel(inner).complete(ModelRequest(BODY, "d"))


def test_a_real_pause() -> None:
    with LoopbackServer([error(429, "x", headers={"retry-after-ms": "90"}), text("ok")]) as server:
        model = RetryingModel(OpenAIModel(server.url, "key"), cap=0.1)
        assert model.complete(ModelRequest(BODY, "d")).retries == 1
        first, second = server.requests
    assert second.at - first.at >= 0.09
