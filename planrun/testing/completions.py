"""A chat completion as a streaming endpoint sends it: cut into deltas, with the usage in a last chunk of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def sse(completion: dict[str, Any], pieces: int = 1, with_usage: bool = True) -> Iterator[bytes]:
    """A completion as the events that a streaming endpoint sends, `[DONE]` included."""
    head = {k: completion.get(k) for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for choice in completion.get("choices") or []:
        for delta in _deltas(choice.get("message"), pieces):
            yield _event(head | {"choices": [{"index": choice.get("index", 0), "delta": delta, "finish_reason": None}]})
        last = {"index": choice.get("index", 0), "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield _event(head | {"choices": [last]})
    if with_usage:
        yield _event(head | {"choices": [], "usage": completion.get("usage")})
    yield b"data: [DONE]\n\n"


def _deltas(message: dict[str, Any] | None, pieces: int) -> Iterator[dict[str, Any]]:
    message = message or {}
    rest = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls")}
    yield {"role": "assistant", "content": None} | rest
    for part in _parts(message.get("content"), pieces):
        yield {"content": part}
    for index, wanted in enumerate(message.get("tool_calls") or []):
        arguments = wanted["function"].get("arguments")
        function = wanted["function"] | {"arguments": "" if isinstance(arguments, str) else arguments}
        yield {"tool_calls": [wanted | {"index": index, "function": function}]}
        for part in _parts(arguments, pieces):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _parts(whole: object, pieces: int) -> list[str]:
    if not isinstance(whole, str) or not whole:
        return []
    step = -(-len(whole) // max(1, pieces))
    return [whole[i : i + step] for i in range(0, len(whole), step)]


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def with_estimate(completion: dict[str, Any], size: int) -> dict[str, Any]:
    """The completion with usage at four bytes a token where it leaves that open; `size` is the request's in bytes."""
    if completion.get("usage") is not ...:
        return completion
    said = sum(len(json.dumps(choice.get("message"))) for choice in completion["choices"])
    prompt, answer = max(1, size // 4), max(1, said // 4)
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return completion | {"usage": usage}
