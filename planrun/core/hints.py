"""What somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean X?`, or nothing."""
    names = list(known)
    close = get_close_matches(word, names, 1) or get_close_matches(word.lower(), names, 1)
    return f"did you mean {close[0]}?" if close else ""
