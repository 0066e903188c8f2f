"""A repaired copy: sound whatever was damaged, with every record that could be read, and a session that goes on."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun import api
from planrun.doctor.log import examine
from planrun.doctor.repair import Copy, repair
from planrun.errors import SessionDamaged, UsageError
from planrun.planfile import read_plan
from planrun.testing.model import Script
from tests.doctor.damage import Damage, before, each, glued, replaced, script, swapped, without
from tests.runner.driving import Project, Strict

WHOLE: dict[str, Damage] = {
    "doubled": each(lambda b: [*b[:9], *b[8:]]),
    "twice": lambda t: t + t,
    "swapped": swapped(9),
    "backwards": each(lambda b: b[::-1]),
    "glued": glued(9),
    "one line": lambda t: t.replace(b"\n", b"") + b"\n",
    "zeros": before(9, bytes(512)),
    "blank": before(9, b"\n"),
    "rubbish": before(9, b"hello\n"),
    "converted": lambda t: t.replace(b"\n", b"\r\n"),
}  # fmt: skip


def repaired(recorded: Project, damage: Damage, name: str = "copy") -> Copy:
    """The copy of a damaged log, in the folder of the sound one."""
    damaged = recorded.log.with_name(f"{name}-damaged.jsonl")
    damaged.write_bytes(damage(recorded.log.read_bytes()))
    as_it_was = damaged.read_bytes()
    target = recorded.log.with_name(f"{name}.jsonl")
    target.unlink(missing_ok=True)
    copy = repair(damaged, target, read_plan)
    assert damaged.read_bytes() == as_it_was
    assert not examine(copy.path, read_plan).damaged
    return copy


def bodies(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def bare(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without what a copy makes anew."""
    return [{k: v for k, v in r.items() if k not in ("prev", "session")} for r in records]


def resumed(recorded: Project, copy: Copy, answers: Script = script) -> tuple[api.Result, Strict]:
    model = Strict(answers)
    seams = api.Seams(models=lambda name: model)
    environ = recorded.environ
    ask = api.Ask(approve="none")
    return api.resume(copy.path.stem, ask, api.Front(), cwd=recorded.folder, environ=environ, seams=seams), model


@pytest.mark.parametrize("name", WHOLE)
def test_where_no_record_is_lost_all_are_in_the_copy(recorded: Project, name: str) -> None:
    copy = repaired(recorded, WHOLE[name])
    found = bodies(copy.path)
    assert bare(found[:72]) == bare(recorded.records())
    assert found[0]["session"] == "copy"
    assert [r["type"] for r in found[72:]] == ["note", "end"]
    assert (copy.lost, stat.S_IMODE(copy.path.stat().st_mode)) == (0, 0o600)
    result, model = resumed(recorded, copy)
    assert (result.state.ended.outcome, model.requests) == ("finished", [])


@pytest.mark.parametrize("line", range(2, 73))
def test_any_line_may_be_lost(recorded: Project, line: int) -> None:
    """It keeps its number, for others name it; the session goes on, and what it comes to is the same."""
    copy = repaired(recorded, without(line, line))
    found = bodies(copy.path)
    assert [r["seq"] for r in found] == list(range(1, len(found) + 1))
    assert bare([r for r in found[:72] if r["seq"] != line]) == bare([r for r in recorded.records() if r["seq"] != line])
    if line < 72:
        assert (found[line - 1]["kind"], copy.lost) == ("lost", 1)
    result, _ = resumed(recorded, copy)
    assert (result.state.ended.outcome, result.state.ended.output) == ("finished", {"n": 1})
    assert {s.status for s in result.state.steps} == {"done"}


@pytest.mark.parametrize("line", range(2, 73))
def test_a_log_may_end_right_after_a_line_that_is_lost(recorded: Project, line: int) -> None:
    copy = repaired(recorded, each(lambda b: [*b[: line - 1], *b[line : line + 2]]))
    result, _ = resumed(recorded, copy)
    assert (result.state.ended.outcome, result.state.ended.output) == ("finished", {"n": 1})


def test_a_call_whose_result_is_lost_is_not_run_again(recorded: Project) -> None:
    copy = repaired(recorded, each(lambda b: [*b[:11], b[12]]))  # the result of Bash is gone, its end is there
    _, model = resumed(recorded, copy)
    answers = [m["content"] for m in model.requests[0]["messages"] if m["role"] == "tool"]
    assert len(answers) == 3
    assert all("may have taken effect" in a for a in answers[1:])


def test_a_step_whose_messages_have_a_gap_begins_anew_and_is_told_so(recorded: Project) -> None:
    copy = repaired(recorded, each(lambda b: [*b[:5], *b[6:16]]))  # the assistant's message with the calls is gone
    result, model = resumed(recorded, copy)
    assert "part of the record of this attempt is lost" in model.requests[0]["messages"][1]["content"]
    assert result.state.steps[0].attempt == 2


def test_what_is_left_out_and_what_is_doubtful_stands_in_the_copy(recorded: Project) -> None:
    def damage(text: bytes) -> bytes:
        return before(9, b"hello\n")(glued(30, 40)(replaced(20, b'"n":1', b'"n":2')(text)))

    copy = repaired(recorded, damage)
    told = ["left out: line 9, 5 bytes: 5 bytes that are no record: b'hello'"]
    told += [
        "kept as it stands: line 21: record 20 was altered after it was written: line 22 names another one as the line before it"
    ]
    told += ["left out: line 31, 40 bytes: a record that is cut off (40 bytes are left of it)"]
    assert copy.told == told
    note = next(r for r in bodies(copy.path) if r.get("kind") == "repaired")
    assert note["text"] == "; ".join(["copied from copy-damaged.jsonl", "records lost: 1", *told])


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from("cut lose double swap glue zero junk".split()), st.integers(2, 71), st.integers(1, 200)),
        max_size=6,
    )
)
def test_whatever_is_damaged_the_copy_goes_on(recorded: Project, wounds: list[tuple[str, int, int]]) -> None:
    def damage(text: bytes) -> bytes:
        for what, line, size in wounds:
            line = min(line, text.count(b"\n") - 1)
            changes: dict[str, Damage] = {
                "cut": lambda t, size=size: t[: len(t) - size],  # type: ignore[misc]
                "lose": without(line, line + size // 30),
                "double": each(lambda b, line=line, size=size: [*b[:line], *b[max(1, line - size // 20) :]]),
                "swap": swapped(max(3, line)),
                "glue": glued(line, size),
                "zero": before(line, bytes(size)),
                "junk": before(line, b'{"seq":3,"type":"step"}\n'),
            }
            text = changes[what](text) if line > 2 else text
        return text

    copy = repaired(recorded, damage, "any")
    result, _ = resumed(recorded, copy)
    assert (result.state.ended.outcome, result.state.ended.output) == ("finished", {"n": 1})


@pytest.mark.parametrize("damage", [without(1, 1), lambda t: b"", lambda t: b"x" * 9999, lambda t: t[200:]])
def test_without_its_plan_nothing_can_be_repaired(recorded: Project, tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(damage(recorded.log.read_bytes()))
    with pytest.raises(SessionDamaged, match="first record, which holds the plan, is lost"):
        repair(path, tmp_path / "copy.jsonl", read_plan)
    assert list(tmp_path.iterdir()) == [path]


def test_a_copy_takes_no_files_place(recorded: Project, tmp_path: Path) -> None:
    (tmp_path / "copy.jsonl").write_text("mine")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "nowhere")
    for name in ("copy", "link"):
        with pytest.raises(UsageError, match="is there already; name another file with -o"):
            repair(recorded.log, tmp_path / f"{name}.jsonl", read_plan)
    assert (tmp_path / "copy.jsonl").read_text() == "mine"
    with pytest.raises(UsageError, match="cannot write .*: No such file"):
        repair(recorded.log, tmp_path / "gone" / "copy.jsonl", read_plan)
