"""Law 1, the half of it that concerns one record: decode(encode(event)) == event, also by way of JSON."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.core.edits import Drop, Elide
from planrun.core.events import CallEnded, Compacted, Event, Said, Session, Unknown
from planrun.core.messages import Message, ToolCall, compact_json
from planrun.core.plan import Json
from planrun.core.records import decode, encode
from planrun.session.reader import read_record
from tests.strategies import events, values

CUT = encode(Compacted("compact", "boundary", (), 1, 5, 4, 90, 70))
CALLS = {"type": "message", "role": "assistant", "content": None, "origin": "model"}


@given(events)
def test_every_event_survives_its_record(event: Event) -> None:
    body = {"seq": 1, **encode(event), "timestamp": 2.5, "prev": "0"}
    again = read_record(json.loads(compact_json(body)))
    assert (again.seq, again.timestamp, again.event) == (1, 2.5, event)
    assert compact_json(encode(again.event)) == compact_json(encode(event))
    assert decode(encode(event)) == event


def test_an_unknown_type_is_kept_as_it_stands() -> None:
    body = {"type": "hologram", "depth": [1, {"x": None}]}
    event = decode({"seq": 9, "timestamp": 1.0, "prev": "f", **body})
    assert event == Unknown(body)
    assert encode(event) == body


@given(events.filter(lambda e: not isinstance(e, Unknown)), st.data())
def test_a_field_of_the_contract_must_be_there(event: Event, data: st.DataObject) -> None:
    needed = [f.name for f in fields(event) if f.default is MISSING and f.default_factory is MISSING]
    name = data.draw(st.sampled_from(needed))
    with pytest.raises(ValueError, match=f"without {name}$"):
        decode({k: v for k, v in encode(event).items() if k != name})


@given(events.filter(lambda e: not isinstance(e, Unknown)), st.data(), values)
def test_a_field_of_another_type_is_no_record(event: Event, data: st.DataObject, other: Json) -> None:
    """Whatever a line holds, it is a record of the types that the fold relies on, or it is refused."""
    body = json.loads(compact_json(encode(event)))
    name = data.draw(st.sampled_from([f.name for f in fields(event)]))
    try:
        found = decode(body | {name: other})
    except (ValueError, TypeError, KeyError):
        return
    assert decode(json.loads(compact_json(encode(found)))) == found


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"type": "step", "step": 5, "status": "done", "attempt": 1}, "of type step whose step is 5"),
        ({"type": "step", "step": "a", "status": "lost", "attempt": 1}, "whose status is 'lost'"),
        ({"type": "step", "step": "a", "status": "done", "attempt": 1.5}, "whose attempt is 1.5"),
        ({"type": "message", "role": "user", "content": {}, "origin": "user"}, "whose content is {}"),
        ({"type": "tool_end", "call_id": "a", "name": "b", "status": "ok", "seconds": float("nan")}, "whose seconds is nan"),
        ({"type": "response", "usage": {"prompt_tokens": "1"}, "model": None, "seconds": 1}, "whose usage is"),
        (CUT | {"edits": [{"edit": "drop", "first": "1", "last": 2}]}, "an edit of type drop whose first is '1'"),
        (CALLS | {"tool_calls": [{"id": "a", "function": {"name": "b", "arguments": "[]"}}]}, "a tool call that is none"),
    ],
)
def test_what_does_not_fit_is_named(body: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        decode(body)


def test_defaults_are_left_out_and_the_contract_is_written() -> None:
    assert encode(Said("user", None, "user")) == {"type": "message", "role": "user", "content": None, "origin": "user"}
    header = encode(Session(1, "s", "/w", "/w/p.yaml", "", "", {}, "m", {}))
    assert {"format", "session", "cwd", "plan_path", "plan", "plan_digest", "params", "model", "settings"} < set(header)


def test_edits_carry_their_kind() -> None:
    event = Compacted("compact", "boundary", (Elide((3, 5)), Drop(1, 2)), 1, 5, 4, 90, 70)
    body = encode(event)
    assert body["edits"] == [{"edit": "elide", "seqs": (3, 5)}, {"edit": "drop", "first": 1, "last": 2}]
    assert decode(json.loads(compact_json(body))) == event


def test_tuples_come_back_as_tuples() -> None:
    event = CallEnded("run:a:1", "run", "ok", output={"list": [1, [2]]}, faults=("x",))
    assert decode(json.loads(compact_json(encode(event)))) == event


def test_a_message_keeps_its_calls_and_their_faults() -> None:
    message = Message("assistant", None, (ToolCall("a", "Bash", "{}", "cut off"), ToolCall("b", "Read", "{}")))
    said = Said.of(message, "model", "one", 1)
    assert decode(json.loads(compact_json(encode(said)))) == said
    assert said.message == message
