"""What the plan's checks know of files: which match, what they hold, what changed."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from pathlib import Path

from planrun.core.plan import Json

_NAMED = 10  # changed files that a message lists


def matches(workspace: Path, patterns: list[str]) -> list[str]:
    """Files that match any of the globs, as sorted paths relative to the workspace. Nothing outside of it ever matches."""
    found = set()
    for pattern in patterns:
        for path in workspace.glob(pattern):
            if path.is_file() and path.resolve().is_relative_to(workspace):
                found.add(path.relative_to(workspace).as_posix())
    return sorted(found)


def digests(workspace: Path, patterns: list[str]) -> dict[str, str]:
    return {p: _digest(workspace / p)[:16] for p in matches(workspace, [_all_files(p) for p in patterns])}


def _all_files(pattern: str) -> str:
    """`dir/**` matches directories only with pathlib; everybody means the files below them."""
    return f"{pattern}/*" if pattern.endswith("**") else pattern


def difference(before: dict[str, str], after: dict[str, str], patterns: list[str]) -> str:
    """What changed, in words; empty where nothing did. `before` may hold files of other patterns too."""
    mine = {p: d for p, d in before.items() if p in after or any(_covers(g, p) for g in patterns)}
    rows = [f"{p} changed" for p in sorted(mine.keys() & after.keys()) if mine[p] != after[p]]
    rows += [f"{p} added" for p in sorted(after.keys() - mine.keys())]
    rows += [f"{p} removed" for p in sorted(mine.keys() - after.keys())]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return ", ".join(rows[:_NAMED]) + more


def _covers(pattern: str, path: str) -> bool:
    """fnmatch's `*` crosses folders, so this covers at least what the glob does: a removed file is never overlooked."""
    return fnmatchcase(path, pattern.replace("**/", "*").replace("**", "*"))


def describe(workspace: Path, relative: str) -> dict[str, Json] | None:
    """`{path, size, sha256}` of a file inside the workspace, or None where there is none."""
    path = (workspace / relative).resolve()
    if not path.is_relative_to(workspace) or not path.is_file():
        return None
    return {"path": relative, "size": path.stat().st_size, "sha256": _digest(path)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
