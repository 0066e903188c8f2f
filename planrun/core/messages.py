"""Chat messages in OpenAI form, as values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from planrun.core.value import value

Role = Literal["system", "user", "assistant", "tool"]
Origin = Literal["user", "runner", "model", "tool"]
CallStatus = Literal["ok", "error", "timeout", "denied", "interrupted"]

_SURROGATES = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, so that it always encodes as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # A high and a low surrogate that stand side by side are one character that JSON escaped in two parts.
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", joined)
    return text


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def compact_json(value: object) -> str:
    """JSON without spaces, non-ASCII kept: one spelling for the log, the request and every digest."""
    return _encode(value)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call. `arguments` is always valid JSON text of an object; where the model's own text was not,
    `fault` says why (such a call is answered with the fault, never executed)."""

    id: str
    name: str
    arguments: str
    fault: str | None = None


@value
class Message:
    """One chat message. A tool result has `tool_call_id`; an assistant message may have `tool_calls`."""

    role: Role
    content: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    def wire(self) -> dict[str, Any]:
        """The message as it stands in a request body: the key `content` is always there."""
        body: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            body["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in self.tool_calls
            ]
        if self.tool_call_id is not None:
            body["tool_call_id"] = self.tool_call_id
        return body
