"""SearchHistory and ExpandHistory: what the context no longer holds, from the archive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AliasChoices, Field, WithJsonSchema, field_validator
from pydantic.json_schema import SkipJsonSchema

from planrun.core.archive import DEFAULT_HITS, MOST_HITS, Expanded, Found, Hit, Mode, Original, Scope, Search, Unclear
from planrun.tools.base import Arguments, Tool, ToolContext, ToolResult
from planrun.tools.paths import guarded
from planrun.tools.shell import spill
from planrun.tools.text import strip_controls

TOKENS = 10_000  # of originals in one answer
_ROOM = 1_000  # characters of a result kept free for closing remarks
_NO_ARCHIVE = ToolResult("there is no archive here", "error")


class SearchArguments(Arguments):
    """Each token of a schema is paid for in every request: what `scope` and `last` take, and that there are `mode: boolean` and
    `results`, an answer says where it is needed."""

    pattern: str = Field(validation_alias=AliasChoices("pattern", "query"))
    mode: SkipJsonSchema[Mode] = "words"
    scope: Annotated[Scope, WithJsonSchema({"type": "string"})] = "both"
    role: str | None = None
    step: str | None = None
    last: str | None = None
    since: str | None = None
    before: str | None = None
    all_sessions: bool = False
    limit: int = Field(DEFAULT_HITS, ge=1)


class ExpandArguments(Arguments):
    ids: str
    results: SkipJsonSchema[bool] = False

    @field_validator("ids", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        """Models give a number or a list, too."""
        listed = value if isinstance(value, list) else [value]
        return ",".join(map(str, listed)) if all(isinstance(each, str | int) for each in listed) else value


def _search(arguments: SearchArguments, ctx: ToolContext) -> ToolResult:
    if ctx.history is None:
        return _NO_ARCHIVE
    asked = arguments.model_dump() | {"limit": min(arguments.limit, MOST_HITS)}
    try:
        found = ctx.history.search(Search(**asked))
    except Unclear as error:
        return ToolResult(strip_controls(str(error)), "error")
    return ToolResult(spill(strip_controls(_found(found, ctx.history.session)), ctx, "history"))


def _found(found: Found, here: str) -> str:
    head = f"{found.total:,}{'+' if found.more else ''} hits" if found.total != 1 else "1 hit"
    if found.total > len(found.hits):
        head += f", the best {len(found.hits)}; narrow it with step, role, scope, last or more words"
    notes = [f"[{note}]" for note in (found.message, *found.notices) if note]
    return "\n".join([head, *(_hit(hit, here) for hit in found.hits), *notes])


def _hit(hit: Hit, here: str) -> str:
    what = hit.role or f"summary, level {hit.level}"
    return f"{_place(hit, here)} {what}{f' in {hit.step}' if hit.step else ''}, {_when(hit.timestamp)}: {hit.snippet}"


def _place(at: Hit | Original, here: str) -> str:
    """The id that ExpandHistory takes."""
    return f"#{at.record}" if at.session == here else f"#{at.session}:{at.record}"


def _when(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%MZ")


def _expand(arguments: ExpandArguments, ctx: ToolContext) -> ToolResult:
    if ctx.history is None:
        return _NO_ARCHIVE
    room = max(_ROOM, ctx.limit - _ROOM)
    given = ctx.history.expand(arguments.ids, arguments.results, TOKENS, room)
    text = strip_controls(_expanded(given, ctx.history.session))
    return ToolResult(spill(text, ctx, "history"), "ok" if given.originals else "error")


def _expanded(given: Expanded, here: str) -> str:
    parts = [_original(original, here) for original in given.originals]
    parts += [f"[{name}: {why}]" for name, why in given.unknown.items()]
    parts += [f"[{note}]" for note in given.notices]
    if given.rest:
        parts.append(f"[there is more: continue with ids={given.rest}]")
    return "\n".join(parts) or "[no ids were given]"


def _original(original: Original, here: str) -> str:
    what = " ".join(filter(None, [original.role or original.kind, original.name]))
    part = f", from character {original.start}" if original.start else ""
    head = f"{_place(original, here)} {what}{f' in {original.step}' if original.step else ''}{part}:"
    if original.left_out:
        return f"{head} [{original.left_out:,} characters left out; ask for ids={original.record}, or with results=true]"
    return f"{head}\n{original.text}"


SEARCH_HISTORY = Tool(
    name="SearchHistory",
    description="Find past messages",
    arguments=SearchArguments,
    run=guarded(_search),
    read_only=True,
)
EXPAND_HISTORY = Tool(
    name="ExpandHistory",
    description="Get ids 3,5-9,STEP",
    arguments=ExpandArguments,
    run=guarded(_expand),
    read_only=True,
)
HISTORY = (SEARCH_HISTORY, EXPAND_HISTORY)
