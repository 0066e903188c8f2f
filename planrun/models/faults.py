"""What went wrong with one request, in one closed vocabulary, whichever vendor said it.

| kind         | meaning                                                | becomes          |
|--------------|--------------------------------------------------------|------------------|
| `overflow`   | the request is too long; `window` is the limit it names | ContextOverflow  |
| `rate`       | too many requests or tokens for now                     | Failure          |
| `server`     | the endpoint broke or is overloaded                     | Failure          |
| `connection` | no connection, or it was lost                           | Failure          |
| `timeout`    | no answer in time                                       | Failure          |
| `quota`      | no credit left; asking again soon does not help         | Failure          |
| `refused`    | any other request that it will not serve                | Failure          |
| `auth`       | the key was refused                                     | ConfigError      |
| `model`      | it does not know the model                              | ConfigError      |
| `protocol`   | it is not an OpenAI-style API                           | ConfigError      |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planrun.errors import ConfigError, ContextOverflow, PlanrunError, ProviderError
from planrun.masking.spellings import SHORTEST
from planrun.models import overflow, said, waits

Kind = Literal["overflow", "rate", "server", "connection", "timeout", "quota", "auth", "model", "refused", "protocol"]

_QUOTA = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "quota_exhausted",
    }
)
_BROKE = ("credit balance is too low", "insufficient balance", "insufficient credits", "exceeded your current credit")
_RATE = ("rate_limit", "ratelimit", "throttl", "too_many_requests", "resource_exhausted", "slow_down")
_AUTH = (
    "invalid_api_key",
    "authentication",
    "unauthorized",
    "unauthenticated",
    "permission_denied",
    "permission_error",
)
_MODEL = ("model_not_found", "model_not_available", "invalid_model", "unknown_model")
_TIMEOUTS = frozenset({408, 504, 524})
_RETRIED = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Fault:
    """`wait`: seconds the server asks for, or None. `window`: tokens, only for `overflow`. `message`: the server's own
    words, one line of at most 300 characters, never empty. `retryable`: the same request may succeed later."""

    kind: Kind
    message: str
    retryable: bool = False
    wait: float | None = None
    window: int | None = None
    status: int | None = None


class AnswerFault(Exception):
    """Raised inside this package where an answer cannot be used; it never leaves a Model."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Failure(ProviderError):
    """A ProviderError that still knows its `fault`, so that a retry can judge it."""

    def __init__(self, fault: Fault, message: str = "", attempts: int = 1) -> None:
        super().__init__(message or fault.message, kind=fault.kind, status=fault.status, attempts=attempts)
        self.fault = fault


def classify(status: int | None, body: object, headers: Mapping[str, str]) -> Fault:
    """Name the fault in an error answer. `status` is None or 2xx for an error that came inside an answer; `body` is
    decoded JSON or raw text; `headers` may have names in any case. Never raises."""
    lower = {str(k).lower(): v for k, v in headers.items()}
    words = said.read(body)
    if (status is None or status < 300) and words.number is not None and words.number >= 400:
        status = words.number
    kind = _kind(status, words)
    return Fault(
        kind,
        words.message or _unsaid(status),
        _retryable(kind, status, lower.get("x-should-retry", "")),
        _wait(kind, words, lower),
        overflow.window_named(words.message, words.fields) if kind == "overflow" else None,
        status,
    )


def raised(fault: Fault, url: str) -> PlanrunError:
    """The error that a Model raises for `fault`; `url` is the endpoint without credentials."""
    match fault.kind:
        case "overflow":
            return ContextOverflow(fault.message, fault.window)
        case "auth":
            return ConfigError(f"the endpoint {url} refused the key (HTTP {fault.status}): {fault.message}")
        case "model":
            return ConfigError(f"the endpoint {url} refused the model: {fault.message}")
        case "protocol":
            hint = "" if "/v" in url else "; its base url may lack /v1"
            return ConfigError(f"endpoint isn't an OpenAI-style API: {url} (it says: {fault.message}){hint}")
        case _:
            return Failure(fault)


def masked(fault: Fault, secret: str) -> Fault:
    """`fault` with `secret` blotted out of its message, also where the message was cut in the middle of it: some servers
    repeat the key that they refuse. A short one, such as `x`, is a word of ordinary text and no secret."""
    if len(secret) < SHORTEST:
        return fault
    text = fault.message.replace(secret, "***")
    for length in range(len(secret) - 1, 3, -1):
        text = text.removesuffix(f"{secret[:length]}…") + "***…" if text.endswith(f"{secret[:length]}…") else text
    return replace(fault, message=text)


def _kind(status: int | None, words: said.Said) -> Kind:
    """Throttling and outages come first: their texts speak of tokens and limits too, and must not cost any history."""
    text = words.message.lower()
    if words.words & _QUOTA or status == 402 or any(part in text for part in _BROKE):
        return "quota"
    if status == 429 or (status != 413 and _has(words, _RATE)):
        return "rate"
    if status == 413:
        return "overflow"
    if status is None or status < 300 or status in (400, 422, 500):
        return _by_words(status, words)
    return _by_status(status, words)


def _by_words(status: int | None, words: said.Said) -> Kind:
    if words.html and status in (None, 200):
        return "protocol"
    if overflow.is_overflow(words.message, words.words):
        return "overflow"
    if status == 500:
        return "server"
    if _has(words, _AUTH):
        return "auth"
    if _has(words, _MODEL):
        return "model"
    if status in (400, 422) or _has(words, ("invalid", "unsupported", "not_supported", "bad_request", "policy")):
        return "refused"
    return "server"


def _by_status(status: int, words: said.Said) -> Kind:
    if status in (401, 403):
        return "auth"
    if status == 404:
        named = not words.html and "model" in words.message.lower()
        return "model" if named or _has(words, _MODEL) else "protocol"
    if status == 405 or 300 <= status < 400:
        return "protocol"
    if status in _TIMEOUTS:
        return "timeout"
    return "server" if status >= 500 or status in _RETRIED else "refused"


def _has(words: said.Said, parts: tuple[str, ...]) -> bool:
    return any(part in word for word in words.words for part in parts)


def _retryable(kind: Kind, status: int | None, asked: str) -> bool:
    if kind in ("quota", "overflow", "auth", "model", "protocol"):
        return False
    if asked.strip().lower() in ("true", "false"):
        return asked.strip().lower() == "true"
    return kind in ("rate", "server", "connection", "timeout") or status in _RETRIED


def _wait(kind: Kind, words: said.Said, headers: Mapping[str, str]) -> float | None:
    asked = waits.header_wait(headers)
    if asked or kind not in ("rate", "quota"):
        return asked
    for hinted in (waits.field_wait(words.fields), waits.text_wait(words.message), waits.reset_wait(headers)):
        if hinted is not None:
            return hinted
    return asked


def _unsaid(status: int | None) -> str:
    return f"HTTP {status} without a text" if status else "an error without a text"
