"""What `run` and `resume` have in common: who watches, and where the result goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from planrun import api
from planrun.cli.delivering import Shown, check_writable, deliver, print_outputs
from planrun.cli.printing import complain
from planrun.core.plan import Json
from planrun.core.records import Record
from planrun.core.state import State
from planrun.errors import EXIT_CODES, PlanrunError, StorageError, known
from planrun.settings import Flags
from planrun.views.console import console
from planrun.views.human import AtTerminal
from planrun.views.result import refused, result
from planrun.views.stream import RawLines

_FLAGS = ("model", "base_url", "context", "window", "max_cost", "max_tokens", "max_time", "max_turns", "session_dir")


def flags_of(options: dict[str, Any]) -> Flags:
    return Flags(**{name: options[name] for name in _FLAGS})


class _Last:
    """Remembers how far the run came, for the case that it cannot say so itself."""

    def __init__(self) -> None:
        self.state, self.path = State(), Path()

    def __call__(self, record: Record, state: State) -> None:
        self.state = state


def drive(ctx: click.Context, shown: Shown, go: Callable[[api.Front], api.Result]) -> None:
    """Run what `go` runs, show it, deliver the result, exit with its code. Errors are delivered too, then raised."""
    check_writable(shown)
    view = console(sys.stderr, os.environ, shown.verbosity)
    last = _Last()
    lines = RawLines(sys.stdout.buffer) if shown.format == "jsonl" and sys.stdout is not None else None

    def opened(path: Path) -> None:
        last.path = path
        ctx.meta["planrun.log"] = path
        view.opened(path)
        if lines is not None:
            lines.opened(path)

    front = api.Front(
        observers=(last, *((lines,) if lines else ()), view),
        on_retry=view.on_retry,
        notice=view.notice,
        human=AtTerminal(sys.stdin, sys.stderr, os.environ, view.paused),
        opened=opened,
    )
    try:
        try:
            ended = go(front)
        finally:
            view.close()
    except Exception as error:
        deliver(shown, _failed(last, error))
        raise
    found = result(ended.state, ended.path)
    delivered = deliver(shown, found) and (shown.format != "text" or print_outputs(found["output"]))
    if lines is not None and lines.lost:
        complain(f"planrun: cannot write to stdout: {lines.lost}")
        delivered = False
    code = ended.state.ended.exit_code if ended.state.ended else 1
    # A result that nobody got is no success; any other code says more than that.
    ctx.exit(code if delivered or code else EXIT_CODES[StorageError.outcome])


def _failed(last: _Last, error: Exception) -> dict[str, Json]:
    """The result where an error ended the run without a last record, or before a first one."""
    if isinstance(error, PlanrunError | OSError):
        why = known(error)
        outcome, code, reason = str(why.outcome), why.exit_code, str(why)
    else:
        outcome, code, reason = None, 1, f"internal error: {type(error).__name__}: {error}"
    if last.state.header is None:
        return refused(outcome, code, reason)
    return {**result(last.state, last.path), "outcome": outcome, "exit_code": code, "reason": reason}
