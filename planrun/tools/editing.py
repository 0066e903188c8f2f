"""Replacing text in a file's content, whatever its newlines, and saying why it cannot be done. Pure.

Content is bytes: UTF-8 needs no decoding for this, and bytes that are no text come out as they went in. Memory is a few
times the content, however often `old` occurs.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NEWLINE = re.compile(b"\r\n|\r|\n")
_STYLES = (b"\n", b"\r\n", b"\r")
_COMPARED = 4000  # lines looked at for the nearest one
_COMPARED_WIDTH = 120
_WIDTH = 300
_SHOWN = 20  # lines of the nearest text


class NoEdit(ValueError):
    """The edit cannot be done; the text is for the model."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The new content, how many places changed, and the first one's lines (1-based, in `content` with `\\n`
    newlines)."""

    content: bytes
    count: int
    first: int
    last: int


def edit(content: bytes, old: bytes, new: bytes, *, everywhere: bool, most: int) -> Edited:
    """`content` with `old` replaced by `new`. All newlines match each other; every line that stays keeps its own, and
    a new one takes that of the line it replaces or stands beside. Raises NoEdit unless `old` occurs exactly once (or
    `everywhere`, at least once), and where the result would be longer than `most` bytes."""
    old, new = normal(old), normal(new)
    if not old:
        raise NoEdit("old is empty; use Write to make a file or to replace all of it")
    if old == new:
        raise NoEdit("old and new are the same: nothing to change")
    text = normal(content)
    count = text.count(old)
    if count == 0:
        raise NoEdit(_not_found(text, old))
    if count > 1 and not everywhere:
        numbers = ", ".join(
            str(text.count(b"\n", 0, place) + 1) for place, _ in zip(_places(text, old), range(10), strict=False)
        )
        more = ", ..." if count > 10 else ""
        raise NoEdit(f"old occurs {count} times (lines {numbers}{more}): give more of the lines around it, or all=true")
    if len(content) + count * (len(new) - len(old) + new.count(b"\n")) > most:
        raise NoEdit(f"with {count} replacements the file would be larger than {most >> 20} MiB; change it with Bash")
    first = text.count(b"\n", 0, text.index(old)) + 1
    return Edited(_replaced(content, text, old, new), count, first, first + new.removesuffix(b"\n").count(b"\n"))


def normal(text: bytes) -> bytes:
    """`text` with every newline as `\\n`."""
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _places(text: bytes, old: bytes) -> Iterator[int]:
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + len(old))


def _replaced(content: bytes, text: bytes, old: bytes, new: bytes) -> bytes:
    """`content`, whose normal form is `text`, with each `old` replaced: the normal forms, then the newlines in their styles."""
    result = text.replace(old, new)
    styles = bytes(_STYLES.index(found[0]) for found in _NEWLINE.finditer(content)) if b"\r" in content else b""
    if len(set(styles)) < 2:
        return result.replace(b"\n", _STYLES[styles[0]]) if styles else result
    styles = _styles_after(text, styles, old, new)
    written, start = bytearray(), 0
    for style in styles:
        end = result.index(b"\n", start)
        written += result[start:end] + _STYLES[style]
        start = end + 1
    return bytes(written + result[start:])


def _styles_after(text: bytes, styles: bytes, old: bytes, new: bytes) -> bytes:
    """The styles (one byte a newline) of the text in which every `old` is replaced."""
    # Only the middle that differs is touched, so that every newline before and after it stays as it is.
    before, after = _common(old, new)
    lost, gained = (part.count(b"\n", before, len(part) - after) for part in (old, new))
    found, done, at, counted = bytearray(), 0, 0, 0
    for place in _places(text, old):
        at += text.count(b"\n", counted, place + before)
        counted = place + before
        near = at + lost - 1 if lost else min(at, len(styles) - 1)
        kept = styles[at : at + min(lost, gained)]
        found += styles[done:at] + kept + styles[near : near + 1] * (gained - len(kept))
        done = at + lost
    return bytes(found + styles[done:])


def _common(old: bytes, new: bytes) -> tuple[int, int]:
    """How many bytes both begin with, and how many of the rest both end with."""
    before = len(os.path.commonprefix([old, new]))  # noqa: RUF071 - bytes are meant
    return before, len(os.path.commonprefix([old[before:][::-1], new[before:][::-1]]))  # noqa: RUF071 - bytes are meant


def _not_found(text: bytes, old: bytes) -> str:
    wanted = _lines(old.strip(b"\n"))
    lines = _lines(text)
    start = _spaced(lines, wanted)
    said = "Only the white space differs"
    if start is None:
        start, said = _similar(lines, wanted), "The most similar text is"
    if start is None:
        return "old was not found, nor anything similar; Read the file first"
    last = min(start + min(len(wanted), _SHOWN), len(lines))
    part = "\n".join(line[:_WIDTH] for line in lines[start:last])
    where = f"line {last}" if last == start + 1 else f"lines {start + 1}-{last}"
    return f"old was not found. {said} at {where}:\n{part}\nCopy old exactly from the file"


def _lines(text: bytes) -> list[str]:
    """The first lines of `text`, those that are compared."""
    return [line.decode("utf-8", "replace") for line in text.split(b"\n", _COMPARED)[:_COMPARED]]


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
