"""Files of text that people write: any file system object, any encoding, one clear fault."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

from planrun.errors import Fault

LIMIT = 1024 * 1024  # bytes, and characters


class Unreadable(Exception):
    """The file cannot be turned into text; `faults` say why."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(faults[0].message)
        self.faults = list(faults)

    def told(self, path: str) -> str:
        return "\n".join(fault.told(path) for fault in self.faults)


class Missing(Unreadable):
    """There is no such file, and perhaps no such folder."""


def read_bytes(path: Path) -> bytes:
    """The content of a regular file of at most 1 MiB. Never waits: a pipe or a device is refused without being read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Missing(Fault("is a link to a file that does not exist" if path.is_symlink() else "no such file")) from None
    except NotADirectoryError as error:
        raise Missing(Fault(f"cannot be read: {error.strerror}")) from None
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
    """The text with `\\n` line ends and without a byte order mark: UTF-8, or UTF-16 that says so with a mark. No text has a NUL."""
    if len(data) > LIMIT:
        raise Unreadable(Fault(f"larger than {LIMIT // 1024 // 1024} MiB"))
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise Unreadable(Fault("is UTF-32", hint="save it as UTF-8"))
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        text = normalise(data.decode(encoding))
    except UnicodeDecodeError as error:
        start = error.start
        name = "UTF-16" if encoding == "utf-16" else "UTF-8"
        before = data[:start] if name == "UTF-8" else b""
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace").removeprefix("\ufeff")) + 1
        fault = Fault(f"not {name}: byte 0x{data[start]:02x} at byte offset {start}", line, column, "save the file as UTF-8")
        raise Unreadable(fault) from None
    if (nul := text.find("\0")) >= 0:
        message = "the character U+0000 is in no text: this is something else, or UTF-16 without a byte order mark"
        line, column = text.count("\n", 0, nul) + 1, nul - text.rfind("\n", 0, nul)
        raise Unreadable(Fault(message, line, column, "save the file as UTF-8"))
    return text


def normalise(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
