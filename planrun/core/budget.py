"""Limits of the plan and of a step: what is used, what is near, what is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planrun.core.actions import End
from planrun.core.plan import Limits, Step
from planrun.core.state import Spend, State, Unsettled
from planrun.errors import Outcome

Work = Literal["model", "command", "check"]  # a request or a tool, a run step's command, a check of what was done

LAND_AT = 0.85
RESERVE, LONGEST_RESERVE = 0.1, 300.0  # of a time limit, and in seconds: what is kept for a step's checks
GRACE = 30.0  # seconds after a signal for the commands under `finally`: `docker compose down` alone may wait 10
TICK = 0.01  # seconds: timestamps are rounded, so a limit of time counts as reached that much before
_OUTCOMES = {
    "cost_usd": Outcome.BUDGET,
    "tokens": Outcome.BUDGET,
    "time": Outcome.TIME_LIMIT,
    "turns": Outcome.TURN_LIMIT,
}
_UNITS = {"cost_usd": "USD", "tokens": "tokens", "time": "seconds", "turns": "turns"}


@dataclass(frozen=True, slots=True)
class Use:
    """How far one limit is used: `name` as in the plan, `scope` empty for the plan's own or the step's id."""

    name: str
    scope: str
    used: float
    maximum: float

    @property
    def share(self) -> float:
        return self.used / self.maximum if self.maximum > 0 else 1.0

    @property
    def key(self) -> str:
        return f"{self.scope}.{self.name}" if self.scope else self.name


def limits_in_force(state: State) -> Limits:
    """The run's limits after flags, environment, plan and settings."""
    raw = state.settings.get("limits")
    if not isinstance(raw, dict):
        return state.need_plan().limits

    def number(name: str) -> float | None:
        value = raw.get(name)
        return float(value) if isinstance(value, int | float) else None

    tokens, turns = number("tokens"), number("turns")
    return Limits(
        number("cost_usd"), None if tokens is None else int(tokens), number("time"), None if turns is None else int(turns)
    )


def grace(state: State) -> float | None:
    """Seconds left for what runs after a signal, whose sender does not wait for ever; None without one."""
    if state.stop is None or state.stop.outcome != Outcome.INTERRUPTED:
        return None
    left = GRACE - (state.elapsed - state.stopped_at)
    return left if left > TICK else 0.0


def exempt(step: Step) -> bool:
    """A command under `finally` runs whatever limit of the run is reached; its own limits and timeout hold."""
    return step.final and step.run is not None


def uses(state: State, step: Step | None) -> list[Use]:
    """Every limit in force and how much of it is used; a step's turn limit belongs to its attempts and is not here."""
    run = Limits() if step is not None and exempt(step) else limits_in_force(state)
    cost, tokens = _spent(state.spend, state.unsettled)
    rows = [
        ("cost_usd", "", cost, run.cost_usd),
        ("tokens", "", tokens, run.tokens),
        ("time", "", state.elapsed, run.time),
        ("turns", "", float(state.turns), run.turns),
    ]
    if step is not None:
        now, own = state.step_state(step.id), step.limits
        cost, tokens = _spent(now.spend, tuple(sent for sent in state.unsettled if sent.step == step.id))
        rows += [
            ("cost_usd", step.id, cost, own.cost_usd),
            ("tokens", step.id, tokens, own.tokens),
            ("time", step.id, now.seconds, own.time),
        ]
    return [Use(name, scope, used, float(most)) for name, scope, used, most in rows if most is not None]


def _spent(spend: Spend, pending: tuple[Unsettled, ...]) -> tuple[float, float]:
    """Dollars and tokens, with those of requests that have no answer yet."""
    cost = (spend.cost_usd or 0.0) + sum(sent.cost_usd or 0.0 for sent in pending)
    return cost, float(spend.tokens + sum(sent.tokens for sent in pending))


def exceeded(state: State, step: Step, doing: Work = "model") -> End | None:
    """The end that a limit brings, checked before each model call and (time only) before a command."""
    for use in uses(state, step):
        kept = _kept(use, step, doing)
        reached = use.used >= use.maximum - kept - (TICK if use.name == "time" else 0)
        if reached and (doing == "model" or use.name == "time"):
            whose = f"step {use.scope}'s" if use.scope else "the"
            but = f", {kept:g} are kept for its checks" if kept else ""
            text = f"{whose} limit of {use.maximum:g} {_UNITS[use.name]} is reached ({use.used:g} used{but})"
            how = "in the plan and resume with --rerun stale" if use.scope else f"with {_FLAGS[use.name]} on resume"
            return End(_OUTCOMES[use.name], f"{text}; raise it {how}")
    return None


def _kept(use: Use, step: Step, doing: Work) -> float:
    """Seconds of a time limit that are kept for the checks of the step: what was done in time can still be verified."""
    return min(RESERVE * use.maximum, LONGEST_RESERVE) if use.name == "time" and step.verify and doing != "check" else 0.0


_FLAGS = {"cost_usd": "--max-cost", "tokens": "--max-tokens", "time": "--max-time", "turns": "--max-turns"}


def near(state: State, step: Step) -> Use | None:
    """The limit that is nearest to its end, at or over the landing mark."""
    attempt = Use("turns", step.id, float(state.step_state(step.id).turns), float(step.limits.turns or 0))
    everything = [*uses(state, step), *([attempt] if step.limits.turns else [])]
    close = [u for u in everything if u.share >= LAND_AT]
    return max(close, key=lambda u: u.share) if close else None


def time_left(state: State, step: Step, doing: Work = "model") -> float | None:
    """Seconds that this may take, by the time limits and the timeout of a step under way; None is unbounded."""
    now = state.step_state(step.id)
    left = [u.maximum - _kept(u, step, doing) - u.used for u in uses(state, step) if u.name == "time"]
    if step.timeout is not None and now.status == "in_progress":
        left.append(step.timeout - now.attempt_seconds)
    if (after := grace(state)) is not None:
        left.append(after)
    return max(0.0, min(left)) if left else None
