"""Masking of a record: every text in it but the words that the log itself is read by."""

from __future__ import annotations

import json
from typing import Any

from planrun.core.messages import compact_json
from planrun.masking.masker import Masker

# Fixed words, names and digests: of the plan, of the runner, of the place where it works. The rest came from outside.
_OURS = frozenset(
    {
        "type", "format", "session", "cwd", "plan_path", "plan_digest", "digest", "role", "origin", "step", "attempt", "call_id",
        "tool_call_id", "id", "name", "status", "event", "strategy", "trigger", "boundary", "decision", "subject", "kind",
        "limit", "outcome", "purpose", "edit", "tools", "baseline", "parent", "options", "seqs", "usage",
    }
)  # fmt: skip
_VALUES = frozenset({"output", "params"})  # JSON of the user's: its numbers and the names in it count too


def masked(body: dict[str, Any], mask: Masker) -> dict[str, Any]:
    """The JSON of a record with its secrets masked; the same object where there are none."""
    made = {name: part for name, value in body.items() if (part := _field(body, name, value, mask)) is not value}
    return {**body, **made} if made else body


def _field(body: dict[str, Any], name: str, value: Any, mask: Masker) -> Any:
    if value is None or name in _OURS or (name == "reason" and body.get("type") == "step"):
        return value
    match value:
        case str():
            return _arguments(value, mask) if name == "arguments" else mask(value)
        case dict() if name in _VALUES:
            made = {field: mask.json(part) for field, part in value.items()}
            return value if made == value else made
        case dict():
            return masked(value, mask)
        case list() | tuple():
            parts = [_field(body, "", part, mask) for part in value]
            return value if all(a is b for a, b in zip(parts, value, strict=True)) else type(value)(parts)
    return value


def _arguments(text: str, mask: Masker) -> str:
    """The arguments of a call stay the JSON of an object."""
    if mask(text) == text:
        return text
    return compact_json(mask.json(json.loads(text)))
