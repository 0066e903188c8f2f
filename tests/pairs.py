"""What strict endpoints demand of a list of messages in wire form, written down apart from planrun's own check."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

Wire = dict[str, Any]


def problems(messages: list[Wire], *, alternate: bool = False) -> list[str]:
    """Everything that some endpoint refuses; with `alternate` also what strict chat templates refuse."""
    if not messages:
        return ["empty message list"]
    out = [*_encoding(messages), *_pairing(messages)]
    if messages[-1]["role"] not in ("user", "tool"):
        out.append(f"last role is {messages[-1]['role']}")
    return [*out, *_alternation(messages)] if alternate else out


def _encoding(messages: list[Wire]) -> list[str]:
    try:
        json.dumps(messages, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (UnicodeEncodeError, ValueError) as error:
        return [f"not encodable: {error}"]
    return []


def _pairing(messages: list[Wire]) -> list[str]:
    out: list[str] = []
    seen: set[str] = set()
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message["role"] == "tool":
            out.append(f"[{at}] tool result without a call before it")
            continue
        out += [f"[{at}] {why}" for why in _message(message, seen)]
        ids = [c.get("id") for c in message.get("tool_calls") or []]
        got = []
        while at < len(messages) and messages[at]["role"] == "tool":
            got.append(messages[at].get("tool_call_id"))
            at += 1
        if got != ids:
            out.append(f"[{at}] results {got} do not answer calls {ids}")
    return out


def _message(message: Wire, seen: set[str]) -> list[str]:
    calls = message.get("tool_calls") or []
    out = []
    if message["role"] == "assistant" and not calls and not (message.get("content") or "").strip():
        out.append("empty assistant message")
    if "content" not in message:
        out.append("key content is missing")
    for call in calls:
        if not call.get("id") or call["id"] in seen:
            out.append(f"id {call.get('id')!r} missing or used twice")
        seen.add(call.get("id"))
        try:
            json.loads(call["function"]["arguments"])
        except ValueError:
            out.append("arguments are not JSON")
    return out


def _alternation(messages: list[Wire]) -> list[str]:
    roles = [m["role"] for m in messages]
    out = [f"two {a} messages in a row" for a, b in pairwise(roles) if a == b and a != "tool"]
    out += ["user directly after tool" for a, b in pairwise(roles) if (a, b) == ("tool", "user")]
    out += ["system is not the first" for role in roles[1:] if role == "system"]
    first = next((r for r in roles if r != "system"), "user")
    return [*out, f"begins with {first}"] if first == "assistant" else out
