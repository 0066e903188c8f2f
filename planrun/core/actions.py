"""The closed union of actions: what `decide` wants next. The runner performs them; each one yields events that change the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planrun.core.edits import Edit
from planrun.core.events import FailureReason
from planrun.core.messages import CallStatus, ToolCall
from planrun.core.plan import Check, Field, Json
from planrun.errors import Outcome

Trigger = Literal["boundary", "budget", "overflow", "background", "manual"]


@dataclass(frozen=True, slots=True)
class Skip:
    step: str
    note: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Edit the active context: at the boundary before `step`, or inside it to fit the window."""

    step: str
    strategy: str
    trigger: Trigger
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Summarise:
    """Let a summary take the place of the records `first` to `last`; `level` 1 sums up messages, a higher one summaries. A model is
    asked, after a first answer that was not accepted with a `tight` prompt; without a `model` the digest does it."""

    step: str
    trigger: Trigger
    first: int
    last: int
    level: int
    model: bool
    tight: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """Start an attempt of a step; `note` says what failed in the attempt before."""

    step: str
    attempt: int
    note: str | None


@dataclass(frozen=True, slots=True)
class Brief:
    """Tell the model where it is: the user message that opens a step."""

    step: str
    text: str


@dataclass(frozen=True, slots=True)
class AskModel:
    step: str


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Run the first of these unanswered calls (or, where they are read-only, the leading ones side by side)."""

    step: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a call without running anything."""

    step: str
    call: ToolCall
    text: str
    status: CallStatus


@dataclass(frozen=True, slots=True)
class EndCall:
    """Record the end of a call whose result is on record, but not its end: a kill came between."""

    call_id: str
    name: str
    status: CallStatus


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a run step's command; `values` are the environment variables that its references became."""

    step: str
    command: str
    values: tuple[tuple[str, str], ...]
    again: bool


@dataclass(frozen=True, slots=True)
class FileOutput:
    """The check that comes with a file output: the file must be there."""

    field: Field


@dataclass(frozen=True, slots=True)
class Verify:
    """Judge one check of a step; `shown` is its command with the values in place, for reading only; `recheck` where the step had
    passed it and it is asked once more."""

    step: str
    call_id: str
    check: Check | FileOutput
    command: str
    values: tuple[tuple[str, str], ...]
    shown: str
    recheck: bool


@dataclass(frozen=True, slots=True)
class Settle:
    """Give a step its final status."""

    step: str
    done: bool
    note: str | None
    output: dict[str, Json] | None
    reason: FailureReason | None


@dataclass(frozen=True, slots=True)
class Say:
    """A line of the runner's own in the conversation."""

    step: str
    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class AskHuman:
    """Put a question to a human: a new one, or the pending one again (`asked`)."""

    step: str
    subject: str
    digest: str
    text: str
    asked: bool


@dataclass(frozen=True, slots=True)
class End:
    """End the run. `exit_code` where the outcome alone does not give it."""

    outcome: Outcome
    reason: str
    output: dict[str, Json] | None = None
    partial: bool = False
    exit_code: int | None = None


Action = (
    Skip | Compact | Summarise | Begin | Brief | AskModel | RunCalls | Answer | EndCall | RunCommand | Verify | Settle | Say | AskHuman | End
)  # fmt: skip
