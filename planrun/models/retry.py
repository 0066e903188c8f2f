"""Trying again: a Model around a Model. No other layer does, so what is sent is what is configured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast, get_args

from planrun.errors import ProviderError
from planrun.models.base import Model, ModelRequest, Reply, Retry
from planrun.models.faults import Failure, Fault, Kind

if TYPE_CHECKING:
    from tenacity import RetryCallState

_LONGEST_WAIT = 30.0
_TRANSIENT = ("rate", "server", "connection", "timeout")


class RetryingModel:
    """Asks `inner` up to `attempts` times. Waits (seconds) double from 1 to 30 with jitter and are never shorter than
    what the server asks for. A server that asks for more than `cap` ends it at once, as does a sum of waits over
    `total` (never less than `cap`: one long known wait fits) or a wait that the request's deadline does not allow.

    `sleep` may raise (a signal handler in the main thread): that passes through. The last error keeps the server's
    words.
    """

    def __init__(
        self,
        inner: Model,
        attempts: int = 6,
        cap: float = 60.0,
        total: float = 600.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self._attempts = max(1, attempts)
        self._cap = cap
        self._total = max(total, cap)
        self._sleep = sleep

    def complete(self, request: ModelRequest) -> Reply:
        try:
            return self._inner.complete(request)  # the usual case needs none of what follows
        except ProviderError as error:
            return self._again(request, error)

    def _again(self, request: ModelRequest, first: ProviderError) -> Reply:
        from tenacity import Retrying, retry_if_exception

        tries = _Tries(self._attempts, self._cap, self._total, request, first)
        retrying = Retrying(
            retry=retry_if_exception(lambda error: fault_of(error).retryable),
            wait=tries.wait,
            stop=tries.stop,
            before_sleep=tries.announce,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            reply: Reply = retrying(tries.count, self._inner)
        except ProviderError as error:
            raise tries.final(error) from error.__cause__
        return replace(reply, retries=tries.sent - 1)


class _Tries:
    """The state of one request's attempts, in the form that tenacity asks for."""

    def __init__(self, attempts: int, cap: float, total: float, request: ModelRequest, first: ProviderError) -> None:
        from tenacity import wait_exponential, wait_random_exponential

        self.sent = 1
        self._first: ProviderError | None = first
        self._attempts, self._cap, self._total, self._request = attempts, cap, total, request
        # Half fixed, half random: clients spread out, yet each pause is longer than the one before.
        half = min(_LONGEST_WAIT, cap) / 2
        self._backoff = wait_exponential(0.5, max=half) + wait_random_exponential(0.5, max=half)
        self._why = ""

    def count(self, inner: Model) -> Reply:
        """One attempt; the first has failed already and only says so again."""
        first, self._first = self._first, None
        if first is not None:
            raise first
        self.sent += 1
        return inner.complete(self._request)

    def wait(self, state: RetryCallState) -> float:
        own = self._backoff(state)
        asked = _fault(state).wait
        return own if asked is None else max(asked, own)

    def stop(self, state: RetryCallState) -> bool:
        """Whether to give up, and the reason for the message where it is not simply that the attempts are used up."""
        wait, deadline = state.upcoming_sleep, self._request.deadline
        if state.attempt_number >= self._attempts:
            return True
        if wait > self._cap:
            asked = "for good" if math.isinf(wait) else f"{wait:.0f} s"
            self._why = f"the server asks to wait {asked}, over the limit of {self._cap:.0f} s; try again later"
        elif state.idle_for + wait > self._total:
            self._why = f"the waits add up to more than {self._total:.0f} s; try again later"
        elif deadline is not None and time.monotonic() + wait >= deadline:
            self._why = f"the time limit leaves no room to wait {wait:.0f} s"
        return bool(self._why)

    def announce(self, state: RetryCallState) -> None:
        fault = _fault(state)
        self._request.on_retry(Retry(state.attempt_number, self._attempts, state.upcoming_sleep, fault.message))

    def final(self, error: ProviderError) -> Failure:
        fault = fault_of(error)
        status = f" (HTTP {fault.status})" if fault.status else ""
        tried = f", after {self.sent} requests" if self.sent > 1 else ""
        why = f"{self._why}: " if self._why else ""
        return Failure(fault, f"{why}{fault.message}{status}{tried}", self.sent)


def fault_of(error: BaseException) -> Fault:
    """The fault behind an error of a Model; one that says nothing of itself is retried where its kind is transient."""
    if isinstance(error, Failure):
        return error.fault
    if isinstance(error, ProviderError):
        kind = cast(Kind, error.kind) if error.kind in get_args(Kind) else "server"
        return Fault(kind, str(error), error.kind in _TRANSIENT, status=error.status)
    return Fault("refused", str(error))


def _fault(state: RetryCallState) -> Fault:
    error = state.outcome.exception() if state.outcome is not None else None
    return fault_of(error) if error is not None else Fault("refused", "")
