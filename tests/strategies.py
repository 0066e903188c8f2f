"""Hypothesis strategies: any event, any conversation, any run of a small plan. Events are drawn from the hints of their
fields, so one that gets a new field is covered at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from planrun.core.context import Entry, Segment, View
from planrun.core.edits import Drop, Edit, Elide, Shorten
from planrun.core.events import (
    Approval,
    CallEnded,
    CallStarted,
    Compacted,
    Ended,
    Event,
    Hooked,
    LimitNeared,
    Noted,
    Requested,
    Responded,
    Said,
    Session,
    StepChanged,
    Stopped,
    Unknown,
)
from planrun.core.messages import Message, ToolCall
from planrun.core.plan import Json, Plan, Step
from planrun.core.records import TYPES, Record

Draw = st.DrawFn
STEPS = ("one", "two", "three")
PLAN = Plan("small", "Do it.", tuple(Step(s, prompt=f"Do {s}.") for s in STEPS), index={s: i for i, s in enumerate(STEPS)})

texts = st.text(max_size=12)
names = st.sampled_from(["Bash", "Read", "UpdatePlanStep", "two words", ""])
numbers = st.integers(-(2**70), 2**70)
amounts = st.floats(0, 1e9, allow_nan=False)
scalars = st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | texts
values: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
arguments = st.dictionaries(texts, values | st.text(min_size=300, max_size=2500), max_size=3).map(
    lambda body: json.dumps(body, ensure_ascii=False)
)


def of_hint(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type. Raises TypeError for one that events do not have yet."""
    origin, inner = get_origin(hint), get_args(hint)
    known = {str: texts, int: st.integers(0, 2**60), float: amounts, bool: st.booleans(), NoneType: st.none(), Any: values}
    if hint in known:
        return known[hint]
    if hint in (Json, ForwardRef("Json")):
        return values
    if hint == Edit:
        return edits
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return values if any(get_origin(i) is list for i in inner) else st.one_of([of_hint(i) for i in inner])
    if origin is tuple and inner[1] is Ellipsis:
        return st.lists(of_hint(inner[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(texts, of_hint(inner[1]), max_size=3)
    raise TypeError(hint)


def of_class(cls: type[Any], **given: Any) -> st.SearchStrategy[Any]:
    """Objects of a dataclass: each field drawn from its hint, or left at its default."""
    hints = get_type_hints(cls)
    drawn = {f.name: given[f.name] if f.name in given else of_hint(hints[f.name]) for f in fields(cls)}
    needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
    some = st.fixed_dictionaries(
        {n: s for n, s in drawn.items() if n in needed or n in given},
        optional={n: s for n, s in drawn.items() if n not in needed and n not in given},
    )
    return some.map(lambda chosen: cls(**chosen))


edits: st.SearchStrategy[Edit] = st.one_of([of_class(c) for c in get_args(Edit)])
tool_calls = st.lists(
    st.builds(lambda i, n, a: {"id": i, "type": "function", "function": {"name": n, "arguments": a}}, texts, names, arguments),
    max_size=3,
).map(tuple)
unknown = st.dictionaries(texts.filter(lambda k: k not in ("seq", "timestamp", "prev", "type")), values, max_size=3).flatmap(
    lambda body: texts.filter(lambda t: t not in TYPES).map(lambda name: Unknown({"type": name, **body}))
)
events: st.SearchStrategy[Event] = st.one_of(
    unknown, *[of_class(c, tool_calls=tool_calls) if c is Said else of_class(c) for c in TYPES.values()]
)


@st.composite
def conversations(draw: Draw, broken: bool = False) -> View:
    """A view of up to four steps, well-formed as the runner leaves it: system, then in each step user, assistant, results.
    With `broken` a few messages are then lost, doubled or moved."""
    seq = iter(range(2, 1000))
    segments = [Segment(None, (Entry(next(seq), Message("system", "Be brief."), "runner"),))]
    for step in range(draw(st.integers(1, 4))):
        segments.append(Segment(f"s{step}", tuple(draw(_step(seq, step)))))
    if broken:
        segments = draw(_damaged(segments))
    return tuple(segments)


@st.composite
def _step(draw: Draw, seq: Iterator[int], step: int) -> list[Entry]:
    said = [Entry(next(seq), Message("user", draw(texts)), "user")]
    for turn in range(draw(st.integers(0, 3))):
        calls = tuple(ToolCall(f"c{step}.{turn}.{n}", draw(names), draw(arguments)) for n in range(draw(st.integers(1, 3))))
        said.append(Entry(next(seq), Message("assistant", draw(st.none() | texts), calls), "model"))
        for call in calls:
            result = draw(st.text(max_size=200) | st.text(min_size=60, max_size=120))
            said.append(Entry(next(seq), Message("tool", result, (), call.id), "tool", call.name))
    said.append(Entry(next(seq), Message("assistant", f"Step s{step} is done."), "runner"))
    return said


@st.composite
def _damaged(draw: Draw, segments: list[Segment]) -> list[Segment]:
    out = [list(s.entries) for s in segments]
    for _ in range(draw(st.integers(0, 3))):
        entries = draw(st.sampled_from(out))
        if entries:
            at = draw(st.integers(0, len(entries) - 1))
            match draw(st.sampled_from(["lose", "double", "move", "empty"])):
                case "lose":
                    del entries[at]
                case "double":
                    entries.insert(at, entries[at])
                case "move":
                    entries.insert(draw(st.integers(0, len(entries) - 1)), entries.pop(at))
                case _:
                    entries[at] = Entry(entries[at].seq, Message("assistant", " "), "model")
    return [Segment(s.step, tuple(e)) for s, e in zip(segments, out, strict=True)]


def _header(options: dict[str, Json]) -> Session:
    return Session(1, "s", "/home", "/home/plan.yaml", "steps: []", "d", {"p": 1}, "m", {}, options)


@st.composite
def runs(draw: Draw) -> list[Record]:
    """Records that can be folded: a header, then anything that may happen to the steps of PLAN, in any order."""
    first: Event = _header(draw(st.dictionaries(texts, values, max_size=2)))
    rest = draw(st.lists(st.one_of(*_happenings()), max_size=25))
    times = draw(st.lists(amounts, min_size=len(rest) + 1, max_size=len(rest) + 1))
    return [Record(n, round(t, 3), e) for n, (t, e) in enumerate(zip(times, (first, *rest), strict=True), 1)]


def _happenings() -> Iterator[st.SearchStrategy[Event]]:
    step, maybe = st.sampled_from(STEPS), st.sampled_from([None, *STEPS])
    ids = st.sampled_from(["a", "b", "c"])
    called = st.lists(st.builds(_call, ids, names, arguments), max_size=2).map(tuple)
    seqs = st.lists(st.integers(1, 26), max_size=4).map(tuple)
    kinds = st.one_of(st.builds(Elide, seqs), st.builds(Shorten, seqs), st.builds(Drop, st.integers(1, 26), st.integers(1, 26)))
    yield of_class(Said, role=st.just("tool"), step=maybe, tool_call_id=ids, tool_calls=st.just(()), faults=st.just({}))
    yield of_class(Said, role=st.just("assistant"), step=maybe, tool_calls=called)
    yield of_class(Said, step=maybe, tool_calls=st.just(()))
    yield of_class(Requested, step=maybe)
    yield of_class(Responded, usage=st.none() | st.fixed_dictionaries({"prompt_tokens": st.none() | st.integers(0, 10**6)}))
    yield of_class(CallStarted, call_id=ids, step=maybe)
    yield of_class(CallEnded, call_id=ids, step=maybe, name=st.sampled_from(["run", "verify", "Bash"]))
    yield of_class(StepChanged, step=step)
    yield of_class(Compacted, edits=st.lists(kinds, max_size=3).map(tuple))
    yield of_class(Noted, kind=st.sampled_from(["resumed", "retry"]))
    yield from map(of_class, (Approval, LimitNeared, Stopped, Ended, Hooked))
    yield unknown


def _call(call_id: str, name: str, text: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
