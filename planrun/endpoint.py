"""The address of a model endpoint as people write it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from planrun.core import units
from planrun.errors import ConfigError

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_LONGEST = 2_000  # characters
_SUFFIX = "/chat/completions"
_HIDDEN = "***@"


def normalise_base_url(url: str) -> tuple[str, str | None]:
    """The address without what clients add themselves, and a warning where that changed its meaning. Raises ConfigError."""
    text = url.strip()
    if not text.isprintable() or " " in text:
        raise ConfigError(f"base URL {units.shown(shown(text))}: there is a blank or a control character in it")
    if not text:
        raise ConfigError(f"the base URL is empty: write one such as {DEFAULT_BASE_URL}, or leave it out")
    if len(text) > _LONGEST:
        raise ConfigError(f"base URL {units.shown(shown(text))}: it is longer than {_LONGEST:,} characters")
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise ConfigError(f"base URL {shown(text)}: the scheme is missing: write http://{shown(text)}")
    if scheme.lower() not in ("http", "https"):
        raise ConfigError(f"base URL {shown(text)}: the scheme must be http or https")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"base URL {shown(text)}: {error}") from None
    if not host:
        raise ConfigError(f"base URL {shown(text)}: the host is missing")
    if parts.query or parts.fragment or text.endswith(("?", "#")):
        raise ConfigError(f"base URL {shown(text)}: nothing may follow the path (no ? and no #)")
    bare = f"{scheme.lower()}://{rest}".rstrip("/")
    if bare.endswith(_SUFFIX):
        cut = bare.removesuffix(_SUFFIX).rstrip("/")
        return cut, f"base URL {shown(text)}: {_SUFFIX} is added by planrun, so {shown(cut)} is used"
    return bare, None


def checked(url: str) -> str:
    """`url` as it is. Raises ValueError where it is no address."""
    try:
        normalise_base_url(url)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return url


def shown(url: str) -> str:
    """The address for people, logs and errors: without user name and password."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", rf"\1{_HIDDEN}", url, flags=re.DOTALL)


def incomplete(url: str) -> bool:
    """Whether it is an address as it is shown, without the user name and password that it needs."""
    return f"://{_HIDDEN}" in url
