"""What a front end hands to a run and what it gets back: values that the composition root and its callers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from planrun.core.plan import Json
from planrun.core.state import State
from planrun.models.base import Model, Retry
from planrun.runner.loop import Observer
from planrun.runner.world import Human, Journal, World
from planrun.session.log import Log
from planrun.settings import Flags


@dataclass(frozen=True, slots=True)
class Ask:
    """What the command line asks of a run or a resume. `approve` is all, none or ask; `rerun` is none, stale or a step's id;
    `wait_limit` is how long a request may wait for a reset that the endpoint names, in seconds."""

    flags: Flags = field(default_factory=Flags)
    params: Mapping[str, Json] = field(default_factory=dict)
    session: str | None = None
    until: str | None = None
    approve: str = "ask"
    start_from: str | None = None
    skip: tuple[str, ...] = ()
    rerun: str | None = None
    wait_limit: float | None = None


@dataclass(frozen=True, slots=True)
class Front:
    """Who watches and who answers: everything that a front end gives to a run."""

    observers: tuple[Observer, ...] = ()
    on_retry: Callable[[Retry], None] = lambda _: None
    notice: Callable[[str], None] = lambda _: None
    human: Human | None = None
    opened: Callable[[Path], None] = lambda _: None  # the session's log is there and locked; nothing was appended yet


@dataclass(frozen=True, slots=True)
class Seams:
    """Where a program that embeds planrun, or a test, puts its own: how a name becomes a model, what stands before the log, all
    that the runner acts on."""

    models: Callable[[str], Model] | None = None
    journal: Callable[[Log], Journal] = lambda log: log
    world: Callable[[World], World] = lambda world: world


@dataclass(frozen=True, slots=True)
class Result:
    """The state that the log at `path` folds to when the run is over: `state.ended` says how."""

    state: State
    path: Path
