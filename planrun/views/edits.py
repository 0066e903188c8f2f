"""A compaction in words: what went, and what it saved."""

from __future__ import annotations

from planrun.core.edits import Cut, Drop, Elide, Insert, Shorten
from planrun.core.events import Compacted
from planrun.views.words import amount, one_line, plural


def boundary(event: Compacted) -> str:
    """`boundary before b: compact, 3 tool results elided, 4,210 -> 1,130 tokens`"""
    where = (
        f"boundary before {one_line(event.boundary, 60)}" if event.boundary else f"compaction ({one_line(event.trigger, 40)})"
    )
    parts = [one_line(event.strategy, 40), *_what(event)]
    return f"{where}: {', '.join(parts)}, {amount(event.tokens_before)} -> {amount(event.tokens_after)} tokens"


def _what(event: Compacted) -> list[str]:
    elided = sum(len(e.seqs) for e in event.edits if isinstance(e, Elide))
    shortened = sum(len(e.seqs) for e in event.edits if isinstance(e, Shorten))
    cut = sum(isinstance(e, Cut) for e in event.edits)
    notes = sum(isinstance(e, Insert) for e in event.edits)
    only = notes == len(event.edits)  # then the count does not depend on lines that were put between
    dropped = event.replaces_count if only else event.messages_before - event.messages_after + notes
    summarised = any(isinstance(e, Insert) and e.level > 0 for e in event.edits)
    drops = any(isinstance(e, Drop | Insert) for e in event.edits)
    words = []
    if elided:
        words.append(f"{plural(elided, 'tool result')} elided")
    if shortened:
        words.append(f"{plural(shortened, 'message')} shortened")
    if cut:
        words.append(f"{plural(cut, 'long message')} cut")
    if drops and dropped > 0:
        words.append(f"{plural(dropped, 'message')} {'summarised' if summarised else 'dropped'}")
    return words
