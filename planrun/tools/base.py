"""What a tool is: data about it, and a callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from planrun.core.archive import Expanded, Found, Search
from planrun.core.messages import CallStatus
from planrun.core.names import FOLDER
from planrun.masking.masker import NOTHING, Masker


class Arguments(BaseModel):
    """What a call gives. An argument that the tool does not have is a fault."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to. `text` is what the model reads: well-formed, free of control sequences, capped."""

    text: str
    status: CallStatus = "ok"


class History(Protocol):
    """The archive, seen from the session named `session`. `search` raises Unclear; `expand` gives at most about so many tokens
    and characters."""

    session: str

    def search(self, asked: Search) -> Found: ...

    def expand(self, ids: str, results: bool, tokens: float, characters: float) -> Expanded: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of its surroundings. `workspace` is a real path (links resolved). `spill` is the folder for
    texts that are too long for the model, inside the workspace. `env` is the whole environment for children.
    `deadline` is a time.monotonic() value or None. `limit` is the number of characters of a result that the model gets.
    `protected` names the folders that file tools may not write into; `sandbox` is an argv prefix for commands."""

    workspace: Path
    spill: Path
    env: Mapping[str, str] = field(default_factory=dict)
    deadline: float | None = None
    limit: int = 50_000
    protected: tuple[str, ...] = (FOLDER,)
    sandbox: tuple[str, ...] = ()
    history: History | None = None
    mask: Masker = NOTHING  # for what is cut or saved: a cut may leave half of a secret


@dataclass(frozen=True, slots=True)
class Tool:
    """`arguments` validates the call. `read_only` calls have no effects: they may run side by side and may be repeated
    after a crash. `subject` gives the text that permission rules match (a command, a path). `pinned` results are never
    elided."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any, ToolContext], ToolResult]
    read_only: bool = False
    pinned: bool = False
    subject: Callable[[Any], str] = field(default=lambda arguments: "")
