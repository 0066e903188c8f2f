"""What the state says to a decision: the values of references, the strategy of a boundary, the answers to questions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Literal

from planrun.core.actions import AskHuman, Settle
from planrun.core.expressions import Scope
from planrun.core.plan import STRATEGIES, Json, Plan, Step, Strategy
from planrun.core.state import State, StepState


def scope_of(state: State) -> Scope:
    """The values that `${{ }}` may read: parameters, outputs of steps that ended, declared environment."""
    header, plan = state.header, state.need_plan()
    return Scope(header.params if header else {}, _Outputs(plan, state.steps), header.env if header else {})


class _Outputs(Mapping[str, Mapping[str, Json]]):
    """Outputs by step id, looked up when asked: building a dict would cost every turn the length of the plan."""

    def __init__(self, plan: Plan, steps: tuple[StepState, ...]) -> None:
        self._plan, self._steps = plan, steps

    def __getitem__(self, step_id: str) -> Mapping[str, Json]:
        output = self._steps[self._plan.index[step_id]].output
        if output is None:
            raise KeyError(step_id)
        return output

    def __iter__(self) -> Iterator[str]:
        return (s.id for s, now in zip(self._plan.steps, self._steps, strict=True) if now.output is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def strategy_of(state: State, step: Step) -> Strategy:
    """A flag or the environment wins over the step, the step over the plan, the plan over the settings."""
    said = (state.options.get("context"), step.context, state.need_plan().context, state.settings.get("context"))
    return next((known for value in said for known in STRATEGIES if value == known), "compact")


def digest_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def approved(state: State, subject: str, digest: str) -> bool | None:
    """The answer on record to exactly this question; None where there is none. The newest one counts."""
    for answer in reversed(state.approvals):
        if answer.subject == subject and answer.digest == digest:
            return answer.decision == "approved"
    return None


def approval(state: State, step: Step, when: Literal["before", "after"], text: str) -> AskHuman | Settle | None:
    """What a step's `approve` asks for: the question, a failure where it was denied, None once it is approved."""
    subject = f"{when}:{step.id}"
    digest = digest_of(subject, step.prompt or step.run or "", str(state.step_state(step.id).attempt))
    match approved(state, subject, digest):
        case True:
            return None
        case False:
            return Settle(step.id, done=False, note="it was not approved", output=None, reason="step_failed")
    return AskHuman(step.id, subject, digest, text, asked=False)
