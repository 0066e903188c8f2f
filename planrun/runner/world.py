"""What the runner acts on: everything outside the state, gathered by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from planrun.core.actions import RunCommand, Verify
from planrun.core.events import CallEnded, Event, Session
from planrun.core.messages import CallStatus
from planrun.core.plan import Json, Plan, Step
from planrun.core.records import Record
from planrun.core.state import State
from planrun.masking.masker import NOTHING, Masker
from planrun.models.base import Model, Retry
from planrun.policy.hooks import Ran
from planrun.policy.permissions import Permissions, Rule
from planrun.runner.signals import Signals
from planrun.settings import Hook
from planrun.tools.base import History, Tool
from planrun.tools.sandbox import Bubblewrap


@dataclass(frozen=True, slots=True)
class Answered:
    yes: bool
    by: str


class Human(Protocol):
    """Whoever answers approvals: None where nobody can."""

    def ask(self, question: str) -> Answered | None: ...


class Journal(Protocol):
    """The log as the runner sees it."""

    def append(self, event: Event) -> Record: ...

    def sync(self) -> None: ...


class Acts(Protocol):
    """What the plan's commands and checks, the files they name and the user's hooks come to. On a machine: `runner.acts`."""

    def run(self, world: World, state: State, action: RunCommand, call_id: str) -> CallEnded:
        """How the command of a run step ended."""

    def judge(self, world: World, state: State, action: Verify) -> tuple[CallStatus, str, float | None]:
        """How a check came out, what the model is told of it, how long it took in seconds; `interrupted` where a limit of the
        run cut it off: then it says nothing."""

    def baseline(self, world: World, step: Step) -> dict[str, str]:
        """What the files of `unchanged` checks are like, as digests by path."""

    def describe(self, world: World, step: str, path: str) -> dict[str, Json] | None:
        """`{path, size, sha256}` of a file that is an output of `step`; None where there is none."""

    def hook(self, world: World, hook: Hook, payload: Mapping[str, Json]) -> Ran:
        """How a hook ended."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cached: float


@dataclass(frozen=True, slots=True)
class World:
    """`models` gives the model of a name; `environment` is what commands get; `spill` is where long texts lie;
    `sandbox` is what commands of the model and of the plan run in (hooks are the user's own and run outside)."""

    log: Journal
    read_plan: Callable[[Session], Plan]
    models: Callable[[str], Model]
    prices: Callable[[str], Price | None]
    reply_reserve: Callable[[str], int | None]
    tools: Mapping[str, Tool]
    permissions: Permissions
    polling: tuple[Rule, ...]
    human: Human
    signals: Signals
    acts: Acts
    workspace: Path
    spill: Path
    environment: Mapping[str, str]
    mask: Masker = NOTHING
    on_retry: Callable[[Retry], None] = field(default=lambda retry: None)
    history: History | None = None
    sandbox: Bubblewrap | None = None
    hooks: Mapping[str, tuple[Hook, ...]] = field(default_factory=dict)
    schemas: dict[tuple[str, ...] | None, tuple[bytes, str]] = field(default_factory=dict)
    log_bytes: Callable[[], int] = lambda: 0  # how large the log is
