"""What an endpoint said in an error, out of the many shapes that error bodies have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from planrun.core.messages import well_formed

MAX_MESSAGE = 300

_CREDENTIALS = re.compile(r"(\w+://)[^/\s@]+@")
_QUERY_KEY = re.compile(r"([?&](?:api[_-]?key|key|token|access_token)=)[^&\s'\"]+", re.IGNORECASE)
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MESSAGE_KEYS = ("message", "detail", "error_message", "error_description", "msg", "error", "faultstring", "Message")
_CODE_KEYS = ("code", "type", "status", "__type", "error_code", "error_type", "errorType")


@dataclass(frozen=True, slots=True)
class Said:
    """`message` is one line of at most 300 characters, `words` the codes and types in lower case, `number` a numeric
    code that stands for an HTTP status, `fields` everything else that stood beside them (flat)."""

    message: str
    words: frozenset[str] = frozenset()
    number: int | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    html: bool = False


def read(body: object) -> Said:
    """Read a decoded error body, or its raw text. Never raises, whatever the body is."""
    if isinstance(body, str):
        text = body.lstrip("\ufeff \t\r\n")
        if text[:1] not in ("{", "["):
            return Said(one_line(_plain(text)), html=text[:1] == "<")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            return Said(one_line(text))
    fields: dict[str, object] = {}
    words: list[str] = []
    for key, value in _walk(body, 0):
        fields.setdefault(key, value)
        words += [str(value)] if key in _CODE_KEYS else []
    numbers = [int(w) for w in words if re.fullmatch("[1-5][0-9][0-9]", w)]
    return Said(
        one_line(_plain(_message(body, fields))),
        frozenset(w.lower() for w in words),
        numbers[0] if numbers else None,
        fields,
    )


def one_line(text: str, limit: int = MAX_MESSAGE) -> str:
    """`text` without control characters, line breaks and credentials in addresses, cut to `limit` characters."""
    # Cut before the work as well: an error body may be megabytes of HTML.
    text = " ".join(_CONTROL.sub(" ", well_formed(text[: limit * 20])).split())
    text = _QUERY_KEY.sub(r"\1***", _CREDENTIALS.sub(r"\1", text))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _walk(value: object, depth: int) -> Iterator[tuple[str, object]]:
    """Scalars by name: those under `error` first, since gateways wrap it in words of their own, then from outside in."""
    if depth > 5:
        return
    if isinstance(value, list):
        for item in value[:8]:
            yield from _walk(item, depth + 1)
    elif isinstance(value, dict):
        yield from _walk(value.get("error"), depth + 1)
        for key, item in value.items():
            if isinstance(item, str | int | float) and not isinstance(item, bool):
                yield str(key), item
        for key, item in value.items():
            if key != "error":
                yield from _walk(item, depth + 1)


def _message(body: object, fields: Mapping[str, object]) -> str:
    texts = [fields[k] for k in _MESSAGE_KEYS if isinstance(fields.get(k), str) and str(fields[k]).strip()]
    # OpenRouter says "Provider returned error" and keeps the true words in metadata.raw.
    raw = fields.get("raw")
    if isinstance(raw, str) and raw.strip():
        texts.insert(0, f"{texts[0]}: {raw}" if texts else raw)
    if texts:
        return str(texts[0])
    try:
        return json.dumps(body, ensure_ascii=False)[: MAX_MESSAGE * 2] if body else ""
    except (ValueError, TypeError, RecursionError):
        return ""


def _plain(text: str) -> str:
    """The text, or what a page of HTML says: some gateways put one into their JSON."""
    if text.lstrip()[:1] != "<":
        return text
    html = text[: MAX_MESSAGE * 30]  # the patterns take quadratic time on markup that is never closed
    title = _TITLE.search(html)
    return title.group(1) if title and title.group(1).strip() else _TAGS.sub(" ", html)
