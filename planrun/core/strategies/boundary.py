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
    reducible = [found for segment in view if any(found := segment.reducible)]
    results = tuple([seq for found, _ in reducible for seq in found])
    arguments = tuple([seq for _, found in reducible for seq in found])
    out: list[Edit] = []
    if results:
        out.append(Elide(results))
    if arguments:
        out.append(Shorten(arguments))
    return tuple(out)
