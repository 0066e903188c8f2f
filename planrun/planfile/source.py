"""Bytes of a plan file to text: any file system object, any encoding, one clear fault."""

from __future__ import annotations

import codecs
import os
import re
import stat
import unicodedata
from pathlib import Path

from planrun.errors import Fault

LIMIT = 4 * 1024 * 1024
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
# Look like a blank or like nothing, and are neither for YAML.
ODD = re.compile("[\x85\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff]")
_SHOWN_FAULTS = 20


class Unreadable(Exception):
    """The file cannot be turned into text; `faults` say why."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(faults[0].message)
        self.faults = list(faults)


def read_bytes(path: Path) -> bytes:
    """The content of a regular file of at most 4 MiB. Never waits: a pipe or a device is refused without being read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Unreadable(Fault("no such file")) from None
    except (OSError, ValueError) as error:
        raise Unreadable(Fault(f"cannot be read: {getattr(error, 'strerror', None) or error}")) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise Unreadable(Fault("is a directory" if stat.S_ISDIR(mode) else "is not a regular file"))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise Unreadable(Fault(f"cannot be read: {error.strerror}")) from None
    finally:
        os.close(descriptor)
    return data


def decode(data: bytes) -> str:
    """The text with `\\n` line ends and without a byte order mark: UTF-8, or UTF-16 that says so with a mark."""
    if len(data) > LIMIT:
        raise Unreadable(Fault(f"larger than {LIMIT // 1024 // 1024} MiB"))
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise Unreadable(Fault("is UTF-32", hint="save it as UTF-8"))
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return normalise(data.decode(encoding))
    except UnicodeDecodeError as error:
        start = error.start + (3 if encoding == "utf-8-sig" and data.startswith(codecs.BOM_UTF8) else 0)
        name = "UTF-16" if encoding == "utf-16" else "UTF-8"
        before = data[:start] if name == "UTF-8" else b""
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace").removeprefix("\ufeff")) + 1
        fault = Fault(f"not {name}: byte 0x{data[start]:02x} at byte offset {start}", line, column, "save the file as UTF-8")
        raise Unreadable(fault) from None


def normalise(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


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
