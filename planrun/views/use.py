"""How a session uses its context, for people and for machines."""

from __future__ import annotations

import time

from planrun.core import context
from planrun.core.plan import Json
from planrun.core.using import Use
from planrun.views.edits import boundary
from planrun.views.words import amount, one_line, plural


def as_json(use: Use) -> dict[str, Json]:
    room, last, spend = use.room, use.last, use.state.spend
    return {
        "messages": context.count(use.state.view),
        "tokens": room.used + room.fixed if room else None,
        "used": room.used if room else None,
        "budget": room.budget if room else None,
        "window": room.window if room else None,
        "window_origin": room.origin if room else None,
        "summaries": {str(level): number for level, number in use.summaries.items()},
        "deterministic": use.deterministic,
        "compactions": use.state.compactions,
        "last_compaction": None
        if last is None
        else {
            "timestamp": last.timestamp,
            "strategy": last.event.strategy,
            "trigger": last.event.trigger,
            "messages_before": last.event.messages_before,
            "messages_after": last.event.messages_after,
            "tokens_before": last.event.tokens_before,
            "tokens_after": last.event.tokens_after,
        },
        "pinned_tokens": use.pinned,
        "deferred": list(use.deferred),
        "prompt_tokens": spend.prompt_tokens,
        "cached_tokens": spend.cached_tokens,
        "prefix_last": _rounded(use.shares[-1:]),
        "prefix_average": _rounded(use.shares),
    }


def _rounded(shares: tuple[float, ...]) -> float | None:
    return round(sum(shares) / len(shares), 4) if shares else None


def text(use: Use) -> str:
    lines = [f"  {name + ':':<13}{value}" for name, value in _rows(use)]
    return "\n".join(["Context", *lines])


def _rows(use: Use) -> list[tuple[str, str]]:
    room, spend = use.room, use.state.spend
    rows = [("messages", f"{amount(context.count(use.state.view))}, {amount(use.pinned)} tokens of them pinned")]
    if room is not None:
        share = f" ({room.used / room.budget:.0%})" if room.budget > 0 else ""
        rows.append(("tokens", f"{amount(room.used)} of a budget of {amount(max(0, room.budget))}{share}"))
        rows.append(("window", f"{amount(room.window)} by {room.origin}"))
    if use.summaries:
        levels = ", ".join(f"{number} of level {level}" for level, number in use.summaries.items())
        rows.append(("summaries", levels + (f"; {use.deterministic} by no model" if use.deterministic else "")))
    rows.append(("compactions", _compactions(use)))
    if use.deferred:
        rows.append(("deferred", f"{plural(len(use.deferred), 'time')}, the last: {one_line(use.deferred[-1], 300)}"))
    rows.append(("cached", f"{amount(spend.cached_tokens)} of {amount(spend.prompt_tokens)} prompt tokens"))
    if use.shares:
        average = sum(use.shares) / len(use.shares)
        rows.append(("same prefix", f"{use.shares[-1]:.0%} of the last request, {average:.0%} on average"))
    return rows


def _compactions(use: Use) -> str:
    if use.last is None:
        return str(use.state.compactions)
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(use.last.timestamp))
    return f"{use.state.compactions}, the last at {when}: {boundary(use.last.event)}"
