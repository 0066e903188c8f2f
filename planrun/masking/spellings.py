"""The forms in which the value of a secret turns up in text: as it is, quoted, escaped, encoded.

Not among them, as no list could end: reversed, cut into characters, compressed, enciphered."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 6  # characters; to mask a shorter value would change ordinary text
_LINE = 8  # characters of a line of a value, to be masked by itself
_PROSE = 24  # the same where there are blanks in it
_BASE64 = 7  # characters of base64 that tell enough
_BASH = re.compile(r"""([\t !"$&'()*,;<>?\[\\\]^`{|}])""")  # what `printf %q` and `set -x` put a backslash before
_DOUBLE = re.compile(r'(["$`\\])')
_PERCENT = re.compile("%[0-9A-F]{2}")


def spellings(value: str) -> frozenset[str]:
    """All forms of `value`, and of the lines of one that has several. None where it is too short."""
    found: set[str] = set()
    for text in _parts(value):
        found |= set(_quoted(text))
        found |= set(_encoded(text.encode("utf-8", "surrogateescape")))
    return frozenset(form for form in found if len(form) >= SHORTEST)


def _parts(value: str) -> Iterator[str]:
    whole = value.strip("\r\n")
    if len(whole) < SHORTEST:
        return
    yield whole
    lines = [line.strip() for line in whole.splitlines()]
    if len(lines) > 1:
        yield "\r\n".join(whole.splitlines())
        # The first and last line of a PEM block stand in many files.
        yield from (x for x in lines if len(x) >= (_PROSE if " " in x else _LINE) and not x.startswith("-----"))


def _quoted(text: str) -> Iterator[str]:
    yield text
    once = tuple(_json(text))
    yield from once
    yield from (twice for form in once for twice in _json(form))
    yield repr(text)[1:-1]
    yield text.replace("'", "'\\''")  # '...' of a shell
    yield text.replace("'", "'\"'\"'")
    yield text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")  # $'...'
    yield _BASH.sub(r"\\\1", text)
    yield _DOUBLE.sub(r"\\\1", text)
    plain = html.escape(text, quote=False)
    for double, single in (('"', "'"), ("&quot;", "'"), ("&quot;", "&#x27;"), ("&#34;", "&#39;"), ("&quot;", "&apos;")):
        yield plain.replace('"', double).replace("'", single)


def _json(text: str) -> Iterator[str]:
    for form in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield form
        yield form.replace("/", "\\/")


def _encoded(raw: bytes) -> Iterator[str]:
    for safe in ("", "/", "!'()*~"):
        yield from _either_case(quote(raw, safe=safe))
    yield from _either_case(quote_plus(raw))
    yield raw.hex()
    yield raw.hex().upper()
    for form in _base64(raw):
        yield form
        yield form.translate({ord("+"): "-", ord("/"): "_"})


def _either_case(text: str) -> Iterator[str]:
    yield text
    yield _PERCENT.sub(lambda found: found[0].lower(), text)


def _base64(raw: bytes) -> Iterator[str]:
    """Base64 of the value alone, in lines too, and the characters that are its own wherever it stands in a longer text."""
    alone = b64encode(raw).decode("ascii")
    yield alone
    yield alone.rstrip("=")
    for wide in (64, 76):
        yield from (part for at in range(0, len(alone), wide) if len(part := alone[at : at + wide]) > wide // 2)
    for before in range(3):
        inside = b64encode(b"\0" * before + raw).decode("ascii").rstrip("=")
        # A character that shares its six bits with a neighbour of the value is not the value's own.
        own = inside[(0, 2, 3)[before] : len(inside) - ((before + len(raw)) % 3 > 0)]
        if len(own) >= _BASE64:
            yield own
