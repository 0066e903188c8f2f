"""What each edit does to a view. Applying the same edits to the same view gives the same bytes, on every machine."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from operator import is_
from typing import assert_never

from planrun.core import context
from planrun.core.context import Entry, Note, Segment, View
from planrun.core.edits import Cut, Drop, Edit, Elide, Insert, Shorten
from planrun.core.messages import Message, Role, ToolCall, compact_json, well_formed

_KEPT = 200  # characters of a shortened argument that stay
GO_ON = "Go on."
NOTED = "Noted."


def apply(view: View, edits: tuple[Edit, ...], seq: int = 0) -> View:
    """The view after these edits, which stand in record `seq`. Records that are not in the view are left alone."""
    for edit in edits:
        match edit:
            case Elide(seqs, by):
                view = map_entries(view, seqs, elided if by == "boundary" else partial(elided, worded=window_placeholder))
            case Shorten(seqs):
                view = map_entries(view, seqs, shortened)
            case Cut(target, keep):
                view = map_entries(view, (target,), partial(cut, keep=keep))
            case Drop(first, last):
                view = _drop(view, first, last)
            case Insert():
                view = _insert(view, edit, seq)
            case _:
                assert_never(edit)
    return view


def _drop(view: View, first: int, last: int) -> View:
    out = []
    for segment in view:
        kept = tuple(e for e in segment.entries if e.message.role == "system" or not _within(e, first, last))
        if len(kept) == len(segment.entries):
            out.append(segment)
        elif kept:
            out.append(Segment(segment.step, kept))
    return tuple(out)


def _within(entry: Entry, first: int, last: int) -> bool:
    return first <= entry.span[0] and entry.span[1] <= last


def _insert(view: View, edit: Insert, seq: int) -> View:
    """A note takes turns with its neighbours: it is the assistant's after a user message or a tool result, else the user's; where the
    next message would be the same side's, a short line comes between."""
    flat = [(s.step, e) for s in view for e in s.entries]
    gone = [i for i, (_, e) in enumerate(flat) if e.message.role != "system" and _within(e, edit.first, edit.last)]
    if not gone:
        return view
    at, leaving = gone[0], set(gone)
    previous = flat[at - 1][1].message.role if at else ""
    after: Role = "user" if flat[-1][1].message.role == "assistant" else "assistant"  # what comes next where all goes
    following = next((e.message.role for i, (_, e) in enumerate(flat) if i > at and i not in leaving), after)
    mine: Role = "assistant" if previous in ("user", "tool") else "user"
    covers = sum([flat[i][1].covers for i in gone])
    note = Note(edit.level, edit.first, edit.last, deterministic=edit.deterministic, messages=covers)
    step = flat[at][0]
    new = [(step, Entry(seq, Message(mine, edit.text), "runner", settled=True, note=note))]
    if following == mine:
        filler = Message("user", GO_ON) if mine == "assistant" else Message("assistant", NOTED)
        new.append((step, Entry(seq, filler, "runner", settled=True, note=replace(note, filler=True, messages=0))))
    kept = [*flat[:at], *new, *(pair for i, pair in enumerate(flat) if i > at and i not in leaving)]
    return _segments(view, kept)


def _segments(view: View, flat: list[tuple[str | None, Entry]]) -> View:
    """Entries gathered into segments again; a segment that did not change stays the same object, with what it has computed."""
    known = {(s.step, s.entries[0].seq): s for s in view if s.entries}
    out: list[Segment] = []
    group: list[Entry] = []
    for position, (step, entry) in enumerate(flat):
        group.append(entry)
        if position + 1 == len(flat) or flat[position + 1][0] != step:
            old = known.get((step, group[0].seq))
            made = tuple(group)
            out.append(old if old is not None and old.entries == made else Segment(step, made))
            group = []
    return tuple(out)


def elided(entry: Entry, worded: Callable[[Entry], str] = context.placeholder) -> Entry:
    """The entry with a placeholder for its text. One that was edited before stays: twice is once."""
    if entry.settled:
        return entry
    old = entry.message
    message = Message(old.role, worded(entry), old.tool_calls, old.tool_call_id)
    return Entry(
        entry.seq, message, entry.origin, entry.name, True
    )  # settled, as a note is; by name it would take a tenth longer


def window_placeholder(entry: Entry) -> str:
    """The placeholder of a result that had to go in the middle of a step: it names the call that brings it back."""
    size = len(entry.message.content or "")
    return f'[{entry.name} result left out, {size} chars: ExpandHistory(ids="{entry.seq}") brings it back]'


def cut(entry: Entry, keep: int) -> Entry:
    """The entry with the middle of its text left out, `keep` characters long, with a line that says how to read the rest. Twice is
    once. Arguments of calls can still be shortened."""
    text = entry.message.content or ""
    if len(text) <= keep:
        return entry
    line = f'\n[… the middle is left out to fit the window: ExpandHistory(ids="{entry.seq}") has all of it …]\n'
    stays = max(0, keep - len(line))
    head = stays * 2 // 3
    content = well_formed(text[:head] + line + text[len(text) - (stays - head) :])
    settled = entry.settled or not entry.message.tool_calls
    return replace(entry, message=replace(entry.message, content=content), settled=settled, counted=None)


def shortened(entry: Entry) -> Entry:
    """The entry with long call arguments cut, still valid JSON with the same keys where they fit. Twice is once."""
    if entry.settled:
        return entry
    calls = tuple(
        replace(c, arguments=_shorten(c, entry.seq)) if len(c.arguments) > context.LONG_ARGUMENTS else c
        for c in entry.message.tool_calls
    )
    return replace(entry, message=replace(entry.message, tool_calls=calls), settled=True, counted=None)


def _shorten(call: ToolCall, seq: int) -> str:
    note = f"[arguments shortened by step-boundary compaction: {call.name}, {len(call.arguments)} chars, id {seq}]"
    cut = _cut(json.loads(call.arguments), note)
    text = well_formed(compact_json(cut))  # half a character may stand escaped in the arguments
    return text if len(text) <= context.LONG_ARGUMENTS else compact_json({"shortened": note})


def _cut(value: object, note: str) -> object:
    if isinstance(value, str) and len(value) > _KEPT + len(note):
        return value[:_KEPT] + note
    if isinstance(value, dict):
        return {k: _cut(v, note) for k, v in value.items()}
    if isinstance(value, list):
        return [_cut(v, note) for v in value]
    return value


def map_entries(view: View, change: Iterable[int], edit: Callable[[Entry], Entry]) -> View:
    """The view with `edit` (Entry -> Entry) applied to the entries of these records; other segments stay the same objects."""
    wanted, at, out = sorted(change), 0, []
    for segment in view:
        # Records rise from segment to segment: those of this one are a stretch of the wanted ones.
        end = bisect_right(wanted, segment.entries[-1].span[1], at) if segment.entries else at
        here, at = frozenset(wanted[at:end]), end
        made = tuple([edit(e) if e.seq in here else e for e in segment.entries]) if here else segment.entries
        out.append(segment if all(map(is_, made, segment.entries)) else Segment(segment.step, made))
    return tuple(out)
