"""The ladder: what goes, and in which order, when a step's messages outgrow their room.

Each rung is a pure function from the view to edits; it stops as soon as enough is freed and is skipped where it would
free too little. What is pinned never goes: the system message, the first user message (it has the goal), the current step's
message, plan tools' results. Calls stay with their results."""

from __future__ import annotations

from dataclasses import dataclass

from planrun.core import editing
from planrun.core.context import LONG_ARGUMENTS, PINNED, Entry, View
from planrun.core.edits import Cut, Edit, Elide, Insert, Shorten
from planrun.core.tokens import PER_MESSAGE, raw_tokens

_LEAST_KEPT = 200  # characters that a cut message keeps at the least


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that go or stay together: a turn (a reply and its results), a user message, a note with its filler."""

    entries: tuple[Entry, ...]
    pinned: bool

    @property
    def raw(self) -> float:
        return sum(e.raw for e in self.entries)

    @property
    def is_note(self) -> bool:
        return self.entries[0].note is not None


def groups(view: View) -> list[Group]:
    """The view in groups, in order. The last user message that opened a step and the very first one are pinned."""
    flat = [e for s in view for e in s.entries]
    users = [e for e in flat if e.message.role == "user" and e.note is None]
    opening = next((e for e in view[-1].entries if e.message.role == "user" and e.note is None), None) if view else None
    pinned = {e.seq for e in (*users[:1], *((opening,) if opening else ()))}
    out: list[list[Entry]] = []
    for entry in flat:
        follows = entry.message.role == "tool" or (entry.note is not None and entry.note.filler)
        if follows and out:
            out[-1].append(entry)
        else:
            out.append([entry])
    return [Group(tuple(g), g[0].message.role == "system" or (g[0].note is None and g[0].seq in pinned)) for g in out]


def tail_start(parts: list[Group], room: float) -> int:
    """Where the fresh tail begins: the newest groups that fit in `room` raw tokens, one turn at the least."""
    taken, at = 0.0, len(parts)
    while at > 0 and not parts[at - 1].pinned:
        taken += parts[at - 1].raw
        if taken > room and at < len(parts):
            break
        at -= 1
    return at


def elide(parts: list[Group], end: int, excess: float) -> tuple[Edit, ...]:
    """Old tool results, the largest first, until `excess` raw tokens are freed."""
    found = [e for g in parts[:end] for e in g.entries if _elidable(e)]
    found.sort(key=lambda e: (-_saved(e), e.seq))
    chosen, freed = [], 0.0
    for entry in found:
        if freed >= excess:
            break
        chosen.append(entry.seq)
        freed += _saved(entry)
    return (Elide(tuple(sorted(chosen)), by="window"),) if chosen else ()


def _elidable(entry: Entry) -> bool:
    return not entry.settled and entry.message.role == "tool" and entry.name not in PINNED and _saved(entry) > 0


def _saved(entry: Entry) -> float:
    return entry.raw - PER_MESSAGE - raw_tokens(editing.window_placeholder(entry))


def shorten(parts: list[Group], end: int, excess: float) -> tuple[Edit, ...]:
    """Long arguments of old calls, the oldest first."""
    chosen, freed = [], 0.0
    for entry in (e for g in parts[:end] for e in g.entries if not e.settled):
        long = any(len(c.arguments) > LONG_ARGUMENTS for c in entry.message.tool_calls)
        if long and freed < excess:
            chosen.append(entry.seq)
            freed += entry.raw - editing.shortened(entry).raw
    return (Shorten(tuple(chosen)),) if freed > 0 else ()


def drop(parts: list[Group], end: int, excess: float) -> tuple[Edit, ...]:
    """The oldest groups, whole, in one unbroken run; one short notice says how many messages went and how to find them."""
    run = unpinned_run(parts, end, lambda g: True)
    taken, freed = [], -40.0  # what the notice costs
    for group in run:
        if freed >= excess:
            break
        taken.append(group)
        freed += group.raw
    if freed <= 0:
        return ()
    return (notice(taken),)


def unpinned_run(parts: list[Group], end: int, fits: object) -> list[Group]:
    """The first unbroken run of groups before `end` that are not pinned and that `fits` accepts."""
    run: list[Group] = []
    for group in parts[:end]:
        if not group.pinned and fits(group):  # type: ignore[operator]
            run.append(group)
        elif run:
            break
    return run


def span(run: list[Group]) -> tuple[int, int]:
    spans = [e.span for g in run for e in g.entries]
    return min(a for a, _ in spans), max(b for _, b in spans)


def notice(run: list[Group]) -> Insert:
    first, last = span(run)
    number = sum(1 for g in run for e in g.entries if e.note is None)
    earlier = [e for g in run for e in g.entries if e.note is not None and not e.note.filler]
    more = f" {len(earlier)} earlier notes went with them." if earlier else ""
    text = f'[{number} earlier messages, records {first} to {last}, left the context.{more} ExpandHistory(ids="{first}-{last}") brings them back.]'
    return Insert(text, first, last)


def cut(parts: list[Group], excess: float) -> tuple[Edit, ...]:
    """The largest message of all that may be cut loses its middle."""
    able = [e for g in parts for e in g.entries if e.message.role in ("tool", "assistant") and not e.message.tool_calls]
    able = [e for e in able if e.name not in PINNED and len(e.message.content or "") > 2 * _LEAST_KEPT]
    if not able:
        return ()
    entry = max(able, key=lambda e: (e.raw, -e.seq))
    size = len(entry.message.content or "")
    share = max(0.0, entry.raw - excess - 60) / entry.raw
    keep = max(_LEAST_KEPT, int(size * share))
    return (Cut(entry.seq, keep),) if keep < size - 200 else ()
