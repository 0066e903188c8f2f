"""Real processes, killed at random moments: every session ends finished, with the outputs, effects and spending of an unbroken one.

A share of the moments; `python -m tests.crash.killing --kills 5000` tries as many as are wanted."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.crash.killing import Chain

ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def test_unbroken(tmp_path: Path) -> None:
    Chain(tmp_path / "s", 0).run(0)


@pytest.mark.parametrize("block", range(10))
def test_killed_at_random_moments(tmp_path: Path, block: int) -> None:
    _until(20, block, tmp_path, (signal.SIGKILL,))


@pytest.mark.parametrize("block", range(2))
def test_told_to_stop_at_random_moments(tmp_path: Path, block: int) -> None:
    _until(15, block, tmp_path, ASKED)


def _until(kills: int, block: int, folder: Path, numbers: tuple[int, ...]) -> None:
    """Sessions with several kills each, until there were so many. A failure names its seed; PLANRUN_TEST_SEED tries others."""
    seed = int(os.environ.get("PLANRUN_TEST_SEED", "0")) + block * 1000
    while kills > 0:
        chain = Chain(folder / str(seed), seed)
        chain.run(min(kills, random.Random(seed).randint(5, 20)), numbers)
        kills -= chain.places.total()
        seed += 1
