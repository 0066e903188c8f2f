"""A short run of every target: guided by coverage where atheris is installed, else by mutations of the same seeds."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.corpus import WORDS, seeds
from tests.fuzz.faults import FAULTS
from tests.fuzz.laws import hold
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
GUIDED = importlib.util.find_spec("atheris") is not None
_RUNS = 500


def test_every_target_has_words_and_seeds() -> None:
    assert list(TARGETS) == list(WORDS)
    for name in TARGETS:
        assert seeds(name)


@pytest.mark.parametrize(("name", "data"), FAULTS)
def test_what_was_found_once(name: str, data: bytes) -> None:
    hold(TARGETS[name], data, patience=5)


@pytest.mark.parametrize("name", TARGETS)
def test_short_run(name: str, tmp_path: Path) -> None:
    if GUIDED:
        _guided(name, tmp_path)
    else:
        _mutated(name)


def _guided(name: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", name, "--seconds", "1", f"-runs={_RUNS}", "-seed=1"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0 and "FAULT" not in done.stdout and "Done " in done.stderr, (
        done.stdout[-3000:] + done.stderr[-500:]
    )


@st.composite
def mutated(draw: st.DrawFn, name: str) -> bytes:
    """A seed with pieces dropped, doubled, put in or turned over."""
    data = draw(st.sampled_from(seeds(name)) | st.binary(max_size=60))
    words = [word.encode() for word in WORDS[name]] or [b"\0"]
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(data)))
        to = min(len(data), at + draw(st.integers(0, 12)))
        middle = draw(
            st.sampled_from([b"", data[at:to] * 2, data[at:to][::-1]]) | st.sampled_from(words) | st.binary(max_size=4)
        )
        data = data[:at] + middle + data[to:]
    return data


def _mutated(name: str) -> None:
    @given(mutated(name))
    @settings(max_examples=60)
    def holds(data: bytes) -> None:
        hold(TARGETS[name], data, patience=5)

    holds()
