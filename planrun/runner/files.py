"""What the plan's checks know of files: which match, what they hold, what changed."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from planrun.core.plan import Json
from planrun.tools import search
from planrun.tools.paths import Refused, open_regular

_NAMED = 10  # changed files that a message lists
_LEFT = 1 << 18  # bytes of a $PLANRUN_OUTPUT file


def matches(workspace: Path, patterns: list[str]) -> list[str]:
    """Files that match any of the globs, as sorted paths relative to the workspace. Nothing outside of it ever matches."""
    found = set()
    for pattern in _globs(patterns):
        for path in workspace.glob(pattern):
            if path.is_file() and path.resolve().is_relative_to(workspace):
                found.add(path.relative_to(workspace).as_posix())
    return sorted(found)


def digests(workspace: Path, patterns: list[str]) -> dict[str, str]:
    return {p: _digest(workspace / p)[:16] for p in matches(workspace, _with_folders(patterns))}


def _globs(patterns: list[str]) -> list[str]:
    """The patterns with `{a,b}` expanded, relative to the workspace whatever they begin with."""
    return ["/".join(parts) for pattern in patterns for parts in search.split_pattern(pattern) if parts]


def _with_folders(patterns: list[str]) -> list[str]:
    """A folder stands for all files below it: `dir`, `dir/` and `dir/**` (which pathlib takes for directories only)."""
    below = [f"{g}/**/*" for g in _globs(patterns) if g.endswith("**") or not set(g) & set("*?[")]
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
    """`{path, size, sha256}` of a file inside the workspace, or None where there is none."""
    path = (workspace / relative).resolve()
    if not path.is_relative_to(workspace) or not path.is_file():
        return None
    return {"path": relative, "size": path.stat().st_size, "sha256": _digest(path)}


def left_in(path: Path) -> tuple[str, tuple[str, ...]]:
    """The text of the file `$PLANRUN_OUTPUT` at the real `path`, whatever a command made of it; or why it cannot be taken."""
    try:
        with open_regular(path) as file:
            data = file.read(_LEFT + 1)
    except FileNotFoundError:
        return "", ()
    except (Refused, OSError) as error:
        return "", (f"PLANRUN_OUTPUT: expected a file with name=value lines: {error}",)
    if len(data) > _LEFT:
        return "", (f"PLANRUN_OUTPUT: expected at most {_LEFT:,} bytes, found more",)
    return data.decode("utf-8", "replace"), ()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
