"""The plan as a value: what a plan file says, after validation. See SPEC section 1 for the file's form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Strategy = Literal["keep", "compact", "clear", "summary"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
FieldType = Literal["string", "integer", "number", "boolean", "array", "object", "file"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a step's output, or one parameter. Lengths are characters, `max_items` counts elements."""

    name: str
    type: FieldType = "string"
    description: str = ""
    required: bool = True
    enum: tuple[Json, ...] = ()
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    items: Field | None = None
    max_items: int | None = None
    path: str | None = None  # file outputs: relative to the working directory
    source: Literal["stdout", "json"] | None = None  # run steps: where the value is taken from
    default: Json = None  # parameters only
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class RunCheck:
    """A shell command that must exit 0; `timeout` in seconds."""

    run: str
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class ExistsCheck:
    """Each path or glob must match at least one file."""

    exists: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnchangedCheck:
    """The files that match these globs must be the same as when the step began: none changed, added or removed."""

    unchanged: tuple[str, ...]


Check = RunCheck | ExistsCheck | UnchangedCheck


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds; None is unlimited. `time` in seconds."""

    cost_usd: float | None = None
    tokens: int | None = None
    time: float | None = None
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What commands are confined by, and whether they reach the network."""

    type: Literal["bwrap"] = "bwrap"
    network: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step. Exactly one of `prompt` (a prompt_file's text is already in it) and `run` is set; `timeout` in seconds."""

    id: str
    title: str = ""
    prompt: str | None = None
    run: str | None = None
    output: tuple[Field, ...] = ()
    context: Strategy | None = None
    tools: tuple[str, ...] | None = None
    model: str | None = None
    limits: Limits = Limits()
    verify: tuple[Check, ...] = ()
    fix: int = 0
    attempts: int = 1
    timeout: float | None = None
    condition: str | None = None  # the key `if`
    on_failure: Literal["stop", "continue"] = "stop"
    env: tuple[tuple[str, str], ...] = ()
    approve: Literal["before", "after"] | None = None
    needs: tuple[str, ...] | None = None
    final: bool = False  # stands under `finally`

    @property
    def handed_in(self) -> tuple[Field, ...]:
        """The fields of its output but files, which are taken from where they lie."""
        return tuple(f for f in self.output if f.type != "file")


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole plan. `steps` are the main ones and then those of `finally`, in file order."""

    name: str
    goal: str
    steps: tuple[Step, ...]
    description: str = ""
    model: str | None = None
    params: tuple[Field, ...] = ()
    context: Strategy | None = None
    limits: Limits = Limits()
    secrets: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # names that `${{ env.X }}` may read
    output: tuple[tuple[str, str], ...] = ()
    system: str = ""
    window: int | None = None
    pin: tuple[str, ...] = ()
    polling: tuple[str, ...] = ()  # rules of calls whose equal results are no sign of being stuck
    recheck: Literal["end", "each", "off"] = "end"
    sandbox: Sandbox | None = None
    index: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    def step(self, step_id: str) -> Step:
        return self.steps[self.index[step_id]]
