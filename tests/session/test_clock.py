"""A clock that jumps does no harm: timestamps never go back, and no time passes that did not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun import api
from planrun.core.events import Noted
from planrun.core.fold import fold
from planrun.core.records import Record
from planrun.core.state import State
from planrun.session.log import Clock
from tests.runner.driving import project, step


@dataclass
class Machine:
    """A machine's two clocks: the one on the wall may be set, the other counts."""

    wall: float = 1_700_000_000.0
    steady: float = 50.0

    def clock(self, floor: float = 0.0) -> Clock:
        return Clock(floor, lambda: self.wall, lambda: self.steady)

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e8, 1e8)), max_size=20))
def test_the_wall_clock_may_be_set_at_any_time(jumps: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = machine.clock()
    times, passed = [clock.now()], 0.0
    for seconds, jump in jumps:
        machine.passes(seconds)
        machine.wall += jump
        passed += seconds
        times.append(clock.now())
    assert all(a <= b for a, b in pairwise(times))
    assert times[-1] - times[0] == pytest.approx(passed, abs=0.01)


@given(st.floats(-1e8, 1e8))
def test_a_resume_never_begins_before_the_last_record(jump: float) -> None:
    machine = Machine()
    last = machine.clock().now()
    machine.wall += jump
    machine.steady = 1.0  # the machine was started again
    assert machine.clock(floor=last).now() >= last


@pytest.mark.parametrize("jump", [-3600.0, 3600.0, 86_400.0 * 400])
def test_time_limits_do_not_see_a_jump(tmp_path: Path, jump: float) -> None:
    """The log is written over a jump of the wall clock, and resumed after another: what elapsed is what passed."""
    machine, records = Machine(), list[Record]()
    run = project(tmp_path, step("a"))
    first, _, _ = api.prepare(run.plan_path, api.Ask(session="x"), cwd=tmp_path, environ=run.environ)
    clock = machine.clock()
    for n, event in enumerate((first, Noted("notice", "a"), Noted("notice", "b")), 1):
        records.append(Record(n, clock.now(), event))
        machine.passes(10)
        machine.wall += jump
    clock = machine.clock(floor=records[-1].timestamp)
    for n, event in enumerate((Noted("resumed"), Noted("notice", "c")), 4):
        records.append(Record(n, clock.now(), event))
        machine.passes(5)
    state = fold(records, State(), api.read_plan)
    assert state.elapsed == pytest.approx(25)
    assert all(a.timestamp <= b.timestamp for a, b in pairwise(records))
