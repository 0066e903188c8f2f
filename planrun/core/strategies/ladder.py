"""The ladder: what goes, and in which order, when a step's messages outgrow their room.

Each rung is a pure function from the view to edits; it stops as soon as enough is freed. What is pinned never goes: the system
message, the first user message (it has the goal), the current step's message. Plan tools' results are never elided. Calls stay
with their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from planrun.core import context, editing
from planrun.core.context import LONG_ARGUMENTS, PINNED, Entry, View
from planrun.core.edits import Cut, Edit, Elide, Insert, Shorten
from planrun.core.tokens import PER_MESSAGE, raw_tokens

LEAST_KEPT = 400  # characters that a cut message keeps at the least, the line about what went included
_NOTICE = 40.0  # raw tokens, about, of the notice that stands for what was dropped
_LINE = 60.0  # the same of the line in a message that was cut


@dataclass(frozen=True)
class Group:
    """Messages that go or stay together: a turn (a reply and its results), a user message, a note with its filler."""

    entries: tuple[Entry, ...]
    pinned: bool

    @cached_property
    def raw(self) -> float:
        return sum([e.raw for e in self.entries])

    @property
    def is_note(self) -> bool:
        return self.entries[0].note is not None

    @property
    def level(self) -> int:
        """That of a summary, 0 for everything else."""
        note = self.entries[0].note
        return note.level if note else 0


def groups(view: View) -> list[Group]:
    """The view in groups, in order. The last user message that opened a step and the very first one are pinned."""
    first = next((e for s in view for e in s.entries if _asked(e)), None)
    opening = next((e for e in view[-1].entries if _asked(e)), None) if view else None
    pinned = {e.seq for e in (first, opening) if e is not None}
    gathered: list[list[Entry]] = []
    for entry in context.entries(view):
        follows = entry.message.role == "tool" or (entry.note is not None and entry.note.filler)
        if follows and gathered:
            gathered[-1].append(entry)
        else:
            gathered.append([entry])
    return [Group(tuple(g), g[0].message.role == "system" or (g[0].note is None and g[0].seq in pinned)) for g in gathered]


def _asked(entry: Entry) -> bool:
    return entry.message.role == "user" and entry.note is None


def runs(parts: list[Group], fits: Callable[[Group], bool] = lambda group: True) -> Iterator[list[Group]]:
    """The unbroken runs of groups that are not pinned and that `fits` accepts, the oldest first."""
    run: list[Group] = []
    for group in parts:
        if not group.pinned and fits(group):
            run.append(group)
        elif run:
            yield run
            run = []
    if run:
        yield run


def raw_of(run: list[Group]) -> float:
    return sum([g.raw for g in run])


def span(run: list[Group]) -> tuple[int, int]:
    spans = [e.span for g in run for e in g.entries]
    return min(a for a, _ in spans), max(b for _, b in spans)


def tail_start(parts: list[Group], room: float) -> int:
    """Where the fresh tail begins: the newest groups that fit in `room` raw tokens, one turn at the least."""
    taken, at = 0.0, len(parts)
    while at > 0 and not parts[at - 1].pinned:
        taken += parts[at - 1].raw
        if taken > room and at < len(parts):
            break
        at -= 1
    return at


def elide(parts: list[Group], excess: float) -> tuple[Edit, ...]:
    """Tool results, the largest first, until `excess` raw tokens are freed."""
    chosen, freed = [], 0.0
    for entry in sorted((e for g in parts for e in g.entries if _elidable(e)), key=lambda e: (-e.raw, e.seq)):
        if freed >= excess:
            break
        if (saved := _saved(entry)) > 0:
            chosen.append(entry.seq)
            freed += saved
    return (Elide(tuple(sorted(chosen)), by="window"),) if chosen else ()


def _elidable(entry: Entry) -> bool:
    return not entry.settled and entry.message.role == "tool" and entry.name not in PINNED


def _saved(entry: Entry) -> float:
    return entry.raw - PER_MESSAGE - raw_tokens(editing.window_placeholder(entry))


def shorten(parts: list[Group], excess: float) -> tuple[Edit, ...]:
    """Long arguments of calls, the oldest first."""
    chosen, freed = [], 0.0
    for entry in (e for g in parts for e in g.entries if e.message.tool_calls and not e.settled):
        if freed >= excess:
            break
        if any(len(c.arguments) > LONG_ARGUMENTS for c in entry.message.tool_calls):
            saved = entry.raw - editing.shortened(entry).raw
            if saved > 0:
                chosen.append(entry.seq)
                freed += saved
    return (Shorten(tuple(chosen)),) if chosen else ()


def drop(parts: list[Group], excess: float) -> tuple[Edit, ...]:
    """The oldest groups, whole; one short notice for each unbroken run says how many messages went and how to find them."""
    edits: list[Edit] = []
    freed = 0.0
    for run in runs(parts):
        taken, gain = [], -_NOTICE
        for group in run:
            if freed + gain >= excess:
                break
            taken.append(group)
            gain += group.raw
        if gain > 0:
            edits.append(notice(taken))
            freed += gain
        if freed >= excess:
            break
    return tuple(edits)


def notice(run: list[Group]) -> Insert:
    first, last = span(run)
    number = sum([e.covers for g in run for e in g.entries])
    many = "1 earlier message" if number == 1 else f"{number} earlier messages"
    text = f'[{many}, records {first} to {last}, left the context; ExpandHistory(ids="{first}-{last}") brings them back.]'
    return Insert(text, first, last)


def cut(parts: list[Group], excess: float) -> tuple[Edit, ...]:
    """The largest messages that may be cut lose their middles: as few as it takes, all down to one size."""
    able = [(_raw_text(e), e) for g in parts for e in g.entries if _can_be_cut(e)]
    able.sort(key=lambda pair: (-pair[0], pair[1].seq))
    total = stays = 0.0
    for number, (raw, _) in enumerate(able, 1):
        total += raw
        stays = max(0.0, (total - excess) / number - _LINE)
        if number == len(able) or stays >= able[number][0]:
            able = able[:number]
            break
    made = [Cut(e.seq, max(LEAST_KEPT, int(len(e.message.content or "") * stays / max(1.0, raw)))) for raw, e in able]
    return tuple([edit for edit, (_, e) in zip(made, able, strict=True) if editing.cut(e, edit.keep).raw < e.raw])


def _can_be_cut(entry: Entry) -> bool:
    spoken = entry.message.role in ("tool", "assistant") and entry.note is None and entry.name not in PINNED
    return spoken and len(entry.message.content or "") > LEAST_KEPT


def _raw_text(entry: Entry) -> float:
    """The raw tokens of its text, which are counted already where it has nothing else."""
    return raw_tokens(entry.message.content or "") if entry.message.tool_calls else entry.raw - PER_MESSAGE
