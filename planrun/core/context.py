"""The active context: what the model is sent next, as a view of the archive.

A view is a tuple of segments, one for each step attempt (the system message stands in one of its own). Everything that is
costly about a message is computed once and kept with its entry or its segment: bytes for the request, digest, tokens.
That is why a turn costs the same at step 1,000 as at step 1."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from planrun.core import names, pairing
from planrun.core.messages import Message, Origin, ToolCall, compact_json
from planrun.core.tokens import PER_MESSAGE, raw_tokens
from planrun.core.value import value

PINNED = frozenset({names.PLAN_TOOL})  # tools whose results no compaction touches
_SURELY = 500  # characters: no placeholder is that long
LONG_ARGUMENTS = 2_000  # characters of a call's arguments that stay in full


@dataclass(frozen=True, slots=True)
class Note:
    """What a note covers: the records `first` to `last`, in all so many `messages`. `level` is that of its edit; `filler` marks the
    short line that only keeps user and assistant taking turns."""

    level: int
    first: int
    last: int
    filler: bool = False
    deterministic: bool = False
    messages: int = 0


class _Remembering:
    """Room for what is computed once, in a class with slots."""

    __slots__ = ("__dict__",)


@value
class Entry(_Remembering):
    """One message of the view and the number of the record that it came from. `name` is the tool of a tool result."""

    seq: int
    message: Message
    origin: Origin
    name: str | None = None
    settled: bool = False  # already a placeholder or shortened: never edited again
    note: Note | None = None
    counted: int | None = None  # tokens of the text and the calls, where a tokenizer counted them

    @property
    def span(self) -> tuple[int, int]:
        """First and last record of the archive that this message stands for."""
        return (self.note.first, self.note.last) if self.note else (self.seq, self.seq)

    @property
    def covers(self) -> int:
        """How many messages of the archive it stands for."""
        return self.note.messages if self.note else 1

    @cached_property
    def wire(self) -> bytes:
        return compact_json(self.message.wire()).encode("utf-8")

    @cached_property
    def digest(self) -> bytes:
        return hashlib.sha256(self.wire).digest()

    @cached_property
    def raw(self) -> float:
        if self.counted is not None:
            return PER_MESSAGE * (1.0 + len(self.message.tool_calls)) + self.counted
        text = self.message.content
        calls = sum(raw_tokens(c.arguments) + raw_tokens(c.name) + PER_MESSAGE for c in self.message.tool_calls)
        return PER_MESSAGE + (raw_tokens(text) if text else 0.0) + calls


@dataclass(frozen=True)
class Segment:
    """The messages of one step (None: the system message), in the order of the archive."""

    step: str | None
    entries: tuple[Entry, ...] = ()

    @cached_property
    def wire(self) -> bytes:
        return b",".join([e.wire for e in self.entries])

    @cached_property
    def digests(self) -> bytes:
        return b"".join([e.digest for e in self.entries])

    @cached_property
    def raw(self) -> float:
        return sum(e.raw for e in self.entries)

    @cached_property
    def call_ids(self) -> frozenset[str]:
        return frozenset(c.id for e in self.entries for c in e.message.tool_calls)

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """What is wrong inside the segment."""
        return tuple(pairing.inside(self.entries))

    @cached_property
    def ends(self) -> tuple[str, str]:
        """The roles of the first and of the last message."""
        return self.entries[0].message.role, self.entries[-1].message.role

    @cached_property
    def has_calls(self) -> bool:
        return any(e.message.tool_calls for e in self.entries)

    @cached_property
    def summaries(self) -> tuple[Entry, ...]:
        """Notes that sum up what they cover, their fillers aside."""
        return tuple([e for e in self.entries if e.note is not None and e.note.level and not e.note.filler])

    @cached_property
    def reducible(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What a boundary makes less of: the records of tool results that are longer than their placeholder, plan tools' aside, and
        those of assistant messages with long call arguments."""
        results, arguments = [], []
        for entry in self.entries:
            message = entry.message
            if entry.settled:
                continue
            if message.tool_calls:
                for call in message.tool_calls:
                    if len(call.arguments) > LONG_ARGUMENTS:
                        arguments.append(entry.seq)
                        break
            elif message.role == "tool" and entry.name not in PINNED:
                size = len(message.content or "")
                if size > _SURELY or size > len(placeholder(entry)):
                    results.append(entry.seq)
        return tuple(results), tuple(arguments)


View = tuple[Segment, ...]


def entries(view: View) -> Iterator[Entry]:
    for segment in view:
        yield from segment.entries


def messages(view: View) -> list[Message]:
    return [e.message for e in entries(view)]


def add(view: View, step: str | None, entry: Entry) -> View:
    """The view with one more message, in the segment of `step`."""
    if view and view[-1].step == step:
        return (*view[:-1], Segment(step, (*view[-1].entries, entry)))
    return (*view, Segment(step, (entry,)))


def raw_size(view: View) -> float:
    return sum([s.raw for s in view])


def count(view: View) -> int:
    return sum([len(s.entries) for s in view])


def wire(view: View, before: bytes = b"", after: bytes = b"") -> bytes:
    """The JSON list of messages, as it stands in the request body between these two. All is put together once: to copy a long
    list costs more than all else about it. (The last segment still grows, and its own bytes would be made anew for every turn.)"""
    wires = [s.wire for s in view[:-1] if s.entries] + [e.wire for s in view[-1:] for e in s.entries]
    pieces = [piece for wire in wires for piece in (b",", wire)]
    pieces[:1] = [before, b"["]
    return b"".join([*pieces, b"]", after])


def digest(view: View, tools: str) -> str:
    """Names exactly these messages with these tools: 128 bits of sha256 over the tools' digest and the messages' digests, in hex."""
    return hashlib.sha256(tools.encode() + b"".join([s.digests for s in view])).hexdigest()[:32]


def last(view: View) -> Entry | None:
    return view[-1].entries[-1] if view and view[-1].entries else None


def unanswered(view: View) -> tuple[ToolCall, ...]:
    """The calls of the newest assistant message that have no result yet, in call order."""
    if not view:
        return ()
    tail = view[-1].entries
    at = len(tail) - 1
    while at >= 0 and tail[at].message.role == "tool":
        at -= 1
    if at < 0 or not tail[at].message.tool_calls:
        return ()
    return tail[at].message.tool_calls[len(tail) - 1 - at :]


def placeholder(entry: Entry) -> str:
    size = len(entry.message.content or "")
    return f"[ToolResult elided by step-boundary compaction: {entry.name}, {size} chars, id {entry.seq}]"
