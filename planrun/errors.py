"""Every error that planrun raises on purpose, with the exit code and the outcome word that a user sees.

PlanrunError
├── UsageError            2   usage             wrong arguments; nothing ran
├── PlanInvalid           2   plan_invalid      the plan file has faults (`faults` lists all of them)
├── ConfigError           2   config            settings, endpoint address, key or model name refused
│   └── ReplayMismatch                              a recorded session does not answer this request
├── SessionBusy           5   session_busy      another process writes this session
├── SessionDamaged        5   session_damaged   the log cannot be trusted (`line` says where)
├── PlanChanged           5   plan_changed      the plan file is not the one that the session recorded
├── StorageError          5   session_damaged   the log, or another file it takes, cannot be used (full, read-only, vanished)
├── NeedsHuman            4   needs_human       somebody has to answer first
├── ProviderError        75   provider          the endpoint failed and retrying will not help now
├── ContextOverflow       3   context           the endpoint said that the request is too long
└── Interrupted 130 143 129   interrupted       SIGINT, SIGTERM, or SIGHUP (the terminal is gone)
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from enum import StrEnum


class Outcome(StrEnum):
    """How a run ended: the word in the last record, in `--format json` and in the summary file."""

    FINISHED = "finished"
    STEP_FAILED = "step_failed"
    VERIFY_FAILED = "verify_failed"
    OUTPUT_INVALID = "output_invalid"
    USAGE = "usage"
    PLAN_INVALID = "plan_invalid"
    CONFIG = "config"
    BUDGET = "budget"
    TIME_LIMIT = "time_limit"
    TURN_LIMIT = "turn_limit"
    STUCK = "stuck"
    CONTEXT = "context"
    NEEDS_HUMAN = "needs_human"
    SESSION_BUSY = "session_busy"
    SESSION_DAMAGED = "session_damaged"
    PLAN_CHANGED = "plan_changed"
    PROVIDER = "provider"
    INTERRUPTED = "interrupted"


EXIT_CODES: dict[Outcome, int] = {
    Outcome.FINISHED: 0,
    Outcome.STEP_FAILED: 1,
    Outcome.VERIFY_FAILED: 1,
    Outcome.OUTPUT_INVALID: 1,
    Outcome.USAGE: 2,
    Outcome.PLAN_INVALID: 2,
    Outcome.CONFIG: 2,
    Outcome.BUDGET: 3,
    Outcome.TIME_LIMIT: 3,
    Outcome.TURN_LIMIT: 3,
    Outcome.STUCK: 3,
    Outcome.CONTEXT: 3,
    Outcome.NEEDS_HUMAN: 4,
    Outcome.SESSION_BUSY: 5,
    Outcome.SESSION_DAMAGED: 5,
    Outcome.PLAN_CHANGED: 5,
    Outcome.PROVIDER: 75,
    Outcome.INTERRUPTED: 130,
}


class PlanrunError(Exception):
    """Base of the tree. `outcome` is the word, `exit_code` the process's code; `str(error)` is for the user."""

    outcome = Outcome.STEP_FAILED

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]


class UsageError(PlanrunError):
    outcome = Outcome.USAGE


_LONGEST = 400  # characters of a message


def one_line(text: str) -> str:
    """Any text as one line of bounded length, free of control characters."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def named(path: str) -> str:
    """A path as it stands in a message: in quotes where it would not be seen as one."""
    text = one_line(path)
    return text if text == path and text.strip() == text != "" else f"'{text}'"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong in a file: where (1-based line and column, 0 when it has no place) and what to do."""

    message: str
    line: int = 0
    column: int = 0
    hint: str = ""

    def clean(self) -> Fault:
        """The same on one line of bounded length, whatever the file has put into it."""
        return replace(self, message=one_line(self.message), hint=one_line(self.hint))

    def told(self, path: str) -> str:
        """The line about it for a person; `path` is how the file is called."""
        place = f"{named(path)}:{self.line}:{self.column}" if self.line else named(path)
        return f"{place}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class PlanInvalid(PlanrunError):
    """All faults of one plan file, in the order of the file."""

    outcome = Outcome.PLAN_INVALID

    def __init__(self, path: str, faults: list[Fault]) -> None:
        self.path = path
        self.faults = sorted((f.clean() for f in faults), key=lambda f: (f.line, f.column))
        super().__init__("\n".join(f.told(path) for f in self.faults))


class ConfigError(PlanrunError):
    outcome = Outcome.CONFIG


class ReplayMismatch(ConfigError):
    """The request at hand is not the one that was recorded; the text shows the first difference."""


class SessionBusy(PlanrunError):
    outcome = Outcome.SESSION_BUSY


class SessionDamaged(PlanrunError):
    """`line` is the 1-based number of the first line that cannot be trusted."""

    outcome = Outcome.SESSION_DAMAGED

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class PlanChanged(PlanrunError):
    outcome = Outcome.PLAN_CHANGED


def refusal(error: OSError) -> str:
    """What the system refused, for a person: the file where one is named, and why."""
    name, why = error.filename, error.strerror or str(error)
    return f"{named(os.fsdecode(name))}: {why}" if isinstance(name, str | bytes) and name else why


def known(error: PlanrunError | OSError) -> PlanrunError:
    """The error of the tree that `error` is, or that a refusal of the system comes to where nothing else was made of it."""
    if isinstance(error, PlanrunError):
        return error
    return StorageError(f"{refusal(error)}. Mend that, then try again; a run that was under way can be resumed.")


class NeedsHuman(PlanrunError):
    outcome = Outcome.NEEDS_HUMAN


class StorageError(PlanrunError):
    outcome = Outcome.SESSION_DAMAGED


class ProviderError(PlanrunError):
    """The endpoint failed. `kind` is its class (`rate`, `server`, `connection`, `timeout`, `quota`, `refused`, …);
    `attempts` counts the requests that were sent; `status` is the HTTP status, or None."""

    outcome = Outcome.PROVIDER

    def __init__(self, message: str, *, kind: str = "server", status: int | None = None, attempts: int = 1) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.attempts = attempts


class ContextOverflow(PlanrunError):
    """The endpoint refused a request as too long; `window` is the limit in tokens that it named, or None."""

    outcome = Outcome.CONTEXT

    def __init__(self, message: str, window: int | None = None) -> None:
        super().__init__(message)
        self.window = window


_SIGNALS: dict[int, str] = {
    signal.SIGINT: "SIGINT (Ctrl-C)",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP (the terminal is gone)",
}


class Interrupted(PlanrunError):
    outcome = Outcome.INTERRUPTED

    def __init__(self, signum: int) -> None:
        super().__init__(f"interrupted by {_SIGNALS.get(signum, f'signal {signum}')}")
        self.signum = signum

    @property
    def exit_code(self) -> int:
        return 128 + self.signum
