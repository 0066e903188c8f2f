"""Where the result of a run goes: standard output, the files that were asked for, the summary page of a CI job."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from planrun.cli.printing import complain, say, say_json
from planrun.core.plan import Json
from planrun.errors import StorageError, UsageError, named
from planrun.views.result import refused, withholds
from planrun.views.words import block, one_line
from planrun.writing import atomic_write, try_write


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


def deliver(shown: Shown, found: dict[str, Json]) -> bool:
    """Whether all that was asked for is where it was asked for; the summary page of a CI job was not asked for."""
    if withholds(found):
        complain("planrun: an output that holds a secret is withheld here; `planrun output` prints it with the secret masked")
    delivered = shown.format != "json" or _told(lambda: say_json(found))
    for write in (_write_summary, _write_junit, _append_markdown):
        try:
            write(shown, found)
        except OSError as error:
            complain(f"planrun: {_cannot_write(error, None)}")
            delivered = delivered and write is _append_markdown
    return delivered


def check_writable(shown: Shown) -> None:
    """Refuse before anything is spent where a result could not be written. Raises UsageError, which is delivered by then."""
    for option, path in (("--summary", shown.summary), ("--junit", shown.junit)):
        try:
            # A reader of a pipe would take our closing it for the end.
            if path is not None and not path.is_fifo():
                _try(path)
        except OSError as error:
            fault = UsageError(f"{option}: {_cannot_write(error, path)}")
            deliver(replace(shown, summary=None, junit=None), refused(str(fault.outcome), fault.exit_code, str(fault)))
            raise fault from None


def _try(path: Path) -> None:
    """Raise OSError where `_put` could not write there; nothing is left there."""
    if _as_it_goes(path):
        _opened(path, os.O_APPEND).close()
    else:
        try_write(path.resolve())


def _put(path: Path, data: bytes) -> None:
    """Make `data` the content of a file, whole or not at all. Raises OSError."""
    try:
        if _as_it_goes(path) or not _replaced(path, data):
            with _opened(path, os.O_TRUNC) as file:
                file.write(data)
    except OSError as error:  # as it was named by whoever asked for it
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replaced(path: Path, data: bytes) -> bool:
    """False where the file is a mount of its own, as containers have them: nothing can take its place."""
    try:
        atomic_write(path.resolve(), data)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def _as_it_goes(path: Path) -> bool:
    """Whether no other file may take the place of what is there: a pipe, a stream of ours, a file whose folder is closed."""
    streams = path.parts[:2] in (("/", "dev"), ("/", "proc"))
    closed = not os.access(path.resolve().parent, os.W_OK | os.X_OK)
    return path.exists() and (streams or closed or not path.is_file())


def _opened(path: Path, how: int) -> BinaryIO:
    """The file to be written to. Never waits for a reader of a pipe. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | how, 0o666)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def _cannot_write(error: OSError, path: Path | None) -> str:
    why = "it is a pipe that nobody reads" if error.errno == errno.ENXIO else error.strerror or str(error)
    return f"cannot write {named(str(path or error.filename or 'the result'))}: {why}"


def _write_summary(shown: Shown, found: dict[str, Json]) -> None:
    if shown.summary is not None:
        import json

        text = json.dumps(found, ensure_ascii=False, indent=2) + "\n"
        _put(shown.summary, text.encode("utf-8", "backslashreplace"))


def _write_junit(shown: Shown, found: dict[str, Json]) -> None:
    if shown.junit is not None:
        from planrun.views.junit import junit

        _put(shown.junit, junit(found))


def _append_markdown(shown: Shown, found: dict[str, Json]) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        from planrun.views.summary import markdown

        with _opened(Path(path), os.O_APPEND) as file:
            file.write(markdown(found).encode("utf-8", "backslashreplace"))


def _told(tell: Callable[[], None]) -> bool:
    """Print a result. False where that cannot be done, which is said."""
    try:
        tell()
    except StorageError as error:
        complain(f"planrun: {error}")
        return False
    return True


def print_outputs(output: Json) -> bool:
    """Each of the plan's outputs on stdout; False where they could not be written."""
    return _told(lambda: _print_outputs(output))


def _print_outputs(output: Json) -> None:
    """Each of the plan's outputs: on the line of its name, or below it where it has lines of its own."""
    for name, value in output.items() if isinstance(output, dict) else ():
        if not isinstance(value, str):
            import json

            say(f"{name}: {json.dumps(value, ensure_ascii=False)}")
        elif "\n" in value.strip("\n"):
            say(f"{name}:\n" + "\n".join(f"  {line}" for line in block(value).split("\n")))
        else:
            say(f"{name}: {one_line(value, len(value) + 1)}")
