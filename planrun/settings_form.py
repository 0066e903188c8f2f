"""The form of `settings.json`: one pydantic model a table of keys. What a file does not say is None."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from planrun.core.rules import rule
from planrun.core.units import duration, words
from planrun.endpoint import checked

EVENTS = (
    "session_start",
    "session_end",
    "step_start",
    "step_end",
    "pre_tool_use",
    "post_tool_use",
    "post_tool_use_failure",
    "permission_denied",
    "pre_compact",
    "post_compact",
)


def _seconds(value: object) -> object:
    """A number is seconds already; text is a time such as 90m."""
    return duration(value) if isinstance(value, str) else value


def _hooks(value: object) -> object:
    items = value if isinstance(value, list) else [value]
    return [{"command": item} if isinstance(item, str) else item for item in items]


def _command(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("expected a command without NUL characters")
    return value


def _sandbox(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


class _Table(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, alias_generator=to_camel)


class _Own(_Table):
    """A table that is all planrun's: other keys are faults."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=0, le=100)]
Rule = Annotated[str, AfterValidator(rule)]
Name = Annotated[str, AfterValidator(words)]
Command = Annotated[str, AfterValidator(_command)]


class OverrideTable(_Own):
    context: int | None = Field(default=None, ge=1)
    max_output: int | None = Field(default=None, ge=1)
    input_price: Price | None = None
    output_price: Price | None = None
    cached_price: Price | None = None


class PermissionsTable(_Table):
    allow: list[Rule] = []
    ask: list[Rule] = []
    deny: list[Rule] = []


class HookTable(_Own):
    command: Command
    timeout: Seconds = 5.0
    fail_closed: bool = False


class LimitsTable(_Own):
    model_config = ConfigDict(alias_generator=None)

    cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    tokens: int | None = Field(default=None, ge=1)
    time: Seconds | None = None
    turns: int | None = Field(default=None, ge=1)


class CompactionTable(_Table):
    summarize_token_percent: Percent | None = Field(default=None, gt=0)
    min_reclaim_percent: Percent | None = None
    tail_percent: Percent | None = None
    estimator: Name | None = None


class SandboxTable(_Own):
    type: Literal["bwrap"] = "bwrap"
    network: bool = False


class FileTable(_Table):
    """A whole file."""

    model: Name | None = None
    base_url: Annotated[str, AfterValidator(checked)] | None = None
    plan_context_strategy: Literal["compact", "clear", "summary", "keep"] | None = None
    model_overrides: dict[str, OverrideTable] | None = None
    permissions: PermissionsTable | None = None
    hooks: dict[str, Annotated[list[HookTable], BeforeValidator(_hooks)]] | None = None
    limits: LimitsTable | None = None
    compaction: CompactionTable | None = None
    summary_model: Name | None = None
    sandbox: Annotated[SandboxTable, BeforeValidator(_sandbox)] | None = None
    mcp_servers: dict[str, dict[str, Any]] | None = None
