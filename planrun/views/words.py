"""Numbers and texts in the words that every view uses. Nothing here can move a cursor or start a line of its own."""

from __future__ import annotations

from planrun.tools.text import clean
from planrun.views.inert import inert, unseen


def duration(seconds: float) -> str:
    """`0.4s`, `12s`, `3m05s`, `2h07m`, `90m` as `1h30m`"""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    large, small = divmod(whole, 60) if whole < 3600 else (whole // 3600, whole % 3600 // 60)
    units = "ms" if whole < 3600 else "hm"
    return f"{large}{units[0]}" + (f"{small:02}{units[1]}" if small else "")


def amount(number: float) -> str:
    """A count with separators: `4,210`"""
    return f"{number:,.0f}"


def money(cost: float | None) -> str:
    """USD with as many digits as it takes to see something; `unknown` where there is no price."""
    if cost is None:
        return "unknown"
    return f"${cost:.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"


def plural(number: int, noun: str) -> str:
    return f"{amount(number)} {noun}" if number == 1 else f"{amount(number)} {noun}s"


def one_line(text: str, limit: int = 160) -> str:
    """`text` on one line of at most `limit` characters, free of control sequences."""
    flat = unseen(" ".join(clean(text[: limit * 20]).split()))
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."


def block(text: str) -> str:
    """`text` with its lines kept, free of control sequences."""
    return inert(clean(text).strip("\n"))
