"""What the plan's checks know of files: which match, what they hold, what changed. What is not there
and what may not be read are facts about it; where the system cannot tell (a broken disk, too many open files) OSError is raised,
as nothing may be made of that."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path, PurePosixPath

from planrun.core.plan import Json
from planrun.tools import search
from planrun.tools.paths import Refused, open_regular

_NAMED = 10  # changed files that a message lists
_LEFT = 1 << 18  # bytes of a $PLANRUN_OUTPUT file
_FACTS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ESTALE)


def matches(workspace: Path, patterns: list[str]) -> list[str]:
    """Files that match any of the globs, as sorted paths relative to the workspace. Nothing outside of it ever matches; what is
    in a folder that searches skip (`.git`) matches a pattern that begins with it."""
    found = {path for pattern in _globs(patterns) for path in _matching(workspace, pattern.split("/"))}
    return sorted(path for path in found if _inside(workspace, path) is not None)


def _matching(workspace: Path, parts: list[str]) -> Iterator[str]:
    fixed = list(takewhile(lambda part: not set(part) & set("*?["), parts))
    if len(fixed) == len(parts):
        yield "/".join(parts)
        return
    top, rest = _inside(workspace, "/".join(fixed), folder=True), tuple(parts[len(fixed) :])
    if top is None:
        return
    tree = search.Tree(str(top))
    for name in tree:
        if search.matches(rest, tuple(name.split("/"))):
            yield "/".join((*fixed, name))
    for error in tree.missed.values():
        _must_be_fact(error)


def _inside(workspace: Path, relative: str, *, folder: bool = False) -> Path | None:
    """The real path of a file (or folder) inside the workspace; None where there is none."""
    path = Path(os.path.realpath(workspace / relative))
    try:
        mode = path.stat().st_mode
    except OSError as error:
        _must_be_fact(error)
        return None
    there = stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode)
    return path if there and path.is_relative_to(workspace) else None


def digests(workspace: Path, patterns: list[str]) -> dict[str, str]:
    marks = ((p, _mark(workspace / p)) for p in matches(workspace, _with_folders(patterns)))
    return {path: mark for path, mark in marks if mark}


def _globs(patterns: list[str]) -> list[str]:
    """The patterns with `{a,b}` expanded, relative to the workspace whatever they begin with."""
    return ["/".join(parts) for pattern in patterns for parts in search.split_pattern(pattern) if parts]


def _with_folders(patterns: list[str]) -> list[str]:
    """A folder stands for all files below it: `dir` and `dir/` too."""
    below = [f"{g}/**" for g in _globs(patterns) if not set(g) & set("*?[")]
    return [*patterns, *below]


def difference(before: dict[str, str], after: dict[str, str], patterns: list[str]) -> str:
    """What changed, in words; empty where nothing did. `before` may hold files of other patterns too."""
    wanted = [tuple(g.split("/")) for g in _globs(_with_folders(patterns))]
    mine = {p: d for p, d in before.items() if any(search.matches(w, PurePosixPath(p).parts) for w in wanted)}
    rows = [f"{p} changed" for p in sorted(mine.keys() & after.keys()) if mine[p] != after[p]]
    rows += [f"{p} added" for p in sorted(after.keys() - mine.keys())]
    rows += [f"{p} removed" for p in sorted(mine.keys() - after.keys())]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return ", ".join(rows[:_NAMED]) + more


def describe(workspace: Path, relative: str) -> dict[str, Json] | None:
    """`{path, size, sha256}` of a file inside the workspace, or None where there is none that may be read."""
    path = _inside(workspace, relative)
    try:
        return {"path": relative, "size": path.stat().st_size, "sha256": _digest(path)} if path is not None else None
    except OSError as error:
        _must_be_fact(error)
        return None


def left_in(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of the file `$PLANRUN_OUTPUT` at the real `path`, whatever a command made of it; or why it cannot be taken."""
    try:
        with open_regular(path) as file:
            data = file.read(_LEFT + 1)
    except FileNotFoundError:
        return "", ()
    except Refused as error:
        return "", (f"PLANRUN_OUTPUT: expected a file with name=value lines: {error}",)
    except OSError as error:
        return "", (f"PLANRUN_OUTPUT: it cannot be read: {error.strerror or error}",)
    if len(data) > _LEFT:
        return "", (f"PLANRUN_OUTPUT: expected at most {_LEFT:,} bytes, found more",)
    return data.decode("utf-8", "replace"), ()


def _mark(path: Path) -> str:
    """What tells one content of the file from another; empty where it went away meanwhile."""
    try:
        return _digest(path)[:16]
    except FileNotFoundError:
        return ""
    except OSError as error:
        _must_be_fact(error)
        return "unreadable"


def _must_be_fact(error: OSError) -> None:
    """Raises `error` where it tells of the machine, not of the path."""
    if error.errno not in _FACTS:
        raise error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
