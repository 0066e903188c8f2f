"""The closed union of events: every fact that a session records. A record (see `records`) is an event with a
place in the log. Fields named in the contract have no default, so that they are always written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from planrun.core.edits import Edit
from planrun.core.messages import CallStatus, Message, Origin, Role, ToolCall
from planrun.core.plan import Json

FORMAT = 1
StepStatus = Literal["todo", "in_progress", "done", "failed", "skipped", "blocked"]
FailureReason = Literal["step_failed", "verify_failed", "output_invalid", "stuck", "turn_limit"]
Purpose = Literal["step", "summary", "background"]  # background: a summary that is made beside the run


@dataclass(frozen=True, slots=True)
class Session:
    """The first record, and again where a resume adopts a changed plan. `files` holds the text of each prompt file.
    `settings` is the public form of the settings in force; `options` what the command line asked of this run."""

    type: ClassVar[str] = "session"
    format: int
    session: str
    cwd: str
    plan_path: str
    plan: str
    plan_digest: str
    params: dict[str, Json]
    model: str
    settings: dict[str, Json]
    options: dict[str, Json] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    tools: dict[str, int] = field(default_factory=dict)  # tokens of each tool's schema, uncalibrated
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """One chat message. `status` tells how the call of a tool result went; `faults`, by call id, why a call must not run."""

    type: ClassVar[str] = "message"
    role: Role
    content: str | None
    origin: Origin
    step: str | None = None
    attempt: int = 0
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None
    name: str | None = None  # the tool whose result this is
    status: CallStatus | None = None
    faults: dict[str, str] = field(default_factory=dict)
    aside: int = 0  # characters at the end of content that are the runner's remark, not the tool's result
    landing: bool = False  # the remark tells the model to land
    poll: bool = False  # the result of a call that the plan lets poll
    counted: int | None = None  # tokens of its text and calls, where a tokenizer counted them

    @property
    def message(self) -> Message:
        made = [(c["id"], c["function"]) for c in self.tool_calls]
        calls = tuple(ToolCall(i, f["name"], f["arguments"], self.faults.get(i)) for i, f in made)
        return Message(self.role, self.content, calls, self.tool_call_id)

    @classmethod
    def of(cls, message: Message, origin: Origin, step: str | None, attempt: int, **more: Any) -> Said:
        calls = tuple(message.wire().get("tool_calls", ()))
        faults = {c.id: c.fault for c in message.tool_calls if c.fault is not None}
        return cls(message.role, message.content, origin, step, attempt, calls, message.tool_call_id, faults=faults, **more)


@dataclass(frozen=True, slots=True)
class Requested:
    """A request is about to be sent. `tokens` is our estimate of its prompt, `raw` the uncalibrated one."""

    type: ClassVar[str] = "request"
    digest: str
    tokens: int
    messages: int
    raw: int = 0
    step: str | None = None
    model: str | None = None  # where it is not the session's
    purpose: Purpose = "step"


@dataclass(frozen=True, slots=True)
class Responded:
    """The answer came (or, with `error`, did not). `usage` is as reported, or null. `seconds` is the whole wait, retries included."""

    type: ClassVar[str] = "response"
    usage: dict[str, int | None] | None
    model: str | None
    seconds: float
    retries: int = 0
    finish_reason: str | None = None
    refusal: str | None = None
    empty: bool = False
    error: str | None = None
    cost_usd: float | None = None
    purpose: Purpose = "step"
    text: str | None = None  # a summariser's answer; a step's is a message


@dataclass(frozen=True, slots=True)
class CallStarted:
    """Intent: the call is about to run. `name` is a tool, `run` for the command of a run step, or `verify`."""

    type: ClassVar[str] = "tool_start"
    call_id: str
    name: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class CallEnded:
    """How a call ended. `text` holds what a `run` or `verify` printed (a tool's result is in its message)."""

    type: ClassVar[str] = "tool_end"
    call_id: str
    name: str
    status: CallStatus
    seconds: float | None = None
    step: str | None = None
    text: str | None = None
    output: dict[str, Json] | None = None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepChanged:
    """A status change. `reason` classifies a failure; `baseline` maps files of `unchanged` checks to digests at the start."""

    type: ClassVar[str] = "step"
    step: str
    status: StepStatus
    attempt: int
    note: str | None = None
    output: dict[str, Json] | None = None
    reason: FailureReason | None = None
    baseline: dict[str, str] | None = None
    files: dict[str, dict[str, Json]] | None = None  # file outputs: field -> {path, size, sha256}


@dataclass(frozen=True, slots=True)
class Compacted:
    """Edits that turn the old active context into the new one. `boundary` is the step about to start, `step` the newest summed up."""

    type: ClassVar[str] = "compaction"
    strategy: str
    trigger: str
    edits: tuple[Edit, ...]
    replaces_count: int
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    boundary: str | None = None
    step: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to a human or its answer: on one `subject`, a call id or `before:STEP`, and on what exactly has this `digest`."""

    type: ClassVar[str] = "approval"
    decision: Literal["asked", "approved", "denied"]
    subject: str
    step: str
    digest: str
    text: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Hooked:
    """A hook of `event` is over. `status` is ok, denied, error or timeout; `text` what it said, cut."""

    type: ClassVar[str] = "hook"
    event: str
    command: str
    status: str
    seconds: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class LimitNeared:
    """A limit is near (`landing`: the model is told to land), was reached, or the context's true window was learnt."""

    type: ClassVar[str] = "limit"
    limit: str
    used: float
    maximum: float
    landing: bool = False
    model: str | None = None  # whose window it is, where it is not the session's model's
    purpose: Purpose = "step"  # of the request that was too long


@dataclass(frozen=True, slots=True)
class Stopped:
    """Something stops the run, which is over once the commands under `finally` have run. The fields are those of its end."""

    type: ClassVar[str] = "stop"
    outcome: str
    reason: str
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """Something worth a line: `kind` is resumed, sealed, notice, retry, … ; `options` and `settings` go with resumed."""

    type: ClassVar[str] = "note"
    kind: str
    text: str = ""
    step: str | None = None
    options: dict[str, Json] = field(default_factory=dict)
    settings: dict[str, Json] = field(default_factory=dict)
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """The run stopped: why, and what a user should know. `output` is the plan's output where it finished; `partial`
    says that it stopped early because it was asked to, so that there is something left to resume."""

    type: ClassVar[str] = "end"
    outcome: str
    exit_code: int
    reason: str
    output: dict[str, Json] | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a type that this version does not know: kept and skipped."""

    type: ClassVar[str] = "unknown"
    body: Mapping[str, Any]


Event = (
    Session | Said | Requested | Responded | CallStarted | CallEnded | StepChanged | Compacted | Approval | Hooked
    | LimitNeared | Stopped | Noted | Ended | Unknown
)  # fmt: skip
