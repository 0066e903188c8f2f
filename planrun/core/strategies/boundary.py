"""The strategies that run at a step boundary. Same input, same edits; applied twice is once."""

from __future__ import annotations

from planrun.core import context
from planrun.core.context import View
from planrun.core.edits import Drop, Edit, Elide, Shorten
from planrun.core.plan import Strategy


def edits(strategy: Strategy, view: View) -> tuple[Edit, ...]:
    """The edits that `strategy` makes of `view` before a step starts; empty when nothing would shrink."""
    match strategy:
        case "keep":
            return ()
        case "clear":
            return _clear(view)
        case "compact" | "summary":
            return _compact(view)


def _clear(view: View) -> tuple[Edit, ...]:
    seqs = [e.seq for e in context.entries(view) if e.message.role != "system"]
    return (Drop(seqs[0], seqs[-1]),) if seqs else ()


def _compact(view: View) -> tuple[Edit, ...]:
    results = tuple([seq for segment in view for seq in segment.elidable])
    arguments = tuple([seq for segment in view for seq in segment.shortenable])
    out: list[Edit] = []
    if results:
        out.append(Elide(results))
    if arguments:
        out.append(Shorten(arguments))
    return tuple(out)


def apply(view: View, changes: tuple[Edit, ...]) -> View:
    """The view after these edits. Records that are not in the view are left alone."""
    for edit in changes:
        match edit:
            case Elide(seqs):
                view = context.map_entries(view, seqs, context.elided)
            case Shorten(seqs):
                view = context.map_entries(view, seqs, context.shortened)
            case Drop(first, last):
                view = _drop(view, first, last)
            case _:
                raise ValueError(f"an edit of kind {edit.kind} has no meaning here")
    return view


def _drop(view: View, first: int, last: int) -> View:
    out = []
    for segment in view:
        kept = tuple(e for e in segment.entries if e.message.role == "system" or not first <= e.seq <= last)
        if len(kept) == len(segment.entries):
            out.append(segment)
        elif kept:
            out.append(context.Segment(segment.step, kept))
    return tuple(out)
