"""When a fork is advised: the log is large, or compactions in a row free next to nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planrun import building
from planrun.core.events import Compacted, Event, Session, StepChanged
from planrun.core.fold import apply, fold
from planrun.core.records import Record
from planrun.core.state import State
from planrun.front import Front
from planrun.planfile import read_plan
from planrun.runner.advising import LARGE, advice
from planrun.runner.signals import Signals
from planrun.runner.world import World
from planrun.settings import Flags, resolve
from tests.support import ENVIRON

HEADER = Session(1, "s", "/", "/plan.yaml", "steps: [{id: a, prompt: x}, {id: b, prompt: y}]", "d", {}, "m", {})
BEGUN = StepChanged("a", "in_progress", 1)


class Unwritten:
    def append(self, event: Event) -> Record:
        raise AssertionError(event)

    def sync(self) -> None:
        raise AssertionError


def freed(share: float, boundary: str | None = None) -> Compacted:
    return Compacted("elide", "budget", (), 1, 10, 10, 1_000, round(1_000 * (1 - share)), boundary)


def state_of(*events: Event) -> State:
    return fold([Record(n, 0.0, e) for n, e in enumerate((HEADER, *events), 1)], State(), read_plan)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return building.world(
        Unwritten(),
        tmp_path / "s.jsonl",
        HEADER,
        resolve(tmp_path, Flags(), ENVIRON, None),
        ENVIRON,
        models=pytest.fail,
        signals=Signals(lambda left: None),
        front=Front(),
    )


@pytest.mark.parametrize(
    ("events", "due"),
    [
        ([BEGUN, freed(0.01), freed(0.04), freed(0.0)], True),
        ([BEGUN, freed(0.01), freed(0.04)], False),
        ([BEGUN, freed(0.01), freed(0.04), freed(0.06)], False),
        ([BEGUN, freed(0.01), freed(0.3), freed(0.04), freed(0.0)], False),
        ([BEGUN, freed(0.01), freed(0.04), StepChanged("a", "done", 1), StepChanged("b", "in_progress", 1), freed(0.0)], False),
        ([freed(0.01, "a"), freed(0.0, "a"), freed(0.0, "a")], False),
    ],
)
def test_three_compactions_in_a_row_that_free_next_to_nothing(world: World, events: list[Event], due: bool) -> None:
    notes = list(advice(world, state_of(*events)))
    assert [n.kind for n in notes] == ["fork"] * due
    assert all("planrun fork s" in n.text and "no longer keeps up" in n.text for n in notes)


def test_a_large_log_and_only_once(world: World) -> None:
    state = state_of(BEGUN)
    assert not list(advice(replace(world, log_bytes=lambda: LARGE), state))
    large = replace(world, log_bytes=lambda: LARGE + 1)
    (note,) = advice(large, state)
    assert "20 MB" in note.text
    assert not list(advice(large, apply(state, Record(3, 0.0, note), read_plan)))
