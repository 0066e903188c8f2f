"""What the runner acts on: everything outside the state, gathered by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from planrun.core.events import Event, Session
from planrun.core.plan import Plan
from planrun.core.records import Record
from planrun.models.base import Model, Retry
from planrun.policy.permissions import Permissions, Rule
from planrun.runner.signals import Signals
from planrun.settings import Hook
from planrun.tools.base import History, Tool


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


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cached: float


@dataclass(frozen=True, slots=True)
class World:
    """`models` gives the model of a name; `environment` is what commands get; `spill` is where long texts lie."""

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
    workspace: Path
    spill: Path
    environment: Mapping[str, str]
    on_retry: Callable[[Retry], None] = field(default=lambda retry: None)
    history: History | None = None
    hooks: Mapping[str, tuple[Hook, ...]] = field(default_factory=dict)
    schemas: dict[tuple[str, ...] | None, tuple[bytes, str]] = field(default_factory=dict)
    log_bytes: Callable[[], int] = lambda: 0  # how large the log is
