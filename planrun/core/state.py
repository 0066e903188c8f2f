"""The run state: what the records of a session add up to. `apply` is the fold's step; nothing else makes a state.

The state is bounded by the plan and the active context, not by the log: the archive stays in the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from planrun.core.context import View
from planrun.core.events import (
    Approval,
    CallEnded,
    Ended,
    FailureReason,
    Purpose,
    Session,
    StepStatus,
    Stopped,
)
from planrun.core.evolve import evolve
from planrun.core.messages import CallStatus
from planrun.core.plan import Json, Plan, Step
from planrun.core.projection import Hidden

RECENT = 20  # call fingerprints kept for the repeat guard: five rounds of a cycle of four


@dataclass(frozen=True)  # without slots, as StepState and State: they are copied for every record, and a dict is copied faster
class Spend:
    """What was used. Tokens count by estimate where an endpoint reported none (`estimated`); cost is None where a price is unknown."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cost_usd: float | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: Spend) -> Spend:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Spend(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            estimated=self.estimated or other.estimated,
            cost_usd=sum(costs) if costs else None,
        )


@dataclass(frozen=True, slots=True)
class CheckResult:
    ok: bool
    text: str


@dataclass(frozen=True)
class StepState:
    """One step's progress. `attempt` counts for ever; `tries` since the step was last reset; `turns`, `nudges`, `empties`, `fixes`,
    `recent`, `warned`, `checks` and `attempt_seconds` belong to the present attempt. `changed_at` is the record that gave its last status."""

    status: StepStatus = "todo"
    attempt: int = 0
    tries: int = 0
    turns: int = 0
    total_turns: int = 0
    nudges: int = 0
    empties: int = 0
    fixes: int = 0
    recent: tuple[str, ...] = ()
    warned: bool = False  # the model has read that it repeats itself, and still does
    checks: tuple[CheckResult, ...] = ()
    note: str | None = None
    output: dict[str, Json] | None = None
    reason: FailureReason | None = None
    refusal: str | None = None
    failure: str | None = None  # what the last failed check said
    baseline: dict[str, str] | None = None
    files: dict[str, dict[str, Json]] | None = None
    ran: CallEnded | None = None  # a run step's command, once it ended
    briefed: bool = False
    told_landing: bool = False
    changed_at: int = 0
    seconds: float = 0.0
    attempt_seconds: float = 0.0
    spend: Spend = Spend()


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The request of record `seq`, which has no answer yet: it counts by estimate until its usage arrives. `cost_usd` is what its
    prompt comes to, None where no price is known."""

    tokens: int
    raw: int
    step: str | None
    purpose: Purpose
    model: str = ""
    seq: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True)
class State:
    """Everything that decides what happens next. `header` and `plan` come from the session record."""

    header: Session | None = None
    plan: Plan | None = None
    seq: int = 0
    timestamp: float = 0.0
    resumed_at: int = 0
    options: dict[str, Json] = field(default_factory=dict)
    settings: dict[str, Json] = field(default_factory=dict)
    model: str = ""
    steps: tuple[StepState, ...] = ()
    current: int | None = None
    view: View = ()
    hidden: tuple[Hidden, ...] = ()  # what the step under way does not see
    in_flight: tuple[str, ...] = ()
    unended: tuple[tuple[str, str, CallStatus], ...] = ()  # answered calls whose tool_end is still to come
    request: Unsettled | None = None
    background: Unsettled | None = None  # the same for a summary that is made beside the run
    spend: Spend = Spend()
    elapsed: float = 0.0
    turns: int = 0
    replies: int = 0  # answers received: where a replayed recording goes on
    factors: dict[str, float] = field(default_factory=dict)  # by model: what turns raw estimates into its tokens
    windows: dict[str, int] = field(default_factory=dict)  # by model: taught by an endpoint
    overflows: int = 0  # requests refused as too long since the last answer
    stairs: int = 0  # models' summaries that were not accepted since the last compaction
    digest_only: str | None = None  # the step whose summaries no model writes any more: it failed to
    no_background: str | None = None  # the step for which no summary is made beside the run any more
    approvals: tuple[Approval, ...] = ()
    question: Approval | None = None
    landing: tuple[str, ...] = ()
    compactions: int = 0
    meagre: int = 0  # compactions in a row, inside the step under way, that freed next to nothing
    advised: bool = False  # a fork was advised
    deferred: bool = False  # a hook put off the compaction before the next request or attempt
    copied_at: int = 0  # bytes of messages in the log at the last full copy in a compaction record
    archived: int = 0  # bytes of message content in the archive
    rechecked: int = 0
    worked: int = 0  # the newest record of work on a step that does not stand under `finally`
    stop: Stopped | None = None  # the run is over but for the commands under `finally`
    stopped_at: float = 0.0  # `elapsed` then
    held: int | None = None  # the step that was under way then, and is again once the run goes on
    frontier: int = 0  # every step before this one is over: done, skipped, or failed with on_failure: continue
    ended: Ended | None = None

    def step_state(self, step_id: str) -> StepState:
        return self.steps[self.need_plan().index[step_id]]

    def model_of(self, step: Step | None) -> str:
        """The model that a step asks; without one the session's. One that was named for this run wins."""
        named = self.options.get("model")
        return named if isinstance(named, str) else (step and step.model) or self.model

    @property
    def asks(self) -> str:
        """The model that the step under way asks; between steps the session's."""
        return self.model_of(self.need_plan().steps[self.current] if self.current is not None else None)

    @property
    def unsettled(self) -> tuple[Unsettled, ...]:
        return tuple([sent for sent in (self.request, self.background) if sent is not None])

    @property
    def under_way(self) -> int | None:
        """The step that work is on, also while a stop holds it."""
        return self.current if self.stop is None else self.held

    @property
    def factor(self) -> float:
        """What turns raw estimates into tokens of the model that is asked."""
        return self.factors.get(self.asks, 1.0)

    def need_plan(self) -> Plan:
        if self.plan is None:
            raise ValueError("the session has no plan yet")
        return self.plan


PlanReader = Callable[[Session], Plan]


def worked(state: State, index: int) -> State:
    """The state after work on a step; what stands under `finally` comes after all work and does not count."""
    return state if state.need_plan().steps[index].final else evolve(state, worked=state.seq)


def with_step(state: State, index: int, change: Callable[[StepState], StepState]) -> State:
    """The state with one step's progress changed."""
    return evolve(state, steps=replaced(state.steps, index, change(state.steps[index])))


def replaced(steps: tuple[StepState, ...], index: int, now: StepState) -> tuple[StepState, ...]:
    """The progress of all steps with that of one changed."""
    changed = list(steps)
    changed[index] = now
    return tuple(changed)
