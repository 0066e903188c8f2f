"""Law 3: every strategy on every history keeps pairs whole and the order of the archive, is never longer, and is idempotent."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core import context, editing, pairing
from planrun.core.context import LONG_ARGUMENTS, Entry, Segment, View
from planrun.core.edits import Drop, Elide, Insert, Shorten
from planrun.core.messages import Message, Origin, ToolCall, compact_json
from planrun.core.plan import Strategy
from planrun.core.strategies import boundary
from tests.pairs import Wire, problems
from tests.strategies import conversations

STRATEGIES: tuple[Strategy, ...] = ("keep", "compact", "clear", "summary")
strategies = st.sampled_from(STRATEGIES)
TASK = Entry(999, Message("user", "Go on."), "user")  # what the next step adds, so that the list may be sent


def wires(view: View) -> list[Wire]:
    return [m.wire() for m in context.messages(view)]


def view_of(*messages: Message, step: str = "one") -> View:
    origins: dict[str, Origin] = {"user": "user", "assistant": "model", "tool": "tool", "system": "runner"}
    return (Segment(step, tuple(Entry(n, m, origins[m.role], "Bash") for n, m in enumerate(messages, 2))),)


def size(view: View) -> int:
    return len(context.wire(view))


def seqs(view: View) -> list[int]:
    return [e.seq for e in context.entries(view)]


def compacted(strategy: Strategy, view: View) -> View:
    return editing.apply(view, boundary.edits(strategy, view))


@given(conversations(broken=True))
def test_faults_are_what_a_strict_endpoint_would_refuse(view: View) -> None:
    assert bool(pairing.faults(view)) == bool(problems(wires(view), alternate=True))


@given(conversations())
def test_what_the_runner_leaves_may_be_sent_with_the_next_task(view: View) -> None:
    assert pairing.faults(context.add(view, "next", TASK)) == []


@given(strategies, conversations())
def test_a_strategy_keeps_pairs_whole_and_is_never_longer(strategy: Strategy, view: View) -> None:
    before = wires(view)
    after = compacted(strategy, view)
    assert pairing.faults(context.add(after, "next", TASK)) == []
    assert size(after) <= size(view)
    assert context.count(after) <= context.count(view)
    assert seqs(after) == [s for s in seqs(view) if s in set(seqs(after))]
    assert all(json.loads(c.arguments) is not None for m in context.messages(after) for c in m.tool_calls)
    assert wires(view) == before


@given(strategies, conversations())
def test_twice_is_once(strategy: Strategy, view: View) -> None:
    edits = boundary.edits(strategy, view)
    once = editing.apply(view, edits)
    assert boundary.edits(strategy, once) == ()
    assert editing.apply(once, edits) == once


@given(conversations())
def test_keep_is_the_identity(view: View) -> None:
    assert boundary.edits("keep", view) == ()
    assert compacted("keep", view) is view


@given(conversations(), conversations())
def test_what_was_elided_stays_with_the_same_bytes(view: View, later: View) -> None:
    moved = tuple(
        Segment(f"later {s.step}", tuple(Entry(e.seq + 1000, e.message, e.origin, e.name) for e in s.entries))
        for s in later[1:]
    )
    once = compacted("compact", view)
    again = compacted("compact", (*once, *moved))
    assert context.wire(again).startswith(context.wire(once)[:-1])


@given(conversations())
def test_clear_leaves_the_system_message_alone(view: View) -> None:
    assert [m.role for m in context.messages(compacted("clear", view))] == ["system"]


@given(conversations())
def test_compact_touches_nothing_but_results_and_long_arguments(view: View) -> None:
    for old, new in zip(context.entries(view), context.entries(compacted("compact", view)), strict=True):
        if old.message.role in ("system", "user") or old.name in context.PINNED:
            assert new is old
        if old.message.role == "assistant":
            assert new.message.content == old.message.content
            for call, cut in zip(old.message.tool_calls, new.message.tool_calls, strict=True):
                assert (cut.id, cut.name) == (call.id, call.name)
                assert cut.arguments == call.arguments or len(call.arguments) > LONG_ARGUMENTS >= len(cut.arguments)
        if old.message.role == "tool" and new is not old:
            assert new.message.content == context.placeholder(old)


@given(conversations(), st.lists(st.integers(1, 60)), st.integers(1, 60), st.integers(1, 60))
def test_cached_sizes_and_digests_are_those_of_the_messages(view: View, some: list[int], first: int, last: int) -> None:
    edited = editing.apply(view, (Elide(tuple(some)), Shorten(tuple(some)), Drop(first, last)))
    fresh = tuple(
        Segment(s.step, tuple(Entry(e.seq, e.message, e.origin, e.name, e.settled) for e in s.entries)) for s in edited
    )
    assert context.wire(edited) == context.wire(fresh) == compact_json(wires(edited)).encode("utf-8")
    assert context.digest(edited, "t") == context.digest(fresh, "t")
    assert context.raw_size(edited) == context.raw_size(fresh)


@given(conversations(), st.lists(st.integers(1, 60)), st.lists(st.tuples(st.integers(2, 60), st.integers(0, 9)), max_size=3))
def test_just_the_named_records_are_edited_whatever_notes_stand_between(
    view: View, some: list[int], notes: list[tuple[int, int]]
) -> None:
    for number, (first, more) in enumerate(notes):
        view = editing.apply(view, (Insert("A note.", first, first + more),), 900 + number)
    after = editing.apply(view, (Elide(tuple(some)),))
    assert [list(s.entries) for s in after] == [[editing.elided(e) if e.seq in some else e for e in s.entries] for s in view]
    for old, new in zip(view, after, strict=True):
        assert (new is old) == (new == old)


def test_the_placeholder_says_what_went() -> None:
    view = view_of(*_pair("x" * 500))
    edits = boundary.edits("compact", view)
    assert edits == (Elide((4,)),)
    text = context.messages(editing.apply(view, edits))[-1].content
    assert text == "[ToolResult elided by step-boundary compaction: Bash, 500 chars, id 4]"


def test_a_result_no_longer_than_its_placeholder_stays() -> None:
    length = len("[ToolResult elided by step-boundary compaction: Bash, 70 chars, id 4]")
    assert boundary.edits("compact", view_of(*_pair("x" * length))) == ()
    assert boundary.edits("compact", view_of(*_pair("x" * (length + 1)))) == (Elide((4,)),)


def test_results_of_the_plan_tool_stay() -> None:
    call = ToolCall("a", "UpdatePlanStep", "{}")
    entries = (
        Entry(2, Message("assistant", None, (call,)), "model"),
        Entry(3, Message("tool", "y" * 900, (), "a"), "tool", call.name),
    )
    assert boundary.edits("compact", (Segment("one", entries),)) == ()


def _pair(result: str, arguments: str = "{}") -> Iterable[Message]:
    call = ToolCall("a", "Bash", arguments)
    return Message("user", "go"), Message("assistant", None, (call,)), Message("tool", result, (), "a")


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "x" * 5000, "file_path": "a.txt"},
        {"content": "\N{GRINNING FACE}" * 3000},
        {"edits": [{"old": "y" * 1500, "new": "z" * 1500}] * 2},
        {"list": list(range(2000))},
        {f"key{n}" * 10: "v" for n in range(200)},
    ],
)
def test_shortened_arguments_are_shorter_valid_json(arguments: object) -> None:
    text = compact_json(arguments)
    view = view_of(*_pair("ok", text))
    after = editing.apply(view, boundary.edits("compact", view))
    cut = context.messages(after)[1].tool_calls[0].arguments
    assert len(cut) <= LONG_ARGUMENTS < len(text)
    assert "shortened by step-boundary compaction: Bash" in cut
    json.loads(cut)


def test_shortening_arguments_with_half_a_character_escaped_in_them_can_be_sent() -> None:
    text = '{"content": "\\ud83d' + "x" * 3000 + '"}'
    view = view_of(*_pair("ok", text))
    assert "\N{REPLACEMENT CHARACTER}" in context.wire(compacted("compact", view)).decode("utf-8")


def test_messages_of_one_step_share_a_segment() -> None:
    view: View = ()
    for seq, step in enumerate((None, "one", "one", "two"), 1):
        view = context.add(view, step, Entry(seq, Message("user", "x"), "user"))
    assert [(s.step, len(s.entries)) for s in view] == [(None, 1), ("one", 2), ("two", 1)]
    assert context.last(view) is view[-1].entries[-1]


def test_unanswered_calls_come_in_call_order() -> None:
    calls = tuple(ToolCall(i, "Bash", "{}") for i in "abc")
    messages = [Message("user", "go"), Message("assistant", None, calls)]
    for done in range(4):
        assert [c.id for c in context.unanswered(view_of(*messages))] == ["a", "b", "c"][done:]
        messages.append(Message("tool", "ok", (), "abc"[min(done, 2)]))
    assert context.unanswered(()) == ()


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([], "the list ends with nothing"),
        ([Message("system", "s")], "the list ends with system"),
        ([Message("user", "a"), Message("user", "b")], "message at record 3: a user message directly after a user message"),
        ([Message("assistant", "a"), Message("user", "b")], "message at record 2: an assistant message after nothing"),
        ([Message("user", "a"), Message("system", "s")], "message at record 3: a system message that is not the first"),
        ([*_pair("ok"), Message("user", "b")], "message at record 5: a user message directly after a tool message"),
        ([*_pair("ok"), *_pair("ok")], "message at record 6: a call id is used twice"),
        ([*_pair("ok"), Message("tool", "again", (), "a")], "message at record 5: a tool result without its call before it"),
        (
            [Message("user", "a"), Message("assistant", None, (ToolCall("", "Bash", "{}"),))],
            "message at record 3: a call without an id",
        ),
        (
            [Message("user", "a"), Message("assistant", " "), Message("user", "b")],
            "message at record 3: an empty assistant message",
        ),
        (list(_pair("ok"))[:2], "calls ['a'] have no result"),
    ],
)
def test_a_fault_is_named(messages: list[Message], fault: str) -> None:
    assert fault in pairing.faults(view_of(*messages))


def test_a_result_that_opens_a_segment_is_named() -> None:
    stray = Segment("a", (Entry(3, Message("tool", "x", tool_call_id="c"), "tool", "Bash"),))
    assert pairing.faults((stray,)) == ["message at record 3: a tool result without its call before it"]
