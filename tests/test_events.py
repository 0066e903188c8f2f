"""Law 1, the half of it that concerns one record: decode(encode(event)) == event, also by way of JSON."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from typing import Any

import pytest
from hypothesis import given

from planrun.core.edits import Drop, Elide
from planrun.core.events import CallEnded, Compacted, Event, Said, Session, Unknown
from planrun.core.messages import Message, ToolCall, compact_json
from planrun.core.records import TYPES, decode, encode
from planrun.session.log import read_record
from tests.strategies import events, patient


@patient
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


@pytest.mark.parametrize("cls", TYPES.values(), ids=TYPES)
def test_a_field_of_the_contract_must_be_there(cls: type[Any]) -> None:
    needed = [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    body = {"type": cls.type, **dict.fromkeys(needed, "x"), "edits": []}
    for name in needed:
        with pytest.raises((ValueError, KeyError)):
            decode({k: v for k, v in body.items() if k != name})


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
