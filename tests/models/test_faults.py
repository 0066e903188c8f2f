"""Errors of all vendors in one vocabulary."""

import json
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.errors import ConfigError, ContextOverflow, Outcome, ProviderError
from planrun.models.faults import Fault, classify, masked, raised
from planrun.models.waits import header_wait, reset_wait, span, text_wait

TABLE = json.loads((Path(__file__).parents[1] / "cases" / "CTX-01.errors.json").read_text("utf-8"))


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": None, "code": None, **more}}


@pytest.mark.parametrize("row", TABLE, ids=[f"{n}-{row['want']}" for n, row in enumerate(TABLE)])
def test_ctx_01(row: dict[str, Any]) -> None:
    fault = classify(row["status"], row["body"], {})
    shown = fault.kind if fault.kind in ("overflow", "rate") else "other"
    assert shown == row["want"]
    assert fault.retryable == (row["want"] == "rate")
    if row["want"] == "overflow" and "8192" in json.dumps(row["body"]):
        assert fault.window == 8192


WORDINGS = json.loads((Path(__file__).parent / "wordings.json").read_text("utf-8"))


@pytest.mark.parametrize("row", WORDINGS["overflow"], ids=lambda r: f"{r['vendor']}: {r['text'][:50]}")
def test_known_wordings_of_too_long(row: dict[str, Any]) -> None:
    """The texts of the vendors, with the window in tokens where one is named clearly."""
    for body in (error(row["text"], type="invalid_request_error"), {"detail": row["text"]}, row["text"]):
        fault = classify(row["status"], body, {})
        assert (fault.kind, fault.retryable, fault.window) == ("overflow", False, row["window"])


@pytest.mark.parametrize("row", WORDINGS["other"], ids=lambda r: r["text"][:50])
def test_look_alikes_of_too_long(row: dict[str, Any]) -> None:
    """Other limits: of the answer, of time, of rates, of parts of the request that no compaction makes smaller."""
    assert classify(row["status"], error(row["text"], type="invalid_request_error"), {}).kind in ("refused", "rate", "server")


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (401, error("bad key"), "auth", False),
        (403, "<html><title>Forbidden</title></html>", "auth", False),
        (402, error("pay"), "quota", False),
        (404, error("no such model", code="model_not_found"), "model", False),
        (404, {"error": "model 'x' not found, try pulling it first"}, "model", False),
        (404, "<html><title>404 Not Found</title></html>", "protocol", False),
        (404, {"detail": "Not Found"}, "protocol", False),
        (405, "", "protocol", False),
        (301, "", "protocol", False),
        (400, error("no", code="model_not_found"), "model", False),
        (400, error("credit balance is too low"), "quota", False),
        (400, "", "refused", False),
        (408, "", "timeout", True),
        (409, error("conflict"), "server", True),
        (425, "", "server", True),
        (413, "", "overflow", False),
        (413, error("Limit 6000, Requested 9000 tokens per minute", code="rate_limit_exceeded"), "overflow", False),
        (418, "", "refused", False),
        (429, error("slow down"), "rate", True),
        (429, error("no credit", code="insufficient_quota"), "quota", False),
        (429, [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}], "rate", True),
        (400, {"__type": "ThrottlingException", "message": "too many tokens"}, "rate", True),
        (500, error("oops"), "server", True),
        (500, error("request took too long"), "server", True),
        (500, error("the input length exceeds the context length"), "overflow", False),
        (503, error("context length exceeded on this replica"), "server", True),
        (502, "<html><body><h1>Bad gateway</h1></body></html>", "server", True),
        (504, "", "timeout", True),
        (520, "", "server", True),
        (529, error("overloaded", type="overloaded_error"), "server", True),
        (200, "<!doctype html><title>Welcome</title>", "protocol", False),
        (None, error("busy", code=503), "server", True),
        (None, error("busy", code="429"), "rate", True),
        (None, error("x", code="unknown_thing"), "server", True),
        (None, error("x", type="authentication_error"), "auth", False),
        (None, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "server", True),
    ],
)
def test_kinds(status: int | None, body: object, kind: str, retryable: bool) -> None:
    fault = classify(status, body, {})
    assert (fault.kind, fault.retryable) == (kind, retryable)
    assert fault.message
    if isinstance(body, dict | list):
        assert classify(status, json.dumps(body), {}) == fault


def test_the_server_may_decide_about_retries() -> None:
    assert not classify(500, error("x"), {"X-Should-Retry": "false"}).retryable
    assert classify(400, error("x"), {"x-should-retry": "true"}).retryable
    assert not classify(429, error("x", code="insufficient_quota"), {"x-should-retry": "true"}).retryable
    assert not classify(400, error("prompt is too long"), {"x-should-retry": "true"}).retryable


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (error("the model\nsaid  no"), "the model said no"),
        ("<html><title>Bad\n gateway</title><body>nginx</body></html>", "Bad gateway"),
        ("<html><style>p{}</style><h1>Bad gateway</h1></html>", "Bad gateway"),
        ("plain text", "plain text"),
        ("", "HTTP 500 without a text"),
        ({"detail": "nope"}, "nope"),
        ({"object": "error", "message": "vllm", "code": 500}, "vllm"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "true words"}}}, "Provider returned error: true words"),
        (error("see https://me:pw@host/v1?api_key=abc&x=1"), "see https://host/v1?api_key=***&x=1"),
        (error("\x1b[31mred\x1b[0m \ud800"), "red \ufffd"),
        ({"message": "wrapped", "error": {"message": "true words", "details": [{"message": "x"}]}}, "true words"),
        ({"error": {"error": {"message": "deep"}}}, "deep"),
        ({"detail": [{"loc": ["body"], "msg": "field required", "type": "missing"}]}, "field required"),
        ({"weird": 1}, '{"weird": 1}'),
    ],
)  # fmt: skip
def test_the_servers_own_words(body: object, message: str) -> None:
    assert classify(500, body, {}).message == message


def test_long_messages_are_cut() -> None:
    assert len(classify(500, error("x" * 10_000_000), {}).message) == 300
    for unclosed in ("<script " * 1_000_000, "<" * 1_000_000, "<!--" * 1_000_000):
        assert len(classify(502, unclosed, {}).message) <= 300


def test_waits_in_headers() -> None:
    now = 1_700_000_000.0
    assert header_wait({"retry-after": "3"}) == 3
    assert header_wait({"retry-after": "0.5"}) == 0.5
    assert header_wait({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert header_wait({"retry-after": formatdate(now + 4, usegmt=True)}, now) == 4
    assert header_wait({"retry-after": formatdate(now - 60, usegmt=True)}, now) == 0
    assert header_wait({"retry-after": "-5"}) == 0
    assert header_wait({"retry-after": "1" + "0" * 400}) == float("inf")
    assert header_wait({"retry-after": "1m30s"}) == 90
    for odd in ("soon", "", "nan", "inf", "Tue, 99 Foo 2024", "1e"):
        assert header_wait({"retry-after": odd}) is None
    assert header_wait({}) is None


def test_waits_in_limit_headers() -> None:
    now = 1_700_000_000.0
    used = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}
    spare = {"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1h"}
    assert reset_wait(used | spare) == 360
    assert reset_wait({"x-ratelimit-reset": str(int((now + 9) * 1000))}, now) == 9
    assert reset_wait({"x-ratelimit-reset": str(int(now + 9))}, now) == 9
    assert reset_wait({"x-ratelimit-reset": "12"}) == 12
    claude = {"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2023-11-14T22:13:29Z"}
    assert reset_wait(claude, now) == 9
    assert reset_wait({"x-ratelimit-limit-tokens": "5"}) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 20ms.", 0.02),
        ("try again in 12 s", 12),
        ("Please try again in 7m12.5s. Visit", 432.5),
        ("retry after 2 hours", 7200),
        ("try again in a while", None),
        ("try again in 6 requests", None),
        ("retry 3 times", None),
        ("try again in 1 minute and 20 seconds", 80),
        ("available again in about 2 hours, 5 minutes", 7500),
        ("Limit resets in: 3h 20m", 12000),
        ("please wait 20 seconds before", 20),
        ("Try again in 3 days 4 hours 5 minutes", 273_900),
        ("Your limit will reset at 2023-11-14 22:13:50", 30),
        ("resets at 2023-11-14T23:13:50+01:00", 30),
        ("usage limit reached|1700000030", 30),
        ("resets at 2023-11-14T22:13:10Z", None),
        ("resets at 3pm", None),
    ],
)
def test_waits_in_texts(text: str, seconds: float | None) -> None:
    assert text_wait(text, 1_700_000_000.0) == seconds


def test_which_wait_counts() -> None:
    slow = error("try again in 7 s")
    assert classify(429, slow, {"Retry-After": "2"}).wait == 2
    assert classify(429, slow, {}).wait == 7
    assert classify(500, slow, {}).wait is None
    assert classify(503, slow, {"retry-after": "2"}).wait == 2
    gemini = {"error": {"code": 429, "message": "x", "details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}
    assert classify(429, gemini, {}).wait == 34
    assert span("34s") == 34
    assert classify(429, slow, {"Retry-After": "0"}).wait == 7
    for name, value, wait in (("retry_after", 20, 20), ("retryAfterMs", 1500, 1.5), ("resets_in_seconds", "1800", 1800)):
        assert classify(429, {"error": {"message": "x", name: value}}, {}).wait == wait
    soon = {"metadata": {"headers": {"X-RateLimit-Reset": str(int((time.time() + 60) * 1000))}}, "message": "x"}
    assert 50 < (classify(429, {"error": soon}, {}).wait or 0) <= 60


def test_what_is_raised() -> None:
    url = "http://h:1"
    over = raised(Fault("overflow", "too long", window=8192), url)
    assert isinstance(over, ContextOverflow) and over.window == 8192
    for kind in ("auth", "model", "protocol"):
        told = raised(Fault(kind, "words", status=401), url)  # type: ignore[arg-type]
        assert isinstance(told, ConfigError) and url in str(told) and "words" in str(told)
    assert "may lack /v1" in str(raised(Fault("protocol", "x"), url))
    assert "may lack /v1" not in str(raised(Fault("protocol", "x"), url + "/v1"))
    failed = raised(Fault("rate", "slow", status=429), url)
    assert isinstance(failed, ProviderError) and (failed.kind, failed.status) == ("rate", 429)
    assert failed.outcome is Outcome.PROVIDER
    assert masked(Fault("auth", "wrong key: sk-123"), "sk-123").message == "wrong key: ***"
    for none in ("", "x", "EMPTY"):
        assert masked(Fault("overflow", f"maximum context: {none}"), none).message == f"maximum context: {none}"
    assert masked(Fault("auth", "wrong key: sk-12…"), "sk-123456").message == "wrong key: ***…"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "detail", "status", "n_ctx", "raw", "retryDelay"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-tokens", "x-should-retry"]),
    st.text(max_size=12) | st.floats().map(str) | st.integers().map(str),
)


@given(st.none() | st.integers(100, 599), JSON | st.text(), HEADERS)
def test_classify_never_raises(status: int | None, body: object, headers: dict[str, str]) -> None:
    fault = classify(status, body, headers)
    assert 0 < len(fault.message) <= 300
    assert "\n" not in fault.message
    fault.message.encode()
    assert fault.wait is None or fault.wait >= 0
    assert fault.window is None or fault.window >= 256


@pytest.mark.parametrize("start", ["prompt too long ", "maximum context length ", "exceeds the limit of ", "over " * 9])
def test_a_wording_costs_no_time_however_long_it_is(start: str) -> None:
    began = time.process_time()
    classify(400, error(start * 50_000), {})
    assert time.process_time() - began < 5
