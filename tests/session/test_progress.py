"""How far a session came, as `list` tells it: the same as its fold says, at a price that does not follow the length of its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from planrun.core.events import Event, Noted, Session, StepChanged
from planrun.core.fold import apply
from planrun.core.state import State
from planrun.planfile import read_plan
from planrun.session import log as logs
from planrun.session import progress, snapshot
from planrun.session.following import folded, latest
from planrun.session.store import Store

PLAN = "name: three\nsteps:\n" + "".join(f"  - {{id: {s}, run: 'true'}}\n" for s in ("a", "b", "c"))
HEADER = Session(1, "s", "/w", "/w/plan.yaml", PLAN, "d", {}, "m", {})
BIG = Noted("notice", "x" * 100_000)


def write(path: Path, *happening: Event, snapshots: bool = True) -> Path:
    log, state = logs.create(path), State()
    keeper = snapshot.Keeper(log)
    for event in happening:
        record = log.append(event)
        state = apply(state, record, read_plan)
        if snapshots:
            keeper.observe(record, state)
    log.close()
    return path


def told(path: Path) -> tuple[int | None, int | None, str | None]:
    return progress.of(Store(path.parent).look(path), read_plan)


def long(*between: Event) -> Iterator[Event]:
    yield HEADER
    yield from (StepChanged("a", "in_progress", 1), StepChanged("a", "done", 1))
    yield from [BIG] * 60
    yield from between


def test_a_step_counts_by_its_last_status(tmp_path: Path) -> None:
    done = [StepChanged("a", "done", 1), StepChanged("b", "done", 1)]
    path = write(tmp_path / "s.jsonl", HEADER, *done, StepChanged("c", "skipped", 0), StepChanged("a", "todo", 1))
    assert told(path) == (2, 3, "three")


def test_an_adopted_plan_is_the_one_that_counts(tmp_path: Path) -> None:
    adopted = replace(HEADER, plan=PLAN.replace("three", "two").replace("  - {id: c, run: 'true'}\n", ""))
    path = write(tmp_path / "s.jsonl", HEADER, StepChanged("a", "done", 1), StepChanged("b", "done", 1), adopted)
    assert told(path) == (2, 2, "two")
    assert told(write(tmp_path / "long.jsonl", *long(adopted), BIG)) == (1, 2, "two")


def test_a_long_log_is_told_by_its_snapshot_and_what_followed(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *long(), StepChanged("b", "done", 1))
    assert told(path) == (2, 3, "three")
    snapshot.path_of(path).unlink()
    assert told(path) == (None, 3, "three"), "it is not looked through"


def test_the_latest_state_is_the_fold_of_the_whole_log(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *long(), StepChanged("b", "done", 1))
    with path.open("rb") as file:
        assert snapshot.load(path, file, read_plan)[1].offset > 4_000_000
    assert latest(path, read_plan) == folded(path, read_plan)
    with path.open("ab") as file:
        file.write(b'{"seq": 70, "ty')
    assert latest(path, read_plan) == folded(path, read_plan)
