"""`UpdatePlanStep`, the tool by which a model ends its step. It is judged here, purely: the runner owns the state."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass

from planrun.core import outputs
from planrun.core.messages import ToolCall
from planrun.core.plan import Json, Step

ARGUMENTS = ("status", "output", "note", "step_id")


@dataclass(frozen=True, slots=True)
class Refused:
    """The call changes nothing; `text` tells the model why and what to do. `output` is set where only the output was wrong."""

    text: str
    output: bool = False


@dataclass(frozen=True, slots=True)
class GaveUp:
    note: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The model says that the step is done, with an output that fits. Verification comes next."""

    output: dict[str, Json]
    note: str | None


Judgement = Refused | GaveUp | Claimed


def judge(call: ToolCall, step: Step, others: Container[str]) -> Judgement:
    """What this call of the plan tool comes to while `step` is current; `others` are the ids of all steps of the plan."""
    if call.fault:
        return Refused(f"{call.fault}. Nothing changed.")
    arguments = json.loads(call.arguments)
    unknown = [k for k in arguments if k not in ARGUMENTS]
    if unknown:
        return Refused(_misplaced(unknown, step))
    wanted = arguments.get("step_id") or step.id
    if wanted != step.id:
        known = "" if wanted in others else f"; there is no step {json.dumps(wanted)}"
        return Refused(
            f"The current step is {step.id}, not {json.dumps(wanted)}{known}. Nothing changed. Work on {step.id} only."
        )
    note = arguments.get("note")
    if note is not None and not isinstance(note, str):
        note = json.dumps(note, ensure_ascii=False)
    match arguments.get("status"):
        case "failed":
            return GaveUp(note or "the model gave no reason")
        case "done":
            given = arguments.get("output")
            clean, faults = outputs.validate(step.handed_in, {} if given is None else given)
            if faults:
                listed = "\n".join(f"- {f}" for f in faults)
                return Refused(f"The output of step {step.id} is not accepted:\n{listed}\n{_due(step)}", output=True)
            return Claimed(clean, note)
        case other:
            found = "nothing" if other is None else json.dumps(other, ensure_ascii=False)[:80]
            return Refused(f'status must be "done" or "failed", found {found}. Nothing changed.')


def _due(step: Step) -> str:
    lines = [f"- {outputs.describe(f)}" for f in step.handed_in]
    return (
        "Call UpdatePlanStep again with output:\n" + "\n".join(lines) if lines else "Call UpdatePlanStep again without output."
    )


def _misplaced(unknown: list[str], step: Step) -> str:
    names = {f.name for f in step.output}
    if set(unknown) <= names:
        fields = ", ".join(f'"{k}": ...' for k in unknown)
        return f'Put {", ".join(unknown)} inside output: {{"status": "done", "output": {{{fields}}}}}. Nothing changed.'
    return f"Unknown arguments {', '.join(unknown)}; expected {', '.join(ARGUMENTS)}. Nothing changed."
