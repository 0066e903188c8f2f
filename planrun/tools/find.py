"""Glob and Grep."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

from pydantic import AliasChoices, Field

from planrun.tools.base import Arguments, Tool, ToolContext, ToolResult
from planrun.tools.paths import Refused, guarded, resolve, shown
from planrun.tools.process import run_command
from planrun.tools.search import Hit, Tree, matches, split_pattern
from planrun.tools.shell import spill
from planrun.tools.text import clean, strip_controls

SHOWN = 500
MATCHES = 200
SECONDS = 10.0
_ANSWER = 16 << 20  # bytes that the child says at most, with what stands around each match
PATTERN_MOST = 4096  # characters of a pattern
_PACKAGE = str(Path(__file__).parents[2])
_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from planrun.tools.search import main; main()"


class GlobArguments(Arguments):
    pattern: str = Field(max_length=PATTERN_MOST)
    path: str = Field(".", validation_alias=AliasChoices("path", "directory"))


class GrepArguments(Arguments):
    pattern: str = Field(max_length=PATTERN_MOST)
    path: str = Field(".", validation_alias=AliasChoices("path", "directory"))
    glob: str = Field("", max_length=PATTERN_MOST, validation_alias=AliasChoices("glob", "include"))


def _glob(arguments: GlobArguments, ctx: ToolContext) -> ToolResult:
    top = resolve(ctx.workspace, arguments.path, write=False)
    if not top.is_dir():
        raise Refused(f"{arguments.path} is not a directory")
    patterns = split_pattern(_below(arguments.pattern, top))
    if any(".." in pattern for pattern in patterns):
        raise Refused("`..` cannot stand in a pattern; use path")
    tree, walked = Tree(str(top)), _Walked(time.monotonic() + _seconds(ctx))
    names = nsmallest(SHOWN, walked.matching(tree, patterns))
    lines = [shown(ctx.workspace, top / name) for name in names]
    if walked.found > SHOWN:
        lines.append(f"[{walked.found - SHOWN} more files; narrow the pattern]")
    if walked.partial:
        lines.append("[partial: the search took too long; narrow path]")
    lines = lines or [f"(no files match {arguments.pattern})"]
    lines += [strip_controls(tree.remark())] if tree.missed else []
    return ToolResult(spill("\n".join(lines), ctx, "glob"))


@dataclass(slots=True)
class _Walked:
    """Counts the files found until `end`, a time.monotonic() value, and says whether that came first."""

    end: float
    found: int = 0
    partial: bool = False

    def matching(self, tree: Tree, patterns: list[tuple[str, ...]]) -> Iterator[str]:
        for name in tree:
            if time.monotonic() > self.end:
                self.partial = True
                return
            if any(matches(pattern, tuple(name.split("/"))) for pattern in patterns):
                self.found += 1
                yield name


def _grep(arguments: GrepArguments, ctx: ToolContext) -> ToolResult:
    top = resolve(ctx.workspace, arguments.path, write=False)
    if not top.exists():
        raise Refused(f"{arguments.path} does not exist")
    base = "" if top == ctx.workspace else shown(ctx.workspace, top) + ("/" if top.is_dir() else "")
    request = {
        "top": str(top),
        "pattern": arguments.pattern,
        "glob": _below(arguments.glob, top),
        "base": base,
        "most": MATCHES,
    }
    command = shlex.join(("exec", sys.executable, "-I", "-S", "-c", _CHILD, _PACKAGE, json.dumps(request)))
    finished = run_command(command, cwd=ctx.workspace, env=ctx.env, timeout=_seconds(ctx), merge=False, head=_ANSWER)
    if finished.exit_code != 0 and not finished.timed_out:
        return ToolResult(finished.fault or finished.stderr.text(ctx.limit).strip() or "the search failed", "error")
    text = "\n".join(_shown(json.loads(line), ctx) for line in finished.stdout.head.split(b"\n")[:-1])
    if finished.timed_out:
        text = (text + "\n[partial: the search took too long; simplify the pattern or narrow path]").lstrip("\n")
    return ToolResult(spill(text or "(no matches)", ctx, "grep"), "timeout" if finished.timed_out else "ok")


def _shown(found: Hit | str, ctx: ToolContext) -> str:
    """A line of the answer. A secret that its edges cut through is masked whole."""
    if isinstance(found, str):
        return clean(found)
    place, text, start, end = found
    cut_left, cut_right = "..." if start else "", "..." if end < len(text) else ""
    return clean(f"{place}{cut_left}{ctx.mask.part(text, start, end)}{cut_right}")


def _below(pattern: str, top: Path) -> str:
    """`pattern` relative to `top`; models give absolute ones too."""
    if not pattern.startswith("/"):
        return pattern
    if not pattern.startswith(f"{top}/"):
        raise Refused(f"{pattern} is outside {top}; give a pattern relative to path")
    return pattern[len(str(top)) + 1 :]


def _seconds(ctx: ToolContext) -> float:
    return SECONDS if ctx.deadline is None else max(0.0, min(SECONDS, ctx.deadline - time.monotonic()))


GLOB = Tool(
    name="Glob",
    description="Find files by name, e.g. src/**/*.py",
    arguments=GlobArguments,
    run=guarded(_glob),
    read_only=True,
    subject=lambda arguments: arguments.path,
)
GREP = Tool(
    name="Grep",
    description="Find lines that match a Python regular expression; gives path:line: text",
    arguments=GrepArguments,
    run=guarded(_grep),
    read_only=True,
    subject=lambda arguments: arguments.path,
)
