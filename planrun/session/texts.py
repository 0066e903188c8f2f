"""Reading a log for its texts alone: leniently, because a damaged line must not hide the others, and without the fold."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from planrun.core.archive import Kind
from planrun.core.messages import compact_json, well_formed
from planrun.core.names import HISTORY_TOOLS
from planrun.core.units import shown
from planrun.session.raw import LONGEST, lines, opened, too_long

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST = 1 << 32  # record numbers, in an index
_NO_TEXT = re.compile(rb'\{"seq":([1-9][0-9]{0,8}),"type":"(?!message"|compaction")[a-z_]+",')
Body = dict[str, Any]
_decode = json.JSONDecoder().decode  # `json.loads` looks at its options first


def is_name(session: str) -> bool:
    """Whether a session can be called so."""
    return bool(_NAME.fullmatch(session)) and ".." not in session


def name(value: object) -> str:
    """The name of a session. Raises ValueError."""
    if isinstance(value, str) and is_name(value):
        return value
    raise ValueError(
        "expected a session's name (at most 64 of A-Z a-z 0-9 - _ . with a letter or digit first and no two dots together), "
        f"found {shown(value)}"
    )


class Doc(NamedTuple):
    """The text of one record that can be found; `offset` is where its line begins."""

    record: int
    offset: int
    timestamp: float
    kind: Kind
    role: str | None
    step: str | None
    level: int | None
    text: str


class Lines:
    """The records of a log from byte `offset` on, as JSON objects with their offsets. A line that is none, or whose number does
    not rise, is passed over and counted; an unfinished last line is left for later: `offset` stays before it. With `texts_only`
    records that hold no text are left out, unread where their beginning tells."""

    def __init__(self, file: BinaryIO, offset: int = 0, record: int = 0, *, texts_only: bool = False) -> None:
        self.offset, self.record, self.damaged = offset, record, 0
        self._file = file
        self._texts_only = texts_only

    def __iter__(self) -> Iterator[tuple[int, Body]]:
        self._file.seek(self.offset)
        for line in lines(self._file):
            if self._texts_only and self._passes(line):
                continue
            body = parse(line)
            if body is None and not line.endswith(b"\n") and not too_long(line):
                return
            start, self.offset = self.offset, self.offset + len(line)
            if body is not None and body["seq"] > self.record:
                self.record = body["seq"]
                yield start, body
            elif line.strip():
                self.damaged += 1

    def _passes(self, line: bytes) -> bool:
        """Go on behind a line that holds no text, if it is one as the log writes them."""
        plain = _NO_TEXT.match(line)
        if plain is None or not line.endswith(b'"}\n') or int(plain[1]) <= self.record:
            return False
        self.offset, self.record = self.offset + len(line), int(plain[1])
        return True


def parse(line: bytes) -> Body | None:
    if too_long(line):
        return None
    try:
        body = _decode(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    good = isinstance(body, dict) and isinstance(body.get("timestamp"), int | float) and isinstance(body.get("type"), str)
    return body if good and type(body.get("seq")) is int and 0 < body["seq"] < _MOST else None


def docs(lines: Lines) -> Iterator[Doc]:
    for offset, body in lines:
        doc = doc_of(body, offset)
        if doc is not None:
            yield doc


def doc_of(body: Body, offset: int) -> Doc | None:
    """What a search can find of a record: the text of a message with its calls, the summaries of a compaction."""
    role, level = None, None
    match body["type"]:
        case "message" if not own(body):
            kind: Kind = "message"
            role, text = _text(body.get("role")), message_text(body)
        case "compaction":
            inserted = [edit for edit in inserts(body) if number(edit.get("level"))]  # a notice of level 0 says nothing
            kind, text = "summary", "\n\n".join(str(edit["text"]) for edit in inserted)
            level = max((number(edit.get("level")) for edit in inserted), default=None)
        case _:
            return None
    step = _text(body.get("step") or body.get("boundary"))
    if not text or text.isspace():
        return None
    return Doc(body["seq"], offset, float(body["timestamp"]), kind, role, step, level, well_formed(text))


def own(body: Body) -> bool:
    """Whether this is the answer of a search. Found again, each would hold more than the one before, for ever."""
    return body.get("role") == "tool" and body.get("name") in HISTORY_TOOLS


def inserts(body: Body) -> list[Body]:
    return [edit for edit in edits(body) if edit.get("edit") == "insert" and isinstance(edit.get("text"), str)]


def edits(body: Body) -> list[Body]:
    found = body.get("edits")
    return [edit for edit in found if isinstance(edit, dict)] if isinstance(found, list) else []


def message_text(body: Body) -> str:
    """What a message says and calls, the search tools' calls aside."""
    parts = [body["content"]] if isinstance(body.get("content"), str) and body["content"] else []
    parts += [_call(name, arguments) for name, arguments in calls(body) if name not in HISTORY_TOOLS]
    return "\n".join(parts)


def calls(body: Body) -> list[tuple[str, str]]:
    """Name and arguments of each tool call of a message."""
    found = body.get("tool_calls")
    functions = [c.get("function") for c in found if isinstance(c, dict)] if isinstance(found, list) else []
    return [(str(f.get("name")), str(f.get("arguments"))) for f in functions if isinstance(f, dict)]


def _call(name: str, arguments: str) -> str:
    """A call in words: texts as they are, not as JSON spells them."""
    try:
        given = _decode(arguments)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return f"{name} {arguments}"
    return "\n".join([name, *(f"{k}: {v if isinstance(v, str) else compact_json(v)}" for k, v in given.items())])


def number(value: object) -> int:
    return value if type(value) is int else 0


def _text(value: object) -> str | None:
    return well_formed(value) if isinstance(value, str) else None


def body_at(file: BinaryIO, offset: int) -> Body | None:
    file.seek(offset)
    return parse(file.readline(LONGEST))


def seek(file: BinaryIO, record: int) -> int:
    """Where the first line stands whose record number is at least `record`: found by halving, as numbers rise line by line."""
    low, high = 0, os.fstat(file.fileno()).st_size
    while low < high:
        middle = (low + high) // 2
        start, found = _line_from(file, middle)
        if found is None or found >= record:
            high = middle
        else:
            low = start + 1
    return _line_from(file, low)[0]


def _rest(file: BinaryIO) -> Iterator[bytes]:
    """What is left of the line that the file stands in."""
    for piece in lines(file):
        yield piece
        if piece.endswith(b"\n"):
            return


def _line_from(file: BinaryIO, place: int) -> tuple[int, int | None]:
    """Where the first readable line that begins at or behind `place` begins, and its number; None where there is none."""
    start = place
    if place:
        file.seek(place - 1)
        start = place - 1 + sum(map(len, _rest(file)))
    else:
        file.seek(0)
    for line in lines(file):
        body = parse(line)
        if body is not None:
            return start, int(body["seq"])
        start += len(line)
    return start, None


def newest(folder: Path, cwd: str) -> Path | None:
    """The log of the session of working directory `cwd` that was written last."""
    best: tuple[float, str] | None = None
    for path in folder.glob("*.jsonl"):
        try:
            with opened(path) as file:
                head = parse(file.readline(LONGEST))
                if head is None or head["type"] != "session" or head.get("cwd") != cwd:
                    continue
                here = (_touched(file), path.name)
        except OSError:
            continue
        best = max(best, here) if best else here
    return folder / best[1] if best else None


def _touched(file: BinaryIO) -> float:
    """The time of the last record, read from the end of the file."""
    size = os.fstat(file.fileno()).st_size
    room = 1 << 12
    while True:
        file.seek(max(0, size - room))
        for line in reversed(file.read(room).split(b"\n")[room < size :]):
            body = parse(line)
            if body is not None:
                return float(body["timestamp"])
        if room >= min(size, LONGEST):
            return 0.0
        room *= 8
