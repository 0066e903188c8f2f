"""Sessions of the case collection: what their logs fold to and what comes next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planrun.api import read_plan
from planrun.core import context, editing, pairing
from planrun.core.actions import Action, AskHuman, AskModel, Begin, Brief, Compact, Say, Settle
from planrun.core.decide import decide
from planrun.core.events import Noted, Said
from planrun.core.fold import apply, fold
from planrun.core.messages import Message
from planrun.core.plan import Strategy
from planrun.core.records import Record
from planrun.core.state import State
from planrun.core.strategies import boundary
from planrun.errors import SessionDamaged
from planrun.session import log as logs
from planrun.session import snapshot
from planrun.session.reader import Reader
from planrun.session.store import records
from tests.cases_support import convert, plan_text
from tests.pairs import problems


def folded(name: str, folder: Path, plan: str | None = None) -> State:
    return fold(records(convert(name, folder, plan_text(plan or name))), State(), read_plan)


def append(state: State, event: Any) -> State:
    return apply(state, Record(state.seq + 1, state.timestamp, event), read_plan)


def resumed(state: State) -> State:
    return append(state, Noted("resumed"))


def said(state: State, action: Action | None) -> State:
    """The state after what the runner itself says, which is the action it is at."""
    assert isinstance(action, Say), action
    step = None if action.role == "system" else action.step
    return append(state, Said.of(Message(action.role, action.text), "runner", step, 1))


def wires(state: State) -> list[dict[str, Any]]:
    return [m.wire() for m in context.messages(state.view)]


def test_sess_01a_a_torn_last_line_loses_only_itself(tmp_path: Path) -> None:
    path = convert("SESS-01a", tmp_path)
    file = logs.open_locked(path)
    state, reader = snapshot.load(path, file, read_plan)
    state = fold(reader, state, read_plan)
    assert reader.torn.startswith(b'{"seq": 8')
    assert [s.status for s in state.steps] == ["done", "in_progress", "todo"]
    assert state.steps[0].output == {"ver": "1.10"}
    log = logs.continue_at(file, path, reader, state.timestamp)
    log.append(Noted("sealed"))
    log.close()
    assert [json.loads(line)["seq"] for line in path.read_bytes().split(b"\n")[:-1]] == list(range(1, 10))
    assert decide(resumed(state)) == AskModel("two")


def test_sess_01b_a_torn_line_in_the_middle_stops_with_its_number(tmp_path: Path) -> None:
    path = convert("SESS-01b", tmp_path)
    before = path.read_bytes()
    with pytest.raises(SessionDamaged, match="line 5: it is not a record") as caught:
        fold(records(path), State(), read_plan)
    assert (caught.value.line, caught.value.exit_code) == (5, 5)
    assert path.read_bytes() == before


def test_sess_01c_a_missing_newline_loses_nothing(tmp_path: Path) -> None:
    path = convert("SESS-01c", tmp_path)
    file = logs.open_locked(path)
    reader = Reader(file, path)
    state = fold(reader, State(), read_plan)
    assert (state.seq, reader.torn) == (8, b"")
    assert wires(state)[-1] == {"role": "user", "content": "Do two."}
    log = logs.continue_at(file, path, reader, state.timestamp)
    log.append(Noted("resumed"))
    log.close()
    assert [r.seq for r in records(path)] == list(range(1, 10))


@pytest.mark.parametrize("strategy", ["keep", "compact", "clear", "summary"])
def test_pair_01_no_strategy_leaves_half_a_pair(tmp_path: Path, strategy: Strategy) -> None:
    state = folded("PAIR-01", tmp_path)
    assert pairing.faults(state.view) == []
    view = editing.apply(state.view, boundary.edits(strategy, state.view))
    task = context.Entry(99, Message("user", "Next."), "user")
    closing = context.Entry(98, Message("assistant", "Step one is done."), "runner")
    if strategy != "clear":
        view = context.add(view, "one", closing)
    view = context.add(view, "two", task)
    sent = [m.wire() for m in context.messages(view)]
    assert problems(sent, alternate=True) == []
    assert sent[0] == {"role": "system", "content": "You work step by step."}
    if strategy != "clear":
        assert sent[1] == {"role": "user", "content": "Do step one."}


def test_pair_07_compactions_never_stand_between_a_call_and_its_result(tmp_path: Path) -> None:
    state = folded("PAIR-07", tmp_path)
    sent = wires(state)
    at = next(i for i, m in enumerate(sent) if m.get("tool_calls", [{}])[0].get("id") == "x1")
    assert sent[at + 1] == {"role": "tool", "content": "built", "tool_call_id": "x1"}
    assert problems(sent) == []
    assert "Early notes" not in json.dumps(sent)
    assert state.compactions == 2


def test_pair_09_an_answer_stays_and_a_user_message_follows(tmp_path: Path) -> None:
    state = resumed(folded("PAIR-09", tmp_path))
    action = decide(state)
    assert isinstance(action, Say)
    assert action.role == "user"
    state = said(state, action)
    assert pairing.faults(state.view) == []
    assert "three ports and a host name" in wires(state)[1]["content"]
    assert decide(state) == AskModel("one")


def test_pair_09b_an_empty_answer_is_not_sent(tmp_path: Path) -> None:
    state = resumed(folded("PAIR-09b", tmp_path))
    assert decide(state) == AskModel("one")
    assert wires(state) == [{"role": "user", "content": "Explain the file."}]


def test_res_01_a_recorded_result_is_used_and_nothing_runs_again(tmp_path: Path) -> None:
    state = resumed(folded("RES-01", tmp_path))
    assert decide(state) == AskModel("one")
    assert wires(state)[-1] == {"role": "tool", "content": "(exit 0)", "tool_call_id": "e1"}
    assert state.in_flight == () == state.unended


def test_res_02_a_failed_step_is_tried_again_and_nothing_behind_it_is_skipped(tmp_path: Path) -> None:
    state = resumed(folded("RES-02", tmp_path))
    assert [s.status for s in state.steps] == ["done", "failed", "todo"]
    assert decide(state) == Begin("two", 2, "it failed")


def opened(name: str, folder: Path) -> Action | None:
    """What opens step two of a session that stopped before its first message."""
    state = resumed(folded(name, folder, "RES-06"))
    return decide(said(state, decide(state)))


def test_res_06a_an_output_keeps_its_type(tmp_path: Path) -> None:
    brief = opened("RES-06a", tmp_path)
    assert isinstance(brief, Brief)
    assert "Write a short note about 1.10 to note.txt." in brief.text


def test_res_06b_a_missing_output_stops_with_step_and_field(tmp_path: Path) -> None:
    settled = opened("RES-06b", tmp_path)
    assert isinstance(settled, Settle)
    assert (settled.done, settled.reason) == (False, "output_invalid")
    assert settled.note is not None
    assert "steps.one.output.ver" in settled.note


def test_res_06c_an_empty_text_that_was_given_is_one(tmp_path: Path) -> None:
    brief = opened("RES-06c", tmp_path)
    assert isinstance(brief, Brief)
    assert "Write a short note about  to note.txt." in brief.text


def test_appr_02_the_newest_question_stands_and_an_old_answer_does_not_count(tmp_path: Path) -> None:
    state = resumed(folded("APPR-02", tmp_path))
    action = decide(state)
    assert isinstance(action, AskHuman)
    assert (action.subject, action.asked) == ("new", True)


def test_uni_01_half_a_character_is_no_obstacle(tmp_path: Path) -> None:
    path = convert("UNI-01", tmp_path)
    assert b"\\ud83d" in path.read_bytes()
    state = resumed(fold(records(path), State(), read_plan))
    assert context.wire(state.view).decode("utf-8").endswith('"ready \N{REPLACEMENT CHARACTER}","tool_call_id":"u1"}]')
    assert decide(state) == AskModel("one")
    again = editing.apply(state.view, boundary.edits("compact", state.view))
    assert again == state.view, "the result is shorter than its placeholder"
    assert not isinstance(decide(state), Compact)
