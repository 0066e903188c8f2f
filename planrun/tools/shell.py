"""Bash, and what every tool does with a text that is too long for the model."""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from pydantic import AliasChoices, Field

from planrun.core.messages import CallStatus, well_formed
from planrun.tools import scratch
from planrun.tools.base import Arguments, Tool, ToolContext, ToolResult
from planrun.tools.paths import guarded, shown
from planrun.tools.process import Captured, Finished, run_command
from planrun.tools.text import clean, clip
from planrun.writing import atomic_write

DEFAULT_SECONDS = 120.0
MOST_SECONDS = 600.0
_ROOM = 160  # characters kept free for the closing notes
_ASKED = re.compile(
    r"/dev/tty|not a (?:tty|terminal)|EOF when reading|could not read (?:Username|Password)|a terminal is required"
)
_NO_INPUT = "[commands get no input and no terminal]"


class BashArguments(Arguments):
    command: str = Field(validation_alias=AliasChoices("command", "cmd"))
    timeout: float = Field(DEFAULT_SECONDS, gt=0, description="seconds, at most 600")


def spill(text: str, ctx: ToolContext, name: str) -> str:
    """`text` if the model may have it whole; else its head and tail, and the whole in a file of `ctx.spill` that is
    named by its content."""
    text = ctx.mask(text)
    if len(text) <= ctx.limit:
        return text
    return clip(text, ctx.limit, _saved(text.encode("utf-8", "replace"), ctx, name))


def _bash(arguments: BashArguments, ctx: ToolContext) -> ToolResult:
    asked = min(arguments.timeout, MOST_SECONDS)
    left = asked if ctx.deadline is None else min(asked, ctx.deadline - time.monotonic())
    if left <= 0:
        return ToolResult("[not run: the step's time is used up]", "timeout")
    capture = scratch.path_for(ctx.spill, "bash")
    try:
        finished = run_command(
            well_formed(arguments.command),
            cwd=ctx.workspace,
            env=ctx.env,
            timeout=left,
            capture=capture,
            prefix=ctx.sandbox,
            mask=ctx.mask,
        )
        if finished.fault:
            return ToolResult(f"the command could not be run: {finished.fault}", "error")
        body = _body(finished.stdout, ctx, ctx.limit - _ROOM)
    finally:
        with suppress(OSError):
            capture.unlink()
    notes = _notes(finished, asked, left)
    if finished.exit_code and _ASKED.search(body):
        notes.append(_NO_INPUT)
    status: CallStatus = "timeout" if finished.timed_out else "ok" if finished.exit_code == 0 else "error"
    return ToolResult("\n".join([body, *notes]), status)


def _notes(finished: Finished, asked: float, left: float) -> list[str]:
    if finished.timed_out:
        after = f"after {asked:g} s" if left == asked else "with the step's time"
        return [f"[timed out {after}; the process group was killed]", _NO_INPUT]
    if finished.signal is not None:
        return [f"[killed by signal {finished.signal}]"]
    return [f"[exit code {finished.exit_code}]"] if finished.exit_code else []


def _body(output: Captured, ctx: ToolContext, limit: int) -> str:
    if output.omitted:
        return output.text(limit, _renamed(output, ctx)).removesuffix("\n")
    raw = output.head + output.tail
    text = ctx.mask(clean(raw)).removesuffix("\n")
    return clip(text, limit, _saved(raw, ctx, "bash")) if len(text) > limit else text or "(no output)"


def _saved(data: bytes, ctx: ToolContext, name: str) -> str:
    """Keep `data` in the spill folder; how to read it."""
    path = ctx.spill / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.txt"
    try:
        if path.exists():
            os.utime(path)  # the oldest goes first
        else:
            atomic_write(path, data, mode=0o600)
    except (OSError, ValueError) as error:
        return f"the rest could not be saved: {getattr(error, 'strerror', None) or error}"
    return _kept(path, "whole text", ctx)


def _renamed(output: Captured, ctx: ToolContext) -> str:
    """Give the file that the stream was written to the name of its content; how to read it."""
    if output.saved is None:
        return "the rest could not be saved"
    try:
        with open(output.saved, "rb") as file:
            path = ctx.spill / f"bash-{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}.txt"
        os.replace(output.saved, path)
    except OSError as error:  # the command itself may have removed it
        return f"the rest could not be saved: {error.strerror}"
    return _kept(path, "whole text" if output.saved_bytes == output.total else f"its first {output.saved_bytes:,} bytes", ctx)


def _kept(path: Path, part: str, ctx: ToolContext) -> str:
    scratch.prune(ctx.spill)
    return f"{part}: {shown(ctx.workspace, path)}, page it with Read"


BASH = Tool(
    name="Bash",
    description="Run a shell command in the working directory. No input, no terminal; background jobs end with it",
    arguments=BashArguments,
    run=guarded(_bash),
    subject=lambda arguments: arguments.command,
)
