"""Signals: what waits for a record, what is abandoned, what is left alone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from planrun.errors import Interrupted
from planrun.runner.signals import Signals


def send(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@contextmanager
def handled(number: int, how: signal.Handlers) -> Iterator[None]:
    before = signal.signal(number, how)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_a_call_gives_what_it_returns_and_raises_what_it_raises() -> None:
    with Signals(lambda left: False) as signals:
        assert signals.abandonable(lambda: "value") == "value"
        with pytest.raises(ZeroDivisionError):
            signals.abandonable(lambda: 1 / 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_it_is_asked_for(number: signal.Signals) -> None:
    with handled(number, signal.SIG_DFL), Signals(lambda left: False) as signals:
        send(number)
        with pytest.raises(Interrupted) as caught:
            signals.check()
        assert caught.value.exit_code == 128 + number
        ran: list[int] = []
        with pytest.raises(Interrupted):
            signals.abandonable(lambda: ran.append(1))
        assert not ran


def test_a_call_that_would_never_end_is_abandoned_and_hears_of_it_through_its_commands() -> None:
    killed = threading.Event()

    def stuck() -> None:
        send()
        killed.wait()  # what ends when its commands are killed

    def kill_all(left: threading.Thread | None) -> bool:
        killed.set()
        return True

    with Signals(kill_all) as signals, pytest.raises(Interrupted):
        signals.abandonable(stuck)
    assert killed.is_set()


def test_a_signal_that_a_library_would_swallow_is_not_lost() -> None:
    class Library:
        def __del__(self) -> None:
            send()

    with Signals(lambda left: False) as signals, pytest.raises(Interrupted):
        signals.abandonable(lambda: [(Library(), 0)[1], threading.Event().wait()])


def test_what_whoever_started_the_process_ignores_stays_ignored() -> None:
    with handled(signal.SIGHUP, signal.SIG_IGN), Signals(lambda left: False) as signals:
        send(signal.SIGHUP)
        signals.check()
