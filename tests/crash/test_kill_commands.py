"""Commands that work on a stopped session, killed at random moments: nothing is half, and given again they come to the same.

A share of the moments; `python -m tests.crash.commanding --kills 500` tries as many as are wanted."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.crash.commanding import COMMANDS, kills

SEED = int(os.environ.get("PLANRUN_TEST_SEED", "0"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_moments(tmp_path: Path, name: str, number: signal.Signals) -> None:
    assert len(list(kills(tmp_path.resolve() / "p", 5, SEED, number, (name,)))) == 5
