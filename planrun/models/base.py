"""What a model is to planrun: one method that answers a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from planrun.core.events import Purpose
from planrun.core.messages import Message


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint reported them; None where it reported nothing usable (absent, null, zero, not a number)."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `finish_reason` is as reported. `refusal` is the model's or the filter's own text where it declined.
    `message` is None where the answer was empty: neither text nor tool calls. Call ids are as the model gave them
    (possibly empty or doubled: the runner makes them unique); names and arguments are already safe to send back."""

    message: Message | None
    finish_reason: str | None = None
    refusal: str | None = None
    usage: Usage = Usage()
    model: str | None = None
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """One failed request that will be tried again after `wait` seconds; `reason` is the server's own words, one line. Where the
    run is parked until a reset that the server named, `left` is what its wait limit still holds after that, in seconds.
    `sent` counts the requests so far."""

    attempt: int
    attempts: int
    wait: float
    reason: str
    left: float | None = None
    sent: int = 1


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, already encoded: `body` is the whole JSON body (UTF-8). `digest` names the list of messages and tools
    (see core.context), `deadline` is a time.monotonic() value or None, `on_retry` is called before each wait. `purpose` says
    what it is for: answers to summaries have an order of their own."""

    body: bytes
    digest: str
    deadline: float | None = None
    on_retry: Callable[[Retry], None] = field(default=lambda retry: None)
    purpose: Purpose = "step"


class Model(Protocol):
    """Answers requests. Raises ProviderError, ConfigError, ContextOverflow or Interrupted, nothing else."""

    def complete(self, request: ModelRequest) -> Reply: ...


@runtime_checkable
class Paced(Protocol):
    """A Model that says itself when the answer to a request beside the run is due. Once it is, `complete` does not wait."""

    def complete(self, request: ModelRequest) -> Reply: ...

    def due(self, request: ModelRequest) -> bool: ...
