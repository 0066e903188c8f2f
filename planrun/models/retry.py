"""Trying again: a Model around a Model. No other layer does, so what is sent is what is configured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast, get_args

from planrun.errors import ProviderError
from planrun.models.base import Model, ModelRequest, Reply, Retry
from planrun.models.faults import Failure, Fault, Kind

if TYPE_CHECKING:
    from tenacity import RetryCallState

_LONGEST_WAIT = 30.0
_REMIND = 600.0  # seconds of a long pause after which it is announced again
_TRANSIENT = ("rate", "server", "connection", "timeout")


class RetryingModel:
    """Asks `inner` up to `attempts` times. Waits (seconds) double from 1 to 30 with jitter and are never shorter than
    what the server asks for. A server that asks for more than `cap` ends it at once, as does a sum of waits over
    `total` or a wait that the request's deadline does not allow.

    With a `park`, waits that the server itself names (a reset of its limits) may be that long, count as no attempt, and
    end after `park` seconds in all; also where a quota is used up. What names no wait is tried again as ever.

    `sleep` may raise (a signal handler in the main thread): that passes through. The last error keeps the server's
    words.
    """

    def __init__(
        self,
        inner: Model,
        attempts: int = 6,
        cap: float = 60.0,
        total: float = 600.0,
        park: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self._patience = _Patience(max(1, attempts), cap, total, park)
        self._sleep = sleep

    def complete(self, request: ModelRequest) -> Reply:
        try:
            return self._inner.complete(request)  # the usual case needs none of what follows
        except ProviderError as error:
            return self._again(request, error)

    def _again(self, request: ModelRequest, first: ProviderError) -> Reply:
        from tenacity import Retrying, retry_if_exception

        tries = _Tries(self._patience, request, first, self._sleep)
        retrying = Retrying(
            retry=retry_if_exception(tries.worthwhile),
            wait=tries.wait,
            stop=tries.stop,
            before_sleep=tries.announce,
            sleep=tries.pause,
            reraise=True,
        )
        try:
            reply: Reply = retrying(tries.count, self._inner)
        except ProviderError as error:
            raise tries.final(error) from error.__cause__
        return replace(reply, retries=tries.sent - 1)


@dataclass(frozen=True, slots=True)
class _Patience:
    attempts: int
    cap: float
    total: float
    park: float | None

    @property
    def longest(self) -> float:
        """One wait."""
        return self.cap if self.park is None else max(self.cap, self.park)

    @property
    def sum(self) -> float:
        """All waits together."""
        return self.total if self.park is None else max(self.total, self.park)


class _Tries:
    """The state of one request's attempts, in the form that tenacity asks for."""

    def __init__(
        self, patience: _Patience, request: ModelRequest, first: ProviderError, sleep: Callable[[float], None]
    ) -> None:
        from tenacity import wait_exponential, wait_random_exponential

        self.sent = 1
        self._first: ProviderError | None = first
        self._patience, self._request, self._sleep = patience, request, sleep
        self._parked = 0
        # Half fixed, half random: clients spread out, yet each pause is longer than the one before.
        half = min(_LONGEST_WAIT, patience.cap) / 2
        self._backoff = wait_exponential(0.5, max=half) + wait_random_exponential(0.5, max=half)
        self._told: Retry | None = None
        self._why = ""

    def count(self, inner: Model) -> Reply:
        """One attempt; the first has failed already and only says so again."""
        first, self._first = self._first, None
        if first is not None:
            raise first
        self.sent += 1
        return inner.complete(self._request)

    def worthwhile(self, error: BaseException) -> bool:
        """Whether the same request may succeed later."""
        fault = fault_of(error)
        return fault.retryable or (fault.kind == "quota" and self._parks(fault))

    def _parks(self, fault: Fault) -> bool:
        return self._patience.park is not None and bool(fault.wait)

    def wait(self, state: RetryCallState) -> float:
        fault, own = _fault(state), self._backoff(state)
        self._parked += self._parks(fault)
        return own if fault.wait is None else max(fault.wait, own)

    def stop(self, state: RetryCallState) -> bool:
        """Whether to give up, and the reason for the message where it is not simply that the attempts are used up."""
        wait, deadline, patience = state.upcoming_sleep, self._request.deadline, self._patience
        if state.attempt_number - self._parked >= patience.attempts:
            return True
        if wait > patience.longest:
            asked = "for good" if math.isinf(wait) else f"{wait:.0f} s"
            how = ", or wait with --wait-limit" if patience.park is None and not math.isinf(wait) else ""
            self._why = f"the server asks to wait {asked}, over the limit of {patience.longest:.0f} s; try again later{how}"
        elif state.idle_for + wait > patience.sum:
            self._why = f"the waits add up to more than {patience.sum:.0f} s; try again later"
        elif deadline is not None and time.monotonic() + wait >= deadline:
            self._why = f"the time limit leaves no room to wait {wait:.0f} s"
        return bool(self._why)

    def announce(self, state: RetryCallState) -> None:
        fault, wait = _fault(state), state.upcoming_sleep
        left = self._patience.sum - state.idle_for if self._parks(fault) else None  # this wait counts already
        number = state.attempt_number - self._parked + (left is not None)
        self._told = Retry(number, self._patience.attempts, wait, fault.message, left, self.sent)
        self._request.on_retry(self._told)

    def pause(self, seconds: float) -> None:
        """Sleep; a long pause is announced again from time to time."""
        while seconds > _REMIND and self._told is not None:
            self._sleep(_REMIND)
            seconds -= _REMIND
            self._told = replace(self._told, wait=seconds)
            self._request.on_retry(self._told)
        self._sleep(seconds)

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
