"""The pairing check: what a strict endpoint would refuse in a list of messages. Run before every request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planrun.core.messages import Message

if TYPE_CHECKING:  # segments keep what is found inside them
    from planrun.core.context import Entry, View

_IN_TURN = frozenset(
    [("", "system"), ("", "user"), ("system", "user"), ("assistant", "user"), ("user", "assistant"), ("tool", "assistant")]
)  # roles that may stand side by side at the edge of two segments


def faults(view: View, *, resting: bool = False) -> list[str]:
    """What a strict endpoint would refuse in these messages; empty when they may be sent. A list that is `resting` may go on:
    its last calls may be unanswered, and anybody may have spoken last."""
    found: list[str] = []
    previous = ""
    for segment in view:
        if segment.entries:
            first, last = segment.ends
            if (previous, first) not in _IN_TURN:
                head = segment.entries[0]
                found += [f"message at record {head.seq}: {why}" for why in _misplaced(head.message, previous)]
            if segment.faults:
                found += segment.faults if not resting or segment is not view[-1] else inside(segment.entries, resting=True)
            previous = last
    newest = view[-1].call_ids if view else ()  # the others were the newest once
    if newest and any(not s.call_ids.isdisjoint(newest) for s in view[:-1]):
        found.append("a call id is used twice")
    if previous not in ("user", "tool") and not resting:
        found.append(f"the list ends with {previous or 'nothing'}")
    return found


def inside(entries: tuple[Entry, ...], *, resting: bool = False) -> Iterator[str]:
    """What is wrong inside a segment: calls without results, results without calls, roles out of turn, ids twice. The last calls
    of one that is `resting` may still get theirs."""
    waiting: list[str] = []
    seen: set[str] = set()
    previous = ""
    for position, entry in enumerate(entries):
        message = entry.message
        if message.role == "tool":
            if not waiting or waiting.pop(0) != message.tool_call_id:
                yield f"message at record {entry.seq}: a tool result without its call before it"
        else:
            if waiting:
                yield f"message at record {entry.seq}: calls {waiting} have no result"
            waiting = [c.id for c in message.tool_calls]
            for why in (*(_misplaced(message, previous) if position else ()), *_misnamed(waiting, seen)):
                yield f"message at record {entry.seq}: {why}"
            seen.update(waiting)
        previous = message.role
    if waiting and not resting:
        yield f"calls {waiting} have no result"


def _misplaced(message: Message, previous: str) -> Iterator[str]:
    """What is wrong with a message that is no tool result, standing after one of role `previous` ("" at the beginning)."""
    match message.role:
        case "system" if previous:
            yield "a system message that is not the first"
        case "user" if previous in ("user", "tool"):
            yield f"a user message directly after a {previous} message"
        case "assistant":
            if previous in ("assistant", "system", ""):
                yield f"an assistant message after {previous or 'nothing'}"
            if not message.tool_calls and not (message.content or "").strip():
                yield "an empty assistant message"


def _misnamed(calls: list[str], seen: set[str]) -> Iterator[str]:
    if "" in calls:
        yield "a call without an id"
    if seen.intersection(calls) or len(set(calls)) < len(calls):
        yield "a call id is used twice"
