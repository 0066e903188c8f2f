"""A damaged log taken apart: what stands in each physical line, whole records and what is none, in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, NamedTuple

from planrun.core.messages import compact_json, well_formed
from planrun.core.records import Record
from planrun.session.raw import LONGEST
from planrun.session.reader import UNREADABLE, read_record

Junk = Literal["", "cut", "not_json", "not_a_record", "zeros", "blank", "too_long"]

_START = re.compile(r'\{\s*"seq"\s*:')
_FAILURES = 64  # beginnings of records in one line that turned out to be none, before the rest of it is given up
_SHOWN = 40  # characters of what is none
_raw_decode = json.JSONDecoder().raw_decode


@dataclass(slots=True)
class Piece:
    """A part of a line: a record with the bytes that its digest is of, or with `junk` something that is none, and `why`."""

    line: int
    size: int
    raw: bytes = b""
    record: Record | None = None
    body: dict[str, Any] | None = None
    junk: Junk = ""
    why: str = ""
    bad_byte: int = 0  # 1-based place in the line of the first byte that is no UTF-8


@dataclass(slots=True)
class Line:
    """A physical line. `ended` is False for the last one where its newline is missing; `crlf` where a carriage return came along."""

    number: int
    pieces: list[Piece]
    ended: bool
    crlf: bool = False


class _Raw(NamedTuple):
    data: bytes | None  # None of one that is too long
    size: int
    ended: bool
    zeros: bool  # it is made of nothing else


def lines(file: BinaryIO, longest: int = LONGEST) -> Iterator[Line]:
    """Every physical line of a log from its beginning on; of one that has `longest` bytes or more nothing is kept."""
    file.seek(0)
    number = 0
    while raw := _next(file, longest):
        number += 1
        data = raw.data.removesuffix(b"\r") if raw.data else raw.data
        yield Line(number, _pieces(number, raw, data), raw.ended, crlf=data != raw.data)


def _next(file: BinaryIO, longest: int) -> _Raw | None:
    """The next line; of one that is too long its size only."""
    data = file.readline(longest)
    if not data:
        return None
    size, ended, zeros = len(data), data.endswith(b"\n"), data.startswith(b"\0") and not data.strip(b"\0\n")
    if ended or size < longest:
        return _Raw(data.removesuffix(b"\n"), size, ended, zeros)
    while not ended and (rest := file.readline(longest)):
        size, ended, zeros = size + len(rest), rest.endswith(b"\n"), zeros and not rest.strip(b"\0\n")
    return _Raw(None, size, ended, zeros)


def _pieces(line: int, raw: _Raw, data: bytes | None) -> list[Piece]:
    if raw.zeros:
        return [_zeros(line, raw.size - raw.ended)]
    if data is None:
        return [Piece(line, raw.size, junk="too_long", why=f"a line of {raw.size:,} bytes, which no record has")]
    if not data.strip():
        return [Piece(line, raw.size, junk="blank", why="a blank line")]
    front = len(data) - len(data.lstrip(b"\0"))
    inner = data.strip(b"\0")
    back = len(data) - front - len(inner)
    found = [_zeros(line, front)] if front else []
    found += _split(line, *_text(inner), front)
    return [*found, _zeros(line, back)] if back else found


def _text(data: bytes) -> tuple[str, int]:
    """The text, bytes that are no UTF-8 escaped, and the place (from 1) of the first of them, or 0."""
    try:
        return data.decode("utf-8"), 0
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "surrogateescape"), error.start + 1


def _zeros(line: int, size: int) -> Piece:
    return Piece(line, size, junk="zeros", why=f"{size:,} zero bytes, as a power cut leaves them")


def _split(line: int, text: str, bad: int, before: int) -> list[Piece]:
    """The records that stand in a text one behind the other, and what stands between them."""
    found: list[Piece] = []
    told = at = failures = 0
    while failures < _FAILURES and (start := _next_start(text, told, at)) is not None:
        piece, end = _decoded(line, text, start, broken=bad > 0)
        if piece is None or (piece.junk and start > told):
            failures += 1
            at = start + 1
            continue
        found += _other(line, text[told:start])
        found.append(piece)
        told = at = end
    found += _other(line, text[told:])
    if len(found) == 1:
        found[0].raw = _bytes(text)  # blanks around it belong to the line that the next one names
        found[0].bad_byte = before + bad if bad else 0
    return found


def _next_start(text: str, told: int, at: int) -> int | None:
    """Where the next record may begin: right behind the last one, then wherever it looks like one."""
    if at == told:
        blanks = len(text) - len(text[told:].lstrip()) if told < len(text) else len(text)
        if text[blanks : blanks + 1] == "{":
            return blanks
    match = _START.search(text, at)
    return match.start() if match else None


def _decoded(line: int, text: str, start: int, *, broken: bool) -> tuple[Piece | None, int]:
    """The JSON value that begins at `start`, as a piece, and where it ends; None where there is none."""
    try:
        body, end = _raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    raw = _bytes(text[start:end])
    piece = Piece(line, len(raw), raw)
    try:
        broken = broken or b"\\ud" in raw or b"\\uD" in raw  # bytes that are no characters, halves of characters
        piece.body = json.loads(well_formed(compact_json(body))) if broken else body
        piece.record = read_record(piece.body)
    except UNREADABLE as error:
        piece.junk, piece.why = "not_a_record", f"JSON that is no record ({_told(error)})"
    return piece, end


def _told(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__


def _other(line: int, text: str) -> list[Piece]:
    """What is no record, if it is anything at all."""
    if not text.strip():
        return []
    size = len(_bytes(text))
    if not _START.match(text.lstrip()):
        return [Piece(line, size, junk="not_json", why=f"{size:,} bytes that are no record: {_bytes(text[:_SHOWN])!r}")]
    if not text.rstrip().endswith("}"):
        return [Piece(line, size, junk="cut", why=f"a record that is cut off ({size:,} bytes are left of it)")]
    return [Piece(line, size, junk="not_json", why=f"a record whose {size:,} bytes are no JSON any more")]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
