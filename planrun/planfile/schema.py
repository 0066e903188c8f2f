"""The form of a plan file: one pydantic model a table of keys, shorthands included; also the JSON Schema for editors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from planrun.core.plan import FieldType, Strategy
from planrun.planfile.nodes import Nothing
from planrun.planfile.values import Amount, Boolean, Count, Positive, Rule, Seconds, Words

ParamType = Literal["string", "integer", "number", "boolean", "array", "object"]
FREE_PREFIX = "x-"  # keys of the top level that nothing reads: a place for anchors


class _Or:
    """Another form of a value, for the JSON Schema only: a validator of the same field turns it into the long form."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [self.schema, handler(core)]}


_TEXT = _Or({"type": "string"})


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _checks(value: object) -> object:
    if isinstance(value, str | dict):
        value = [value]
    return [{"run": item} if isinstance(item, str) else item for item in value] if isinstance(value, list) else value


def _of_type(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


def _param(value: object) -> object:
    if isinstance(value, Nothing):
        return {}
    if isinstance(value, list):
        return {"type": "array", "default": value}
    return {"default": value} if isinstance(value, str) else value


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class LimitsTable(_Keys):
    """Upper bounds; what is left out is unlimited."""

    cost_usd: Amount | None = Field(default=None, description="US dollars")
    tokens: Positive | None = Field(default=None, description="prompt and completion tokens together")
    time: Seconds | None = Field(default=None, description="wall clock: 90m, 1h30m, or seconds")
    turns: Positive | None = Field(default=None, description="model replies")


class RetryTable(_Keys):
    attempts: Positive = Field(default=1, description="attempts in all, each from the step's starting context")


class CheckTable(_Keys):
    """One check: exactly one of run, exists, unchanged."""

    run: str | None = Field(default=None, description="shell command that must exit 0")
    timeout: Seconds | None = Field(default=None, description="for run")
    exists: Annotated[list[str], BeforeValidator(_listed), _TEXT] | None = Field(
        default=None, description="paths or globs that must match a file"
    )
    unchanged: Annotated[list[str], BeforeValidator(_listed), _TEXT] | None = Field(
        default=None, description="globs whose files must be as they were when the step began"
    )


class SandboxTable(_Keys):
    """What the plan's commands are confined by."""

    type: Literal["bwrap"] = Field(default="bwrap", description="bubblewrap: they write into the working directory only")
    network: Boolean = Field(default=False, description="whether they reach the network")


class _Typed(_Keys):
    description: str = ""
    enum: list[Any] | None = Field(default=None, min_length=1)
    pattern: str | None = Field(default=None, description="regular expression that must match somewhere in the text")
    min_length: Count | None = None
    max_length: Count | None = None
    max_items: Count | None = None


class OutputTable(_Typed):
    """One field of a step's output."""

    type: FieldType = "string"
    required: Boolean = True
    items: Annotated[OutputTable, BeforeValidator(_of_type), _TEXT] | None = Field(
        default=None, description="what the elements of an array are"
    )
    path: str | None = Field(default=None, description="for the type file: relative to the working directory")
    source: Literal["stdout", "json"] | None = Field(
        default=None, alias="from", description="for run steps: where the value is taken from"
    )


class ParamTable(_Typed):
    """One parameter of the plan."""

    type: ParamType = "string"
    required: Boolean | None = None
    items: Annotated[OutputTable, BeforeValidator(_of_type), _TEXT] | None = None
    default: Any = Field(default_factory=Nothing)


class StepTable(_Keys):
    """One step: exactly one of prompt, prompt_file, run."""

    id: str = Field(description="letters, digits, _ and -")
    title: str = ""
    prompt: str | None = Field(default=None, description="what the model is to do")
    prompt_file: str | None = Field(default=None, description="the same from a file, relative to the plan")
    run: str | None = Field(default=None, description="a shell command, without a model")
    output: dict[str, Annotated[OutputTable, BeforeValidator(_of_type), _TEXT]] = Field(
        default={}, description="what the step leaves for later ones"
    )
    context: Strategy | None = Field(default=None, description="what the step sees of earlier ones when it starts")
    tools: list[str] | None = Field(default=None, description="the only tools that are offered")
    model: Words | None = None
    limits: LimitsTable = LimitsTable()
    verify: Annotated[list[Annotated[CheckTable, _TEXT]], BeforeValidator(_checks), _TEXT] = Field(
        default=[], description="what must hold when the step is done"
    )
    fix: Count = Field(default=0, description="repair rounds after a failed verify")
    retry: RetryTable = RetryTable()
    timeout: Seconds | None = None
    condition: str | None = Field(default=None, alias="if", description="the step is skipped unless this holds")
    on_failure: Literal["stop", "continue"] = "stop"
    env: dict[str, str] = Field(default={}, description="environment variables of the step's commands")
    approve: Literal["before", "after"] | None = None
    needs: list[str] | None = Field(
        default=None, description="ids of the earlier steps whose outputs the step is shown; default all"
    )


class PlanTable(_Keys):
    """A planrun plan."""

    version: Literal["1"] = Field(default="1", json_schema_extra={"const": 1, "type": "integer", "enum": [1]})
    name: str | None = None
    description: str = ""
    goal: str | None = Field(default=None, description="the first words to the model; kept by every compaction")
    model: Words | None = None
    params: dict[
        str, Annotated[ParamTable, BeforeValidator(_param), _Or({"type": ["string", "number", "boolean", "array", "null"]})]
    ] = {}
    context: Strategy | None = Field(default=None, description="what a step sees of earlier ones when it starts")
    limits: LimitsTable = LimitsTable()
    secrets: list[str] = Field(default=[], description="names of environment variables given to tools and masked everywhere")
    env: list[str] = Field(default=[], description="names of environment variables that ${{ env.NAME }} may read")
    system: str = Field(default="", description="added to the system prompt")
    window: Positive | None = Field(default=None, description="context window in tokens")
    pin: list[str] = Field(default=[], description="facts that no compaction may touch")
    polling: list[Rule] = Field(
        default=[], description="tool calls that may come again and again with one result, such as Bash(gh run watch*)"
    )
    recheck: Literal["end", "each", "off"] = "end"
    sandbox: Annotated[SandboxTable, BeforeValidator(_of_type), _Or({"const": "bwrap"})] | None = None
    steps: list[StepTable] = Field(min_length=1)
    finally_: list[StepTable] = Field(
        default=[],
        alias="finally",
        description="steps that run whatever happened; where a limit, the endpoint or a signal stops the run, only commands",
    )
    output: dict[str, str] = Field(default={}, description="what the whole plan leaves, as templates")

    @model_validator(mode="before")
    @classmethod
    def _without_free_keys(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if not str(key).startswith(FREE_PREFIX)}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a plan file."""
    found = PlanTable.model_json_schema()
    steps = found["$defs"]["StepTable"]
    steps["oneOf"] = [{"required": [key]} for key in ("prompt", "prompt_file", "run")]
    found["$defs"]["CheckTable"]["oneOf"] = [{"required": [key]} for key in ("run", "exists", "unchanged")]
    found["properties"]["version"] = {"const": 1, "description": "version of this format"}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "planrun plan", **_tidy(found)}
    return schema | {"patternProperties": {f"^{FREE_PREFIX}": True}}


def _tidy(value: Any) -> Any:
    """Without what pydantic adds and no editor needs: generated titles, null as another way to leave a key out."""
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _tidy(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}
    if found.get("default", 0) in (None, {}) or "$ref" in found:
        found.pop("default", None)
    options = found.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        rest = [option for option in options if option != {"type": "null"}]
        del found["anyOf"]
        found |= rest[0] if len(rest) == 1 else {"anyOf": rest}
    return found
