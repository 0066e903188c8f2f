"""One request to an endpoint whose answer is wanted as it came: for trying an endpoint, not for working with it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from planrun.core.messages import compact_json
from planrun.endpoint import shown
from planrun.errors import ProviderError
from planrun.models.said import one_line

_SECONDS = 60.0
_MOST = 1 << 20  # bytes of an answer that are read


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of any status; `kind` is its content type."""

    status: int
    kind: str
    headers: dict[str, str]
    body: bytes
    seconds: float


def send(base_url: str, key: str, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
    """One request, whatever comes back. Raises ProviderError where nothing does."""
    import httpx2

    headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    content = compact_json(body).encode("utf-8") if body is not None else None
    began, read = time.monotonic(), b""
    try:
        with httpx2.stream(method, base_url + path, headers=headers, content=content, timeout=_SECONDS) as response:
            for chunk in response.iter_bytes():
                read += chunk
                if len(read) > _MOST or time.monotonic() - began > _SECONDS:
                    break
            kind = response.headers.get("content-type", "")
            return Answer(response.status_code, kind, dict(response.headers), read, time.monotonic() - began)
    except (httpx2.RequestError, httpx2.StreamError) as error:
        said = one_line(str(error)) or type(error).__name__
        raise ProviderError(f"{shown(base_url)}: {said}", kind="connection") from None
