"""What `run` and `resume` have in common: who watches, and where the result goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from planrun import api
from planrun.cli.printing import complain, say, say_json
from planrun.core.plan import Json
from planrun.core.records import Record
from planrun.core.state import State
from planrun.errors import PlanrunError, UsageError
from planrun.settings import Flags
from planrun.views.console import console
from planrun.views.human import AtTerminal
from planrun.views.result import refused, result, withholds
from planrun.views.stream import RawLines
from planrun.views.words import block, one_line

_FLAGS = ("model", "base_url", "context", "window", "max_cost", "max_tokens", "max_time", "max_turns", "session_dir")


@dataclass(frozen=True, slots=True)
class Shown:
    """How a run is shown, and the files that its result is written to."""

    format: str
    verbosity: int
    summary: Path | None
    junit: Path | None

    @classmethod
    def of(cls, options: dict[str, Any]) -> Shown:
        verbosity = 0 if options["quiet"] else 2 if options["verbose"] else 1
        return cls(options["format"], verbosity, options["summary"], options["junit"])


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
            _writable(shown)
            ended = go(front)
        finally:
            view.close()
    except Exception as error:
        _deliver(shown, _failed(last, error))
        raise
    _deliver(shown, result(ended.state, ended.path))
    if shown.format == "text":
        _print_outputs(ended.state)
    ctx.exit(ended.state.ended.exit_code if ended.state.ended else 1)


def _failed(last: _Last, error: Exception) -> dict[str, Json]:
    """The result where an error ended the run without a last record, or before a first one."""
    if isinstance(error, PlanrunError):
        outcome, code, reason = str(error.outcome), error.exit_code, str(error)
    else:
        outcome, code, reason = None, 1, f"internal error: {type(error).__name__}: {error}"
    if last.state.header is None:
        return refused(outcome, code, reason)
    return {**result(last.state, last.path), "outcome": outcome, "exit_code": code, "reason": reason}


def _deliver(shown: Shown, found: dict[str, Json]) -> None:
    if withholds(found):
        complain("planrun: an output that holds a secret is withheld here; `planrun output` prints it with the secret masked")
    if shown.format == "json":
        say_json(found)
    for write in (_write_summary, _write_junit, _append_markdown):
        try:
            write(shown, found)
        except OSError as error:
            complain(f"planrun: cannot write {error.filename or 'the result'}: {error.strerror or error}")


def _write_summary(shown: Shown, found: dict[str, Json]) -> None:
    if shown.summary is not None:
        import json

        text = json.dumps(found, ensure_ascii=False, indent=2) + "\n"
        shown.summary.write_bytes(text.encode("utf-8", "backslashreplace"))


def _write_junit(shown: Shown, found: dict[str, Json]) -> None:
    if shown.junit is not None:
        from planrun.views.junit import junit

        shown.junit.write_bytes(junit(found))


def _append_markdown(shown: Shown, found: dict[str, Json]) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        from planrun.views.summary import markdown

        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(markdown(found))


def _print_outputs(state: State) -> None:
    """Each of the plan's outputs: on the line of its name, or below it where it has lines of its own."""
    output = state.ended.output if state.ended and state.ended.output else {}
    for name, value in output.items():
        if not isinstance(value, str):
            import json

            say(f"{name}: {json.dumps(value, ensure_ascii=False)}")
        elif "\n" in value.strip("\n"):
            say(f"{name}:\n" + "\n".join(f"  {line}" for line in block(value).split("\n")))
        else:
            say(f"{name}: {one_line(value, len(value) + 1)}")


def _writable(shown: Shown) -> None:
    """Refuse before anything is spent where a result could not be written. Raises UsageError."""
    for option, path in (("--summary", shown.summary), ("--junit", shown.junit)):
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab"):
                pass
        except OSError as error:
            raise UsageError(f"{option}: cannot write {path}: {error.strerror or error}") from error
