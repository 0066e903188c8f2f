"""Records: events at their place in the log, as JSON and back.

Fields that hold their default are left out. Those that the contract names have no default, so they are always written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args

from planrun.core.edits import Edit
from planrun.core.events import Compacted, Event, Unknown

EDITS: dict[str, type[Any]] = {e.kind: e for e in get_args(Edit)}
TYPES: dict[str, type[Any]] = {e.type: e for e in get_args(Event) if e is not Unknown}


@dataclass(frozen=True, slots=True)
class Record:
    """An event at its place: `seq` counts from 1, `timestamp` in Unix seconds."""

    seq: int
    timestamp: float
    event: Event


def _shape(cls: type[Any]) -> tuple[tuple[str, object, bool], ...]:
    out = []
    for f in fields(cls):
        made = f.default_factory
        default = made() if made is not MISSING else f.default
        out.append((f.name, default, default is MISSING))
    return tuple(out)


_SHAPES: dict[type[Any], tuple[tuple[str, object, bool], ...]] = {c: _shape(c) for c in (*TYPES.values(), *EDITS.values())}


def encode(event: Event) -> dict[str, Any]:
    """The record's own fields, without seq, timestamp and prev. Strategy names, statuses and texts stand as they are."""
    if isinstance(event, Unknown):
        return dict(event.body)
    body: dict[str, Any] = {"type": event.type, **_fields(event)}
    if isinstance(event, Compacted):
        body["edits"] = [{"edit": e.kind, **_fields(e)} for e in event.edits]
    return body


def _fields(item: object) -> dict[str, Any]:
    body = {}
    for name, default, always in _SHAPES[type(item)]:
        value = getattr(item, name)
        if always or value != default:
            body[name] = value
    return body


def decode(body: Mapping[str, Any]) -> Event:
    """The event of a record's fields. Raises ValueError, TypeError or KeyError where they do not fit the type."""
    cls = TYPES.get(body["type"])
    if cls is None:
        return Unknown({k: v for k, v in body.items() if k not in ("seq", "timestamp", "prev")})
    values: dict[str, Any] = {}
    for name, _, always in _SHAPES[cls]:
        if name in body:
            value = body[name]
            values[name] = tuple(value) if isinstance(value, list) and name in _TUPLES else value
        elif always:
            raise ValueError(f"a {body['type']} record without {name}")
    if cls is Compacted:
        values["edits"] = tuple(_edit(e) for e in body["edits"])
    event: Event = cls(**values)
    return event


_TUPLES = frozenset({"tool_calls", "faults", "messages", "edits"})


def _edit(body: Mapping[str, Any]) -> Edit:
    cls = EDITS[body["edit"]]
    values = {n: tuple(body[n]) if n == "seqs" else body[n] for n, *_ in _SHAPES[cls] if n in body}
    edit: Edit = cls(**values)
    return edit
