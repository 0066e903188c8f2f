"""Errors of all vendors in one vocabulary."""

import json
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


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (8192, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9120 tokens."),
        (8192, "maximum context length is 8192 tokens. However, you requested 9120 tokens (8000 in the messages, 1120 in the completion)."),
        (200000, "prompt is too long: 210000 tokens > 200000 maximum"),
        (200000, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length"),
        (1048576, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (None, "Input is too long for requested model."),
        (8192, "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum context length"),
        (4096, "too many tokens: size limit exceeded by 1230 tokens. Try fewer inputs. The limit for this model is 4096 tokens."),
        (None, "Please reduce the length of the messages or completion."),
        (8192, "Please reduce the length of the messages or completion. Current length is 9120 while limit is 8192"),
        (131072, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (32768, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (30000 of text input)."),
        (8192, "request (9020 tokens) exceeds the available context size (8192 tokens), try increasing it"),
        (4096, "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."),
        (8192, "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)"),
        (None, "Prompt exceeds max length"),
        (30720, "Range of input length should be [1, 30720]"),
        (4096, "`inputs` must have less than 4096 tokens. Given: 5000"),
        (4096, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 512 `max_new_tokens`"),
        (64000, "prompt token count of 70000 exceeds the limit of 64000"),
        (None, "the input length exceeds the context length"),
        (8192, "The input (9120 tokens) is longer than the model's context length (8192 tokens)."),
        (8192, "the number of input tokens 9120 cannot exceed the total tokens limit 8192 for this model"),
        (8192, "The prompt is too long: 9120, model maximum context length: 8192"),
        (128000, "Your input exceeds the context window of this model (128,000 tokens)."),
        (8192, "'max_tokens' is too large: 9000. This model's maximum context length is 8192 tokens and your request has 2000 input tokens (9000 > 8192 - 2000)."),
        (None, "Request too large: the conversation is too long, start a new one"),
        (None, "context window overflow"),
    ],
)  # fmt: skip
def test_known_wordings_of_too_long(window: int | None, text: str) -> None:
    for status in (400, 422, None):
        fault = classify(status, error(text, type="invalid_request_error"), {})
        assert (fault.kind, fault.retryable, fault.window) == ("overflow", False, window)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "Invalid 'messages[5].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
        "messages: roles must alternate",
        "Unsupported value: 'temperature'",
        "Invalid 'tools[0].function.name': string does not match pattern",
        "the image could not be read",
        "setting 'context window' has to be a number",
        "Rate limit reached: too many tokens per min",
        "You exceeded your token quota",
    ],
)
def test_look_alikes_of_too_long(text: str) -> None:
    assert classify(400, error(text, type="invalid_request_error"), {}).kind == "refused"


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
    ],
)
def test_waits_in_texts(text: str, seconds: float | None) -> None:
    assert text_wait(text) == seconds


def test_which_wait_counts() -> None:
    slow = error("try again in 7 s")
    assert classify(429, slow, {"Retry-After": "2"}).wait == 2
    assert classify(429, slow, {}).wait == 7
    assert classify(500, slow, {}).wait is None
    assert classify(503, slow, {"retry-after": "2"}).wait == 2
    gemini = {"error": {"code": 429, "message": "x", "details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}
    assert classify(429, gemini, {}).wait == 34
    assert span("34s") == 34


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
    assert masked(Fault("auth", "wrong key: sk-1"), "sk-1").message == "wrong key: ***"
    assert masked(Fault("auth", "wrong key"), "").message == "wrong key"
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


@given(st.text(max_size=300), st.sampled_from(["prompt too long ", "maximum context length ", "exceeds the limit of "]))
def test_wordings_take_linear_time(text: str, start: str) -> None:
    classify(400, error(start * 20 + text), {})
