"""A recorded session, and the ways in which a file of lines gets damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from planrun.models.base import Reply
from planrun.testing.model import calls, done
from tests.runner.driving import Project, project, shell, step
from tests.support import last_user, tool_results

Lines = list[bytes]
Damage = Callable[[bytes], bytes]


def example(folder: Path) -> Project:
    """A project whose plan has outputs, calls side by side, commands, boundaries that cut: 72 records."""
    return project(
        folder,
        step("one", output={"n": "integer"}),
        shell("two", "echo hello", output={"word": "string"}),
        step("three", "Use ${{ steps.two.output.word }}.", context="clear"),
        step("four", context="compact"),
        **{"finally": [shell("tidy", "true")], "output": {"n": "${{ steps.one.output.n }}"}},
    )


def script(body: dict[str, Any]) -> Reply:
    """Answers from the request alone, so that it can go on from any place."""
    if not tool_results(body["messages"]):
        return calls(("Ls", {}), ("Bash", {"command": "echo x"}), ("Glob", {"pattern": "*"}))
    return done(n=1) if "step one" in last_user(body["messages"]).lower() else done()


def each(change: Callable[[Lines], Lines]) -> Damage:
    """A change of lines, as one of a whole text."""
    return lambda text: b"\n".join([*change(text.split(b"\n")[:-1]), b""])


def without(first: int, last: int) -> Damage:
    return each(lambda lines: lines[: first - 1] + lines[last:])


def before(line: int, put: bytes) -> Damage:
    """`put` right before a line, in it."""
    return each(lambda lines: [*lines[: line - 1], put + lines[line - 1], *lines[line:]])


def replaced(line: int, old: bytes, new: bytes) -> Damage:
    return each(lambda lines: [*lines[: line - 1], lines[line - 1].replace(old, new, 1), *lines[line:]])


def glued(line: int, keep: int | None = None) -> Damage:
    """A line that goes on as the next one, only its first `keep` bytes being left."""
    return each(lambda lines: [*lines[: line - 1], lines[line - 1][:keep] + lines[line], *lines[line + 1 :]])


def swapped(line: int) -> Damage:
    """A line and the one before it, the other way round."""
    return each(lambda lines: [*lines[: line - 2], lines[line - 1], lines[line - 2], *lines[line:]])
