"""Replacing text in a file's content, whatever its newlines, and saying why it cannot be done. Pure."""

from __future__ import annotations

import difflib
import os
import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain, repeat

_NEWLINE = re.compile("\r\n|\r|\n")
_COMPARED = 4000  # lines looked at for the nearest one
_COMPARED_WIDTH = 120
_WIDTH = 300


class NoEdit(ValueError):
    """The edit cannot be done; the text is for the model."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The new content, how many places changed, and the first one's lines (1-based, in `content` with `\\n`
    newlines)."""

    content: str
    count: int
    first: int
    last: int


def edit(content: str, old: str, new: str, *, everywhere: bool) -> Edited:
    """`content` with `old` replaced by `new`. All newlines match each other; every line that stays keeps its own, and
    a new one takes that of the line it replaces or stands beside. Raises NoEdit unless `old` occurs exactly once (or
    `everywhere`, at least once)."""
    old, new = normal(old), normal(new)
    if not old:
        raise NoEdit("old is empty; use Write to make a file or to replace all of it")
    if old == new:
        raise NoEdit("old and new are the same: nothing to change")
    text = normal(content)
    places = [found.start() for found in re.finditer(re.escape(old), text)]
    if not places:
        raise NoEdit(_not_found(text, old))
    if len(places) > 1 and not everywhere:
        numbers = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:10])
        more = ", ..." if len(places) > 10 else ""
        raise NoEdit(f"old occurs {len(places)} times (lines {numbers}{more}): give more of the lines around it, or all=true")
    first = text.count("\n", 0, places[0]) + 1
    return Edited(_replaced(content, places, old, new), len(places), first, first + new.removesuffix("\n").count("\n"))


def normal(text: str) -> str:
    """`text` with every newline as `\\n`."""
    return _NEWLINE.sub("\n", text) if "\r" in text else text


@dataclass(frozen=True, slots=True)
class _Newlines:
    """Where the newlines of a content are, as positions in its normalised text, which of them are two characters long,
    and what each is."""

    breaks: list[int]
    pairs: list[int]
    styles: list[str]

    def raw(self, position: int) -> int:
        """The place in the content of a position in the normalised text."""
        return position + bisect_left(self.pairs, position)

    def styled(self, new: str, begin: int, end: int) -> str:
        """`new` for the place `begin` to `end`: its newlines take the styles there one by one, further ones that of
        the line."""
        low, high = bisect_left(self.breaks, begin), bisect_left(self.breaks, end)
        near = high - 1 if high > low else min(high, len(self.styles) - 1)
        rest = self.styles[near] if self.styles else "\n"
        styles = chain(self.styles[low:high], repeat(rest))
        return "".join(next(styles) if piece == "\n" else piece for piece in re.split("(\n)", new))


def _newlines(content: str) -> _Newlines:
    breaks: list[int] = []
    pairs: list[int] = []
    styles: list[str] = []
    for found in _NEWLINE.finditer(content):
        breaks.append(found.start() - len(pairs))
        styles.append(found[0])
        if found[0] == "\r\n":
            pairs.append(breaks[-1])
    return _Newlines(breaks, pairs, styles)


def _replaced(content: str, places: list[int], old: str, new: str) -> str:
    newlines = _newlines(content)
    # Only the middle that differs is touched, so that every newline before and after it stays as it is.
    before, after = _common(old, new)
    middle = new[before : len(new) - after]
    parts, done = [], 0
    for place in places:
        begin, end = place + before, place + len(old) - after
        parts += [content[done : newlines.raw(begin)], newlines.styled(middle, begin, end)]
        done = newlines.raw(end)
    return "".join(parts) + content[done:]


def _common(old: str, new: str) -> tuple[int, int]:
    """How many characters both begin with, and how many of the rest both end with."""
    before = len(os.path.commonprefix([old, new]))  # noqa: RUF071 - characters are meant
    return before, len(os.path.commonprefix([old[before:][::-1], new[before:][::-1]]))  # noqa: RUF071 - characters are meant


def _not_found(text: str, old: str) -> str:
    wanted = old.strip("\n").split("\n")
    lines = text.split("\n")[:_COMPARED]
    start = _spaced(lines, wanted)
    said = "Only the white space differs"
    if start is None:
        start, said = _similar(lines, wanted), "The most similar text is"
    if start is None:
        return "old was not found, nor anything similar; Read the file first"
    last = min(start + min(len(wanted), 20), len(lines))
    part = "\n".join(line[:_WIDTH] for line in lines[start:last])
    where = f"line {last}" if last == start + 1 else f"lines {start + 1}-{last}"
    return f"old was not found. {said} at {where}:\n{part}\nCopy old exactly from the file"


def _spaced(lines: list[str], wanted: list[str]) -> int | None:
    """Where the lines stand if white space at their ends does not count."""
    have, want = [line.strip() for line in lines], [line.strip() for line in wanted]
    starts = (i for i, line in enumerate(have) if line == want[0] and have[i : i + len(want)] == want)
    return next(starts, None) if any(want) else None


def _similar(lines: list[str], wanted: list[str]) -> int | None:
    """Where the longest wanted line has its nearest relative, less the lines before it."""
    index = max(range(len(wanted)), key=lambda i: len(wanted[i].strip()))
    matcher = difflib.SequenceMatcher(b=wanted[index].strip()[:_COMPARED_WIDTH], autojunk=False)
    best, place = 0.6, None
    for i, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:_COMPARED_WIDTH])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, place = ratio, i
    return None if place is None else max(0, place - index)
