"""The base url of an endpoint, as people write it and as requests need it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from planrun.errors import ConfigError

_SUFFIXES = ("/chat/completions", "/completions", "/responses", "/embeddings")


@dataclass(frozen=True, slots=True)
class Address:
    """`url` is the base to which `/chat/completions` is added, `query` goes with every request, `shown` is the
    url for people (no credentials, no query), `warning` says what was changed, or is None."""

    url: str = field(repr=False)
    shown: str
    query: dict[str, str] = field(default_factory=dict, repr=False)
    warning: str | None = None


def parse_address(text: str) -> Address:
    """Raises ConfigError where no request could be sent: nothing there, no scheme, no host, a port that is no number."""
    text = text.strip()
    if not text:
        raise ConfigError("no base url: set baseUrl, --base-url or OPENAI_BASE_URL")
    if "://" not in text:
        raise ConfigError(f"the base url {_safe(text)!r} has no scheme: write https://{_safe(text)} (or http://)")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"the base url {_safe(text)!r} is not valid: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise ConfigError(f"the base url {_safe(text)!r} is not an http(s) address")
    path, warning = "/" + "/".join(p for p in parts.path.split("/") if p), None
    for suffix in _SUFFIXES:
        if path.endswith(suffix):
            path = path.removesuffix(suffix)
            warning = f"the base url ended in {suffix}; that part is added to every request, so it was left out"
            break
    netloc = f"[{host}]" if ":" in host else host
    shown = urlunsplit((parts.scheme.lower(), f"{netloc}:{port}" if port else netloc, path.rstrip("/"), "", ""))
    url = urlunsplit((parts.scheme.lower(), parts.netloc, path.rstrip("/"), "", ""))
    return Address(url, shown, dict(parse_qsl(parts.query)), warning)


def _safe(text: str) -> str:
    return text.rpartition("@")[2].partition("?")[0]
