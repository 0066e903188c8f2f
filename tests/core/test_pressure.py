"""The ladder on any history, with any budget: what never breaks, and that it always comes to an end."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core import context, editing, pairing, pressure
from planrun.core.actions import Compact, End, Summarise
from planrun.core.context import Entry, View
from planrun.core.edits import Cut, Insert
from planrun.core.messages import Message, ToolCall
from planrun.core.room import room_of
from planrun.core.state import State
from planrun.core.strategies import ladder
from planrun.core.tokens import PER_MESSAGE
from tests.core.pressing import (
    STEP,
    SUMMARY,
    Relieved,
    built,
    compactions,
    histories,
    overflowing,
    relieved,
    state_of,
    window_for,
)
from tests.pairs import problems

windows = st.one_of(st.integers(1, 3_000), st.integers(3_000, 60_000))
answers = st.sampled_from([None, SUMMARY])
factors = st.sampled_from([0.3, 0.6, 1.0, 2.5, 4.0])


def wires(view: View) -> list[dict[str, Any]]:
    return [m.wire() for m in context.messages(view)]


def squeezed(view: View, window: int, answer: str | None, factor: float, *, overflow: bool = False) -> Relieved:
    state = state_of(view, window, factors={"m": factor})
    return relieved(overflowing(state) if overflow else state, lambda action: answer)


@given(histories(), windows, answers, factors, st.booleans())
def test_it_ends_within_the_budget_or_with_an_explicit_outcome(
    view: View, window: int, answer: str | None, factor: float, overflow: bool
) -> None:
    over = squeezed(view, window, answer, factor, overflow=overflow)
    room = room_of(over.state, STEP)
    if over.end is None:
        assert room.used <= room.budget
    else:
        assert (over.end.outcome, room.used > room.budget) == ("context", True)
        least = pressure.smallest(over.state.view, 99_999)
        assert sum(e.raw for e in context.entries(least) if e.message.role != "system") * factor > room.budget


@given(histories(), windows, answers, factors, st.booleans())
def test_whatever_goes_the_list_can_be_sent(view: View, window: int, answer: str | None, factor: float, overflow: bool) -> None:
    over = squeezed(view, window, answer, factor, overflow=overflow)
    assert problems(wires(over.state.view), alternate=True) == []
    assert pairing.faults(over.state.view) == []


@given(histories(), windows, answers, factors, st.booleans())
def test_system_goal_and_the_step_stay_as_they_are(
    view: View, window: int, answer: str | None, factor: float, overflow: bool
) -> None:
    over = squeezed(view, window, answer, factor, overflow=overflow)
    system, goal = [e for s in view for e in s.entries][:2]
    kept = list(context.entries(over.state.view))
    assert kept[:2] == [system, goal]
    assert view[-1].entries[0] in kept
    assert view[-1].entries[-1].seq == kept[-1].seq or kept[-1].note is None


@given(histories(), windows, answers, factors)
def test_every_compaction_frees_something_and_the_archive_is_left_alone(
    view: View, window: int, answer: str | None, factor: float
) -> None:
    before = wires(view)
    over = squeezed(view, window, answer, factor)
    state = state_of(view, window, factors={"m": factor})
    for event in compactions(over.events):
        after = editing.apply(state.view, event.edits, 5_000)
        assert context.raw_size(after) < context.raw_size(state.view)
        state = replace(state, view=after)
    assert wires(view) == before


@given(histories(), windows, answers, factors, st.booleans())
def test_within_the_budget_a_rung_that_frees_too_little_is_skipped(
    view: View, window: int, answer: str | None, factor: float, overflow: bool
) -> None:
    """Also after an overflow: no message goes for next to nothing, unless there is no room for it."""
    over = squeezed(view, window, answer, factor, overflow=overflow)
    budget = room_of(over.state, STEP).budget
    system = next(e.raw for e in context.entries(view)) * factor
    for event in compactions(over.events):
        if event.strategy != "summary" and event.tokens_before - system < budget - 1:
            assert event.tokens_before - event.tokens_after >= 0.05 * budget - 1


@given(histories(), windows, answers, factors)
def test_the_edits_alone_give_the_same_list_and_twice_is_once(
    view: View, window: int, answer: str | None, factor: float
) -> None:
    over = squeezed(view, window, answer, factor)
    again, seq = view, max(e.seq for e in context.entries(view))
    for event in over.events:
        seq += 1
        if event in compactions(over.events):
            once = editing.apply(again, event.edits, seq)  # type: ignore[union-attr]
            if not any(isinstance(e, Insert) for e in event.edits):  # type: ignore[union-attr]
                assert editing.apply(once, event.edits, seq) == once  # type: ignore[union-attr]
            again = once
    assert context.wire(again) == context.wire(over.state.view)
    assert again == over.state.view


@given(histories(), windows, answers, factors)
def test_what_is_there_stands_in_the_order_of_the_archive(view: View, window: int, answer: str | None, factor: float) -> None:
    over = squeezed(view, window, answer, factor)
    spans = [e.span for e in context.entries(over.state.view)]
    assert all(a == b or a[1] < b[0] for a, b in pairwise(spans))
    assert sum(e.covers for e in context.entries(over.state.view)) == context.count(view)


@given(histories(), st.floats(1, 5_000))
def test_the_oldest_are_dropped_first(view: View, excess: float) -> None:
    """What is older than something that was dropped is gone too, but for what is no larger than a notice."""
    parts = ladder.groups(view)
    edits = [e for e in ladder.drop(parts[:-1], excess) if isinstance(e, Insert)]
    gone = {g.entries[0].seq for g in parts for e in edits if e.first <= g.entries[0].seq <= e.last}
    for run in ladder.runs(parts[:-1]):
        left = [g for g in run if g.entries[0].seq not in gone]
        if edits and run[0].entries[0].seq < edits[-1].first:
            assert left == [] or (left == run and ladder.raw_of(run) <= 40)
        assert left == run[len(run) - len(left) :]
    assert not gone or ladder.raw_of([g for g in parts if g.entries[0].seq in gone]) > 0


@given(histories(), factors)
def test_under_the_mark_nothing_happens(view: View, factor: float) -> None:
    state = state_of(view, 10_000_000, factors={"m": factor})
    assert pressure.relieve(state, STEP) is None


@given(histories(), windows, answers)
def test_once_it_is_content_it_stays_content(view: View, window: int, answer: str | None) -> None:
    over = squeezed(view, window, answer, 1.0)
    if over.end is None:
        assert pressure.relieve(over.state, STEP) is None


# --- 74 and 76 percent --------------------------------------------------------------------------------------------------


def used_share(state: State) -> float:
    room = room_of(state, STEP)
    return room.used / room.budget


def at_share(view: View, share: float) -> State:
    """A state whose messages take just so much of the budget."""
    used = sum(e.raw for e in context.entries(view) if e.message.role != "system")
    state = state_of(view, window_for(round(used / share), view))
    assert used_share(state) == pytest.approx(share, abs=0.004)
    return state


def test_at_74_percent_nothing_happens_and_at_76_it_does() -> None:
    view = built(*(("line of text " * 200,) for _ in range(10)))
    assert pressure.relieve(at_share(view, 0.74), STEP) is None
    action = pressure.relieve(at_share(view, 0.76), STEP)
    assert isinstance(action, Compact) and (action.strategy, action.trigger) == ("elide", "budget")


def test_the_mark_can_be_set() -> None:
    view = built(*(("line of text " * 200,) for _ in range(10)))
    state = at_share(view, 0.6)
    lower = replace(state, settings={**state.settings, "compaction": {"summarize_token_percent": 50}})
    assert pressure.relieve(state, STEP) is None
    assert isinstance(pressure.relieve(lower, STEP), Compact)


# --- rungs --------------------------------------------------------------------------------------------------------------


def test_the_largest_old_result_goes_first_and_only_as_many_as_needed() -> None:
    sizes = [50, 900, 100, 400, 60, 300, 80, 70]
    view = built(*(("line of text " * n,) for n in sizes), ("new " * 2_500,))
    action = pressure.relieve(at_share(view, 0.78), STEP)
    assert isinstance(action, Compact)
    (edit,) = action.edits
    assert edit.seqs == (6, 10)  # type: ignore[union-attr]


def test_a_rung_that_frees_too_little_is_skipped() -> None:
    """The old results are tiny and the long arguments too few: a summary is made at once."""
    view = built(*(("ok " * 30,) for _ in range(30)), ("new " * 200,))
    action = pressure.relieve(at_share(view, 0.8), STEP)
    assert isinstance(action, Compact | Summarise)
    for percent, wanted in ((20, Summarise), (80, type(None))):
        state = at_share(view, 0.8)
        picky = replace(state, settings={**state.settings, "compaction": {"min_reclaim_percent": percent}})
        assert isinstance(pressure.relieve(picky, STEP), wanted)


def test_no_model_is_asked_for_a_summary_that_would_free_too_little() -> None:
    """What is large is the newest call; the few old turns beside it are not worth a request each time."""
    old = built(*(("ok " * 60,) for _ in range(2)))
    seqs = iter(range(100, 102))
    made = ToolCall("long", "Write", json.dumps({"file_path": "a", "content": "word " * 20_000}))
    newest = (
        Entry(next(seqs), Message("assistant", None, (made,)), "model"),
        Entry(next(seqs), Message("tool", "Wrote it.", (), "long"), "tool", "Write"),
    )
    view = (*old[:-1], replace(old[-1], entries=(*old[-1].entries, *newest)))
    over = relieved(state_of(view, 12_000))
    assert over.end is None and over.asked == 0
    assert [e.strategy for e in compactions(over.events)] == ["shorten"]


def test_plan_tools_results_and_what_is_pinned_are_never_elided() -> None:
    view = built(*(("line of text " * 300,) for _ in range(6)))
    plan = tuple(replace(s, entries=tuple(replace(e, name="UpdatePlanStep") if e.name else e for e in s.entries)) for s in view)
    action = pressure.relieve(at_share(plan, 0.9), STEP)
    assert not isinstance(action, Compact) or action.strategy not in ("elide", "cut")


def test_one_oversized_newest_result_is_cut_on_a_character_and_says_how_to_read_on() -> None:
    view = built(("😀e\u0301中" * 20_000,))
    over = relieved(state_of(view, 16_000))
    assert over.end is None and over.asked == 0
    (event,) = compactions(over.events)
    (edit,) = event.edits
    assert isinstance(edit, Cut)
    text = list(context.entries(over.state.view))[-1].message.content or ""
    assert len(text) == edit.keep and 'ExpandHistory(ids="4")' in text
    text.encode("utf-8")
    assert [m.role for m in context.messages(over.state.view)] == ["system", "user", "assistant", "tool"]


def test_the_message_with_the_most_tokens_is_cut_as_a_tokenizer_counted_them() -> None:
    base = built(("word " * 600, "word " * 200))
    counted = {4: 300, 5: 900}
    view = tuple(replace(s, entries=tuple(replace(e, counted=counted.get(e.seq)) for e in s.entries)) for s in base)
    raw = next(e.raw for e in context.entries(base) if e.seq == 4) - PER_MESSAGE
    for seen, seq, size, tokens in ((base, 4, 3_000, raw), (view, 5, 1_000, 900)):
        (edit,) = ladder.cut(ladder.groups(seen), 200)
        assert edit == Cut(seq, int(size * (tokens - 200 - 60) / tokens))
    blank = tuple(replace(s, entries=tuple(replace(e, counted=0) for e in s.entries)) for s in base)
    assert ladder.cut(ladder.groups(blank), 500) == ()


def test_large_results_of_one_message_are_cut_at_once_and_to_one_size() -> None:
    """Twenty calls made side by side: none keeps all of its result at the cost of the others."""
    view = built(("ok", *("line of text " * 4_000 for _ in range(20))))
    over = relieved(state_of(view, 32_000))
    (event,) = compactions(over.events)
    assert over.end is None and len(event.edits) == 20
    assert len({e.keep for e in event.edits if isinstance(e, Cut)}) == 1
    assert all(isinstance(e, Cut) and e.keep > 1_000 for e in event.edits)


def test_long_arguments_of_the_newest_call_give_way_before_the_run_does() -> None:
    call = replace(next(e for e in context.entries(built(("ok",))) if e.message.tool_calls))
    long = json.dumps({"file_path": "a", "content": "word " * 20_000})
    entry = replace(call, message=replace(call.message, tool_calls=(replace(call.message.tool_calls[0], arguments=long),)))
    base = built(("ok",))
    view = tuple(replace(s, entries=tuple(entry if e.seq == entry.seq else e for e in s.entries)) for s in base)
    over = relieved(state_of(view, 8_000))
    assert over.end is None
    assert [a.strategy for a in over.actions if isinstance(a, Compact)] == ["shorten"]


def test_notices_add_up() -> None:
    view = built(*(("x1 " * 150,) for _ in range(40)))
    state = state_of(view, 2_500, digest_only="three")
    first = relieved(state, most=1000)
    notes = [e for e in context.entries(first.state.view) if e.note and not e.note.filler]
    assert first.end is None and len(notes) == 1
    assert sum(e.covers for e in context.entries(first.state.view)) == context.count(view)


# --- overflow and the floor ---------------------------------------------------------------------------------------------


def test_an_overflow_takes_the_fresh_tail_too() -> None:
    view = built(*(("line of text " * 300,) for _ in range(6)))
    calm = pressure.relieve(at_share(view, 0.8), STEP)
    hard = pressure.relieve(overflowing(at_share(view, 1.05)), STEP)
    assert isinstance(calm, Compact) and isinstance(hard, Compact)
    assert hard.trigger == "overflow"
    assert len(hard.edits[0].seqs) >= len(calm.edits[0].seqs)  # type: ignore[union-attr]


def test_twenty_rounds_and_no_more() -> None:
    view = built(("ok",))
    assert pressure.relieve(overflowing(state_of(view, 50_000), 20), STEP) is None
    end = pressure.relieve(overflowing(state_of(view, 50_000), 21), STEP)
    assert isinstance(end, End) and end.outcome == "context" and "21 requests" in end.reason


def test_a_floor_over_the_budget_costs_no_summary_and_names_its_sizes() -> None:
    view = built(*(("line of text " * 300,) for _ in range(30)), system="rule " * 3_000)
    over = relieved(state_of(view, 4_000), lambda action: SUMMARY)
    assert over.end is not None and over.asked == 0 and over.events == []
    assert "4,000 tokens by settings" in over.end.reason and "The floor is" in over.end.reason


def test_a_large_task_is_a_floor_too() -> None:
    base = built(*(("ok " * 50,) for _ in range(12)))
    user = base[1].entries[0]
    view = (
        base[0],
        replace(base[1], entries=(replace(user, message=replace(user.message, content="task " * 4_000)), *base[1].entries[1:])),
    )
    over = relieved(state_of(view, 4_000), lambda action: SUMMARY)
    assert over.end is not None and over.asked == 0
