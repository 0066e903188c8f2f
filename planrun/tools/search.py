"""Walking and searching a tree. Only the standard library's light modules: Grep runs this in a child process (see
`main`), because a regular expression cannot be interrupted from within a thread."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper
from typing import BinaryIO, TextIO

from planrun.core import names
from planrun.opening import FOLDER, open_real

SKIPPED = frozenset({".git", names.FOLDER})  # unless the search starts inside
LINE_CAP = 10_000  # characters of a line that are searched
SHOWN_CAP = 300  # characters of a line that are shown
AROUND = 4_096  # characters on either side of them that tell whether a secret is cut through
_SNIFF = 8192


class Tree:
    """The files below the real path `top`. Links to folders are not entered; `missed` are the folders that could not be read, and why."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.missed: dict[str, OSError] = {}

    def __iter__(self) -> Iterator[str]:
        """Every file as a path relative to `top` with `/`, the same order every time."""
        pending = [""]
        while pending:
            base = pending.pop()
            try:
                files, folders = _listed(os.path.join(self.top, base))
            except OSError as error:
                self.missed[base or "."] = error
                continue
            yield from (base + name for name in files)
            pending += [f"{base}{name}/" for name in reversed(folders)]

    def remark(self) -> str:
        """What to say of the folders that are missing."""
        return f"[folders that could not be read: {len(self.missed)}, first {next(iter(self.missed))[:SHOWN_CAP]}]"


def _listed(path: str) -> tuple[list[str], list[str]]:
    """The sorted names of the files and of the folders in the folder at `path`."""
    files, folders = [], []
    descriptor = open_real(path.rstrip("/") or "/", FOLDER)
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif not _leads_to_folder(entry):
                    files.append(entry.name)
    finally:
        os.close(descriptor)
    return sorted(files), sorted(name for name in folders if name not in SKIPPED)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def split_pattern(pattern: str) -> list[tuple[str, ...]]:
    """The alternatives of a glob pattern, `{a,b}` expanded (64 at most), each as its parts."""
    pending: list[str] = [pattern]
    done: list[tuple[str, ...]] = []
    while pending:
        text = pending.pop()
        braces = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if braces and len(pending) + len(done) < 64:
            pending += [text[: braces.start()] + choice + text[braces.end() :] for choice in reversed(braces[1].split(","))]
        else:
            done.append(tuple(part for part in text.split("/") if part not in ("", ".")))
    return done


def matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether the path `parts` fit the pattern's parts; `**` stands for any number of them. Polynomial whatever the
    pattern."""
    reached = {0}
    for want in pattern:
        if want == "**":
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {i + 1 for i in reached if i < len(parts) and fnmatch.fnmatchcase(parts[i], want)}
        if not reached:
            return False
    return len(parts) in reached


def open_text(stream: BinaryIO) -> TextIO | None:
    """`stream` as text with `\\n` for every newline: UTF-8, or UTF-16 where a byte order mark says so; None if it is
    binary."""
    start = stream.read(_SNIFF)
    stream.seek(0)
    utf16 = start[:2] in (b"\xff\xfe", b"\xfe\xff")
    if not utf16 and b"\0" in start:
        return None
    return TextIOWrapper(stream, encoding="utf-16" if utf16 else "utf-8-sig", errors="replace")


Hit = tuple[str, str, int, int]  # `path:line: `, a text, and what of it is to be shown


def grep(top: str, pattern: str, glob: str, base: str, most: int) -> Iterator[Hit | str]:
    """Each matching line below `top` (a folder or a file), `most` at most, then a remark if it is not everything. `base` stands
    before the path relative to `top`."""
    wanted = re.compile(pattern)
    globs = split_pattern(glob if "/" in glob else f"**/{glob or '**'}")
    tree = Tree(top)
    found = long = 0
    for name, path in _files(tree, globs):
        for number, line in _lines(path):
            hit = wanted.search(line[:LINE_CAP])
            long += len(line) > LINE_CAP
            if hit and found == most:
                yield f"[the first {most} matches; there are more: narrow pattern, path or glob]"
                return
            if hit:
                found += 1
                yield f"{base}{name}:{number}: ", *_window(line, hit.start())
    if long:
        yield f"[{long} very long lines were searched only in their first {LINE_CAP:,} characters]"
    if tree.missed:
        yield tree.remark()


def _files(tree: Tree, globs: list[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """How to show each file, and its path."""
    if not os.path.isdir(tree.top):
        yield "", tree.top
        return
    for name in tree:
        if any(matches(glob, tuple(name.split("/"))) for glob in globs):
            yield name.replace("\n", " "), os.path.join(tree.top, name)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line, which may be cut behind what is searched; nothing for what is no plain, readable text file."""
    try:
        descriptor = open_real(path, os.O_RDONLY)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as raw:
        text = open_text(raw) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        number = 0
        with suppress(OSError):
            while text and (line := text.readline(LINE_CAP + AROUND)):
                number += 1
                rest = line
                while not rest.endswith("\n") and (rest := text.readline(1 << 20)):
                    pass
                yield number, line.rstrip("\n")


def _window(line: str, start: int) -> tuple[str, int, int]:
    """What is shown of a line with a hit at `start`, with what stands around it."""
    begin = max(0, min(start - SHOWN_CAP // 3, len(line) - SHOWN_CAP))
    first = max(0, begin - AROUND)
    return line[first : begin + SHOWN_CAP + AROUND], begin - first, min(begin + SHOWN_CAP, len(line)) - first


def main() -> None:
    """Answer the request in argv[2] on stdout, as a line of JSON each, so that a kill loses nothing that was found; or say on
    stderr what is wrong with its pattern."""
    request = json.loads(sys.argv[2])
    try:
        re.compile(request["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        sys.exit(f"pattern is not a valid regular expression: {error}. Put \\ before a special character to find it")
    for line in grep(**request):
        sys.stdout.buffer.write(json.dumps(line).encode() + b"\n")
        sys.stdout.buffer.flush()
