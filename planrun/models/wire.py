"""Reads one answer of a chat endpoint into a Reply: JSON or server-sent events, whatever was asked for.

The SDK's own models are not used: they cost more than the request, and they lose or crash on the odd fields that
"compatible" servers send.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping

from planrun.core.messages import Message, well_formed
from planrun.models.base import Reply, Usage
from planrun.models.calls import safe_calls
from planrun.models.faults import AnswerFault, Fault, classify
from planrun.models.merge import Pieces
from planrun.models.said import one_line
from planrun.models.sse import Event, events

MAX_JSON = 64 * 2**20  # bytes of an answer that is not a stream

_DECLINED = frozenset({"content_filter", "refusal", "safety", "sensitive", "blocklist", "prohibited_content", "recitation"})
# What a model thinks before it answers, where its server leaves that in the text: no part of the answer, as `reasoning` is none.
_THOUGHT = re.compile(r"\s*(?:<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)\s*)+", re.DOTALL)
_FIELD_STARTS = (b":", b"data:", b"event:", b"id:", b"retry:")


def read_reply(content_type: str, body: Iterable[bytes]) -> Reply:
    """Read one whole answer. What the body looks like decides, `content_type` only where that is open. Stops reading at
    the end of the answer (`[DONE]`), not at the end of `body`. Raises AnswerFault where there is no usable answer."""
    chunks = iter(body)
    start = _start(chunks)
    looks = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    rest = _chain(start, chunks)
    if looks.startswith((b"{", b"[", b"<")) or not looks:
        return _read_json(content_type, rest)
    if looks.startswith(_FIELD_STARTS) or "event-stream" in content_type.lower():
        return _read_stream(_chain(start.removeprefix(b"\xef\xbb\xbf"), chunks))
    return _read_json(content_type, rest)


def _start(chunks: Iterator[bytes]) -> bytes:
    """Enough of the body to see what it is: eight bytes that are not white space."""
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start.lstrip(b"\xef\xbb\xbf \t\r\n")) >= 8:
            break
    return start


def _chain(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from chunks


def _read_json(content_type: str, chunks: Iterable[bytes]) -> Reply:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_JSON:
            raise AnswerFault(Fault("refused", f"the answer is longer than {MAX_JSON} bytes"))
    text = b"".join(parts).decode("utf-8-sig", "replace").strip()
    if text[:1] == "<":
        raise AnswerFault(classify(200, text, {}))
    if not text:
        api = any(kind in content_type.lower() for kind in ("json", "event-stream"))
        raise AnswerFault(_broken("an empty answer") if api else Fault("protocol", "an empty answer", status=200))
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnswerFault(_broken(f"an answer that is not JSON: {error}: {one_line(text, 80)}")) from None
    pieces = Pieces()
    _take(pieces, answer[0] if isinstance(answer, list) and answer else answer)
    return _reply(pieces)


def _read_stream(chunks: Iterable[bytes]) -> Reply:
    pieces, done = Pieces(), False
    try:
        for event in events(chunks):
            done = event.text.strip() == "[DONE]"
            if done:
                break
            for value in _values(event):
                _take(pieces, value, streamed=True)
    except AnswerFault:
        # A connection that breaks after the model has finished costs nothing but the usage.
        if pieces.finish_reason is None:
            raise
    if pieces.finish_reason is None and not done:
        raise AnswerFault(Fault("connection", "the stream broke off before the answer was complete", retryable=True))
    return _reply(pieces)


def _values(event: Event) -> Iterator[object]:
    """The JSON values of an event: one, or one a line from servers that forget the blank line between two events."""
    if event.type == "error":
        raise AnswerFault(classify(None, event.text, {}))
    for text in (event.text,) if len(event.data) == 1 or _parses(event.text) else event.data:
        if not text.strip():
            continue
        try:
            yield json.loads(text)
        except (ValueError, RecursionError):
            raise AnswerFault(_broken(f"a piece of the stream is not JSON: {one_line(text, 80)}")) from None


def _parses(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _take(pieces: Pieces, answer: object, streamed: bool = False) -> None:
    if not isinstance(answer, dict):
        raise AnswerFault(_broken("an answer that is not an object"))
    choices = [c for c in _list(answer.get("choices")) if isinstance(c, dict)]
    if answer.get("error") or (answer.get("type") == "error" and not choices):
        raise AnswerFault(classify(None, answer, {}))
    if isinstance(model := answer.get("model"), str):
        pieces.model = pieces.model or well_formed(model)[:200]
    groq = answer.get("x_groq")
    for usage in (answer.get("usage"), groq.get("usage") if isinstance(groq, dict) else None):
        pieces.usage |= {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}
    choice = next((c for c in choices if c.get("index") in (0, None)), None if streamed else next(iter(choices), None))
    if choice is not None:
        _take_choice(pieces, choice, streamed)


def _take_choice(pieces: Pieces, choice: dict[str, object], streamed: bool) -> None:
    pieces.chosen = True
    if error := choice.get("error"):
        raise AnswerFault(classify(None, {"error": error}, {}))
    delta, message = choice.get("delta"), choice.get("message")
    if isinstance(delta, dict) and delta:
        pieces.add(delta)
    elif isinstance(message, dict) and not (streamed and (pieces.text or pieces.calls)):
        pieces.add(message, whole=True)
    elif isinstance(text := choice.get("text"), str):
        pieces.add({"content": text})
    if isinstance(reason := choice.get("finish_reason"), str) and reason:
        pieces.finish_reason = well_formed(reason)[:100]
    filters = choice.get("content_filter_results")
    for name, result in filters.items() if isinstance(filters, dict) else ():
        if isinstance(result, dict) and result.get("filtered"):
            pieces.filtered.append(str(name))


def _reply(pieces: Pieces) -> Reply:
    if not pieces.chosen:
        named = f" from {pieces.model}" if pieces.model else ""
        raise AnswerFault(_broken(f"an answer without choices{named}"))
    text = well_formed("".join(pieces.text))
    if thought := _THOUGHT.match(text):
        text = text[thought.end() :]
    cut_off = pieces.finish_reason in ("length", "max_tokens")
    calls = safe_calls(pieces.raw_calls(), cut_off)
    content = text if text.strip() else None
    message = Message("assistant", content, calls) if content or calls else None
    return Reply(message, pieces.finish_reason, _refusal(pieces, text), _usage(pieces.usage), pieces.model)


def _refusal(pieces: Pieces, text: str) -> str | None:
    said = well_formed("".join(pieces.refusal)).strip()
    if said:
        return said
    reason = (pieces.finish_reason or "").lower()
    if reason not in _DECLINED:
        return None
    why = f" ({', '.join(pieces.filtered)})" if pieces.filtered else ""
    model = f" of {pieces.model}" if pieces.model else ""
    return f"{reason}: {text.strip() or f'the answer{model} was withheld{why}'}"


def _usage(usage: Mapping[str, object]) -> Usage:
    prompt = _tokens(usage, "prompt_tokens", "input_tokens")
    cached = _count(_first(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens"))
    for details in (usage.get("prompt_tokens_details"), usage.get("input_tokens_details")):
        if isinstance(details, dict) and cached is None:
            cached = _count(details.get("cached_tokens"))
    if cached is not None and (prompt is None or cached > prompt):
        cached = None
    return Usage(prompt, cached, _tokens(usage, "completion_tokens", "output_tokens"))


def _tokens(usage: Mapping[str, object], *names: str) -> int | None:
    return _count(_first(usage, *names)) or None


def _first(usage: Mapping[str, object], *names: str) -> object:
    return next((usage[name] for name in names if usage.get(name) is not None), None)


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and 0 <= number < 1e12 else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _broken(message: str) -> Fault:
    return Fault("server", message, retryable=True, status=200)
