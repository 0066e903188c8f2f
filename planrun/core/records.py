"""Records: events at their place in the log, as JSON and back.

Fields that hold their default are left out. Those that the contract names have no default, so they are always written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args, get_type_hints

from planrun.core.edits import Edit
from planrun.core.events import Compacted, Event, Said, Unknown
from planrun.core.fitting import Fits, fits

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
_FITS: dict[type[Any], dict[str, Fits]] = {
    cls: {f.name: fits(hints[f.name]) for f in fields(cls)} for cls in _SHAPES for hints in [get_type_hints(cls)]
}


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
    values = _values(cls, body)
    if cls is Said:
        _check_calls(values.get("tool_calls", ()))
    event: Event = cls(**values)
    return event


def _values(cls: type[Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event or an edit. Raises ValueError for one that is missing, TypeError for one of another type."""
    values: dict[str, Any] = {}
    checks = _FITS[cls]
    for name, _, always in _SHAPES[cls]:
        if name in body:
            value = body[name]
            if isinstance(value, list) and name in _TUPLES:
                value = tuple([_edit(e) for e in value] if name == "edits" else value)
            if not checks[name](value):
                raise TypeError(f"{_kind(cls)} whose {name} is {_shown(value)}")
            values[name] = value
        elif always:
            raise ValueError(f"{_kind(cls)} without {name}")
    return values


_TUPLES = frozenset({"tool_calls", "faults", "messages", "edits", "seqs"})


def _kind(cls: type[Any]) -> str:
    return f"{'an edit' if cls in EDITS.values() else 'a record'} of type {getattr(cls, 'type', None) or cls.kind}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_SHOWN = 60  # characters


def _edit(body: Any) -> Edit:
    edit: Edit = EDITS[body["edit"]](**_values(EDITS[body["edit"]], body))
    return edit


def _check_calls(calls: tuple[dict[str, Any], ...]) -> None:
    """Raises TypeError, KeyError or ValueError where a tool call is not one, with arguments that are the JSON of an object."""
    for call in calls:
        function = call["function"]
        texts = (call["id"], function["name"], function["arguments"])
        if not all(isinstance(text, str) for text in texts) or not isinstance(json.loads(function["arguments"]), dict):
            raise TypeError(f"a tool call that is none: {_shown(call)}")
