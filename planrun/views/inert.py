"""Text that acts on nothing it passes through: terminals, the logs of CI systems. What could is shown as its JSON escape, so
that JSON is still the same JSON."""

from __future__ import annotations

import re

# C0 and C1 controls but tab and newline; what turns the direction of text or is not seen at all (UAX #9, UTR #36), tags too.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_ANYWHERE = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)  # Azure Pipelines, TeamCity, the older form of GitHub
_AT_START = re.compile(r"^(\s*):(?=:)", re.MULTILINE)  # GitHub Actions: `::error::`, behind blanks too


def inert(text: str) -> str:
    """Whole lines: no control character but tab and newline, nothing unseen, no command to a CI system. Twice is once."""
    text = unseen(text)
    text = _ANYWHERE.sub(r"#\\u0023", text) if "##" in text else text
    return _AT_START.sub(r"\1\\u003a", text) if "::" in text else text


def unseen(text: str) -> str:
    """What acts on a terminal or is not seen there, as escapes."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    raw = found[0].encode("utf-16-be")
    return "".join(f"\\u{raw[at]:02x}{raw[at + 1]:02x}" for at in range(0, len(raw), 2))
