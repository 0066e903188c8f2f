"""Characters of a plan file: which may not stand there, and what they are called."""

from __future__ import annotations

import re
import unicodedata

from planrun.errors import Fault
from planrun.textfile import Unreadable

_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
# Look like a blank or like nothing, and are neither for YAML.
ODD = re.compile("[\x85\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff]")
_SHOWN_FAULTS = 20


def check_characters(text: str) -> None:
    """Unreadable, naming each place, where the text holds characters that no YAML file may hold."""
    faults = []
    for match in _UNREADABLE.finditer(text):
        line, column = place(text, match.start())
        faults.append(
            Fault(
                f"the character {name(match[0])} is not allowed here",
                line,
                column,
                "delete it, or write an escape in double quotes",
            )
        )
        if len(faults) == _SHOWN_FAULTS:
            break
    if faults:
        raise Unreadable(*faults)


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def name(character: str) -> str:
    """`U+00A0 NO-BREAK SPACE`."""
    return f"U+{ord(character):04X} {unicodedata.name(character, '')}".rstrip()
