"""The snapshot: exact, derived, bounded, and never believed without proof."""

from __future__ import annotations

import json
import os
import stat
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.core.codec import codec_of
from planrun.core.edits import Drop
from planrun.core.events import Compacted, Ended, Event, Noted, Said, Session, StepChanged
from planrun.core.fold import apply, fold
from planrun.core.plan import Json, Plan
from planrun.core.records import Record
from planrun.core.state import State
from planrun.session import log as logs
from planrun.session import snapshot
from planrun.session.following import folded, latest
from planrun.session.store import records
from tests.strategies import PLAN, runs

HEADER = Session(1, "s", "/w", "/w/plan.yaml", "steps: []", "d", {"p": [1, "x"]}, "m", {})
BIG = "r" * 20_000


def plan_of(header: Session) -> Plan:
    return PLAN


CODEC = codec_of(State, without=frozenset({"plan"}))


def through_json(state: State) -> State:
    again: State = CODEC.decode(json.loads(json.dumps(CODEC.encode(state))))
    return replace(again, plan=state.plan)


@settings(max_examples=100)
@given(runs())
def test_every_reachable_state_comes_back_equal(happened: list[Record]) -> None:
    state = State()
    for record in happened:
        state = apply(state, record, plan_of)
        again = through_json(state)
        assert again == state
        assert [type(v) for v in again.settings.values()] == [type(v) for v in state.settings.values()]


@settings(max_examples=50)
@given(runs(), st.data())
def test_folding_goes_on_from_a_decoded_state_as_from_the_state(happened: list[Record], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(happened)))
    state = fold(happened[:at], State(), plan_of)
    whole = fold(happened[at:], state, plan_of)
    assert whole == fold(happened[at:], through_json(state), plan_of) == fold(happened, State(), plan_of)


@settings(max_examples=50)
@given(runs(), st.data())
def test_looking_by_way_of_a_snapshot_anywhere_is_looking_at_the_whole(happened: list[Record], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(happened)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        log, state = logs.create(path), State()
        for number, record in enumerate(happened, 1):
            state = apply(state, log.append(record.event), plan_of)
            if number == at:
                snapshot.Keeper(log).keep(state)
        log.close()
        assert latest(path, plan_of) == folded(path, plan_of) == state
        assert resumed(path)[1] == path.stat().st_size - sum(map(len, path.read_bytes().splitlines(keepends=True)[:at]))


def test_a_type_without_an_exact_form_is_refused() -> None:
    for hint in (set[str], list[Session], dict[int, str], tuple[int, ...] | list[Json] | str, bytes, Session | Ended):
        with pytest.raises(TypeError, match="no exact JSON form"):
            codec_of(hint)


def test_the_shape_names_every_field_but_the_plan() -> None:
    assert "header: Session(format: int" in CODEC.shape
    assert "frontier: int" in CODEC.shape
    assert "plan: Plan" not in CODEC.shape
    assert "(seq: int, message: Message(" in CODEC.shape


def steps(count: int) -> Iterator[Event]:
    """A run that reads a lot and keeps little: each attempt's messages go when the next one starts."""
    yield HEADER
    for n in range(count):
        yield StepChanged("one", "in_progress", n + 1)
        yield Said("user", "Do one.", "user", "one", n + 1)
        call = {"id": f"c{n}", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
        yield Said("assistant", None, "model", "one", n + 1, (call,))
        yield Said("tool", BIG, "tool", "one", n + 1, tool_call_id=f"c{n}", name="Bash")


def drive(path: Path, happening: Iterator[Event], state: State | None = None) -> State:
    """Append as the runner does: write, fold, show to the keeper."""
    if state is None:
        state, log = State(), logs.create(path)
    else:
        file = logs.open_locked(path)
        _, reader = snapshot.load(path, file, plan_of)
        for _ in reader:
            pass
        log = logs.continue_at(file, path, reader, 0.0)
    keeper = snapshot.Keeper(log)
    for event in happening:
        record = log.append(event)
        state = apply(state, record, plan_of)
        keeper.observe(record, state)
    log.close()
    return state


def resumed(path: Path) -> tuple[State, int]:
    """The state as a resume gets it, and how many bytes of the log it folded for that."""
    with path.open("rb") as file:
        state, reader = snapshot.load(path, file, plan_of)
        begin = reader.offset
        state = fold(reader, state, plan_of)
        return state, reader.offset - begin


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.jsonl"


@pytest.fixture
def long(path: Path) -> Path:
    drive(path, steps(120))
    assert snapshot.path_of(path).exists()
    return path


def test_a_resume_reads_the_tail_however_long_the_log_is(tmp_path: Path) -> None:
    tails = []
    for count in (150, 600):
        path = tmp_path / f"{count}.jsonl"
        state = drive(path, steps(count))
        found, folded = resumed(path)
        assert found == state
        tails.append(folded)
        assert folded < snapshot.GROWTH + 2 * len(BIG)
        assert path.stat().st_size > 2.9e6
    assert all(tails)


def test_what_a_resume_reads_from_disk_does_not_grow(tmp_path: Path) -> None:
    counter = Path("/proc/self/io")
    if not os.access(counter, os.R_OK):
        pytest.skip("this system does not count what a process reads")
    path = tmp_path / "s.jsonl"
    drive(path, steps(600))
    before = int(counter.read_text().split()[1])
    resumed(path)
    assert int(counter.read_text().split()[1]) - before < 4 * snapshot.GROWTH < path.stat().st_size / 2


def test_the_snapshot_is_private_and_stands_alone(long: Path) -> None:
    assert stat.S_IMODE(snapshot.path_of(long).stat().st_mode) == 0o600
    assert sorted(p.name for p in long.parent.iterdir()) == ["s.jsonl", "s.state"]


def test_a_small_log_gets_none_until_it_is_worth_it(path: Path) -> None:
    drive(path, iter([HEADER, Ended("finished", 0, "done")]))
    assert not snapshot.path_of(path).exists()


def test_an_end_leaves_nothing_to_fold(path: Path) -> None:
    state = drive(path, iter([*steps(20), Ended("finished", 0, "done")]))
    assert resumed(path) == (state, 0)


def test_deleting_it_loses_nothing(long: Path) -> None:
    with_it, _ = resumed(long)
    snapshot.path_of(long).unlink()
    assert resumed(long) == (with_it, long.stat().st_size)


def test_short_runs_one_after_another_are_counted_together(path: Path) -> None:
    state = drive(path, steps(1))
    for n in range(60):
        state = drive(path, iter([Noted("resumed", BIG), Noted("notice", BIG * (n % 2))]), state)
    found, folded = resumed(path)
    assert found == state
    assert folded < snapshot.GROWTH + 3 * len(BIG)


def test_snapshots_stay_small_beside_the_log(path: Path) -> None:
    """A state that is large itself (nothing is compacted) is written the more rarely."""
    log = logs.create(path)
    keeper, state, written, last = snapshot.Keeper(log), State(), 0, b""
    happening: list[Event] = [HEADER, *[Said("user", BIG, "user", "one") for _ in range(400)]]
    for n, event in enumerate(happening):
        record = log.append(event)
        state = apply(state, record, plan_of)
        keeper.observe(record, state)
        file = snapshot.path_of(path)
        if n % 10 == 0 and file.exists() and (now := file.read_bytes()) != last:
            written, last = written + len(now), now
    log.close()
    assert 0 < written < log.size


def whole(path: Path) -> State:
    return fold(records(path), State(), plan_of)


def is_passed_over(path: Path) -> bool:
    state, folded = resumed(path)
    assert state == whole(path)
    return folded == path.stat().st_size


@pytest.mark.parametrize("left", [0, 10, 64, 65, 100, -1])
def test_a_torn_one_is_passed_over(long: Path, left: int) -> None:
    file = snapshot.path_of(long)
    file.write_bytes(file.read_bytes()[:left])
    assert is_passed_over(long)


@pytest.mark.parametrize("at", [0, 63, 70, 120, 200, 400, -2])
def test_a_flipped_bit_is_noticed(long: Path, at: int) -> None:
    file = snapshot.path_of(long)
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    assert is_passed_over(long)


@pytest.mark.parametrize("text", ["", "\n", "{}", "null\nnull\nnull"])
def test_something_else_in_its_place_is_passed_over(long: Path, text: str) -> None:
    snapshot.path_of(long).write_text(f"{sha256(text.encode()).hexdigest()}\n{text}")
    assert is_passed_over(long)


def test_a_folder_in_its_place_is_passed_over_and_harms_no_run(path: Path) -> None:
    snapshot.path_of(path).mkdir()
    drive(path, steps(120))
    assert is_passed_over(path)


def edit(path: Path, **change: object) -> None:
    """Rewrite the snapshot's place as another writer would have, digest and all."""
    file = snapshot.path_of(path)
    _, head, body = file.read_bytes().split(b"\n", 2)
    rest = json.dumps({**json.loads(head), **change}).encode() + b"\n" + body
    file.write_bytes(sha256(rest).hexdigest().encode() + b"\n" + rest)


def test_one_of_another_version_is_passed_over(long: Path) -> None:
    edit(long)
    assert not is_passed_over(long)
    edit(long, version="2 9.9.9 abc")
    assert is_passed_over(long)
    edit(long, more=1)
    assert is_passed_over(long)


def test_one_that_is_ahead_of_the_log_is_passed_over(long: Path) -> None:
    lines = long.read_bytes().split(b"\n")
    long.write_bytes(b"\n".join([*lines[:3], b""]))
    assert is_passed_over(long)
    state = drive(long, (Noted("notice", BIG) for _ in range(60)), whole(long))
    assert resumed(long)[0] == state
    assert not is_passed_over(long)


def test_one_of_another_log_is_passed_over(long: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    drive(other, steps(130))
    snapshot.path_of(other).replace(snapshot.path_of(long))
    assert is_passed_over(long)


def test_a_torn_last_line_is_still_seen_behind_it(long: Path) -> None:
    with long.open("ab") as file:
        file.write(b'{"seq":9')
    with long.open("rb") as file:
        state, reader = snapshot.load(long, file, plan_of)
        assert fold(reader, state, plan_of) == whole(long)
        assert reader.torn == b'{"seq":9'


def test_folding_keeps_the_active_context_and_not_the_archive() -> None:
    """What is held after folding four times as much is the same."""

    def peak(count: int) -> int:
        tracemalloc.start()
        drop = Compacted("clear", "boundary", (Drop(1, 10**9),), 1, 1, 0, 1, 0)
        happening = (e for n in range(count) for e in (Said("user", BIG + str(n), "user", "one"), drop))
        state = apply(State(), Record(1, 1.0, HEADER), plan_of)
        state = fold((Record(n, float(n), e) for n, e in enumerate(happening, 2)), state, plan_of)
        assert state.view == ()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    small, large = peak(100), peak(400)
    assert large < small + 2 * len(BIG)
