"""Originals back: records by their number, from the log itself. Numbers rise line by line, so a record is found by halving; no
index is needed, and none can be out of date.

An id is a record's number, a range `12-20`, a step's id, or the number of a compaction, which stands for what it covers; each
may have the session before it (`SESSION:12`). Where the room ends, the rest is told as ids of two more forms: `ID@SEQ` is ID
from record SEQ on, `SEQ+N` record SEQ from character N on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from planrun.core.archive import Expanded, Original
from planrun.core.messages import compact_json, well_formed
from planrun.core.tokens import PER_MESSAGE, raw_tokens
from planrun.errors import one_line
from planrun.session.raw import lines, opened
from planrun.session.texts import Body, Lines, calls, edits, inserts, number, parse, seek

HEADING = 160  # characters kept free for what is printed above a record
_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "name")
_LEAST = 100  # characters of a record that is given in part: there is always some progress
_ID = re.compile(r"(?:([^\s,:]+):)?([A-Za-z0-9_-]{1,100})(?:@([0-9]{1,10})|\+([0-9]{1,10}))?")
_RANGE = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")


@dataclass(frozen=True, slots=True)
class Room:
    """How much may be given at once."""

    tokens: float = float("inf")
    characters: float = float("inf")


@dataclass(frozen=True, slots=True)
class _Asked:
    """One id: `session` as it was written, "" for none; from record `start` on, or from character `skip` of a single one."""

    text: str
    session: str
    name: str
    start: int = 0
    skip: int = 0

    def on_from(self, record: int) -> str:
        prefix = f"{self.session}:" if self.session else ""
        return f"{prefix}{self.name}@{record}"

    def inside(self, record: int, skip: int) -> str:
        prefix = f"{self.session}:" if self.session else ""
        return f"{prefix}{record}+{skip}"


def expand(ids: str, find: Callable[[str], Path | None], results: bool, room: Room) -> Expanded:
    """The originals of `ids`, separated by commas or blanks. `find` gives the log of a session's name ("": the present one).
    Tool results are left out unless `results`, or unless one is asked for by its own number."""
    giving = _Giving(room)
    asked = [text for text in re.split(r"[\s,]+", ids.strip("[]() \t\n")) if text]
    for place, text in enumerate(asked):
        _expand_one(text, find, results, giving)
        if giving.rest:
            giving.rest = ",".join([giving.rest, *asked[place + 1 :]])
            break
    return Expanded(tuple(giving.given), giving.rest, giving.unknown, tuple(giving.notices))


def _expand_one(text: str, find: Callable[[str], Path | None], results: bool, giving: _Giving) -> None:
    match = _ID.fullmatch(text.strip("#\"'"))
    if match is None:
        giving.unknown[one_line(text)] = "expected a record's number, a range such as 12-20 or a step's id"
        return
    asked = _Asked(text, match[1] or "", match[2], int(match[3] or 0), int(match[4] or 0))
    path = find(asked.session)
    if path is None:
        giving.unknown[text] = f"there is no session {asked.session}" if asked.session else "there is no session"
        return
    try:
        with opened(path) as file:
            _give(_Log(file, path.stem), asked, results, giving)
    except OSError as error:
        giving.unknown[text] = f"session {path.stem} cannot be read: {error.strerror or error}"


def _give(log: _Log, asked: _Asked, results: bool, giving: _Giving) -> None:
    """Give the records of one id as far as there is room."""
    found = False
    for body, direct in log.of(asked.name):
        found = True
        if body["seq"] < asked.start or (direct and asked.start) or (asked.skip and not direct):
            continue
        original = _original(log.session, body, results or direct)
        if original is None:
            if direct:
                giving.unknown[asked.text] = f"it is a {body['type']} record, which holds no text"
        elif not giving.take(original, asked):
            return
    if log.damaged:
        giving.notices.append(f"a line of session {log.session} could not be read")
    if not found:
        what = "record" if asked.name.isdigit() else "record in" if _RANGE.fullmatch(asked.name) else "message of step"
        giving.unknown[asked.text] = f"there is no {what} {asked.name}"


class _Log:
    """The records of one log, found by number or by step."""

    def __init__(self, file: BinaryIO, session: str) -> None:
        self.session = session
        self.damaged = 0
        self._file = file

    def of(self, name: str) -> Iterator[tuple[Body, bool]]:
        """The records that an id means, and whether it names exactly this one."""
        if ends := _RANGE.fullmatch(name):
            yield from ((body, False) for body in self._between(int(ends[1]), int(ends[2])))
        elif not name.isdigit():
            yield from ((body, False) for body in self._of_step(name))
        else:
            for body in list(self._between(int(name), int(name))):  # read to the end: the file is moved in below
                yield body, True
                for first, last in _covered(body):
                    yield from ((b, False) for b in self._between(first, last))

    def _between(self, first: int, last: int) -> Iterator[Body]:
        lines = Lines(self._file, seek(self._file, first), first - 1) if first <= last else ()
        for _, body in lines:
            if body["seq"] > last:
                break
            yield body
        self.damaged += lines.damaged if isinstance(lines, Lines) else 0

    def _of_step(self, step: str) -> Iterator[Body]:
        """Every line is looked at, but only those that hold the step's name are read."""
        needle = compact_json(step).encode("ascii")
        self._file.seek(0)
        for line in lines(self._file):
            if needle in line:
                body = parse(line)
                if body is not None and body.get("step") == step and body["type"] in ("message", "tool_end"):
                    yield body


def _covered(body: Body) -> list[tuple[int, int]]:
    """The ranges of records that a compaction took out of the context or put a shorter text for, in order, joined."""
    if body["type"] != "compaction":
        return []
    ranges: list[tuple[int, int]] = []
    for edit in edits(body):
        if edit.get("edit") in ("insert", "drop"):
            ranges.append((number(edit.get("first")), number(edit.get("last"))))
        seqs = edit.get("seqs", [edit.get("seq")])
        ranges += [(number(seq), number(seq)) for seq in seqs] if isinstance(seqs, list) else []
    joined: list[tuple[int, int]] = []
    for first, last in sorted((first, min(last, body["seq"] - 1)) for first, last in ranges if first > 0):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def _original(session: str, body: Body, results: bool) -> Original | None:
    """A record as it was; None where it holds no text of its own."""
    kind, role, name, text, message = "message", None, body.get("name"), "", None
    match body["type"]:
        case "message":
            role = str(body.get("role"))
            text = _said(body)
            message = {k: v for k, v in body.items() if k in _MESSAGE}
        case "compaction":
            kind, name = "summary", body.get("strategy")
            text = "\n\n".join(str(edit["text"]) for edit in inserts(body)) or f"[{len(edits(body))} edits without a summary]"
        case "tool_end" if isinstance(body.get("text"), str):
            role, text = "tool", str(body["text"])
        case _:
            return None
    left_out = len(text) if role == "tool" and not results else 0
    return Original(
        session=session,
        record=body["seq"],
        timestamp=float(body["timestamp"]),
        kind="summary" if kind == "summary" else "message",
        role=role,
        step=body.get("step") or body.get("boundary"),
        name=name if isinstance(name, str) else None,
        text="" if left_out else well_formed(text),
        left_out=left_out,
        message=None if left_out else message,
    )


def _said(body: Body) -> str:
    """Content and calls, exactly as the model wrote them."""
    content = body.get("content")
    parts = [content] if isinstance(content, str) and content else []
    return "\n".join([*parts, *(f"-> {name} {arguments}" for name, arguments in calls(body))])


class _Giving:
    """What was given so far, and what did not fit."""

    def __init__(self, room: Room) -> None:
        self.given: list[Original] = []
        self.rest = ""
        self.unknown: dict[str, str] = {}
        self.notices: list[str] = []
        self._room = room
        self._seen: set[tuple[str, int]] = set()

    def take(self, original: Original, asked: _Asked) -> bool:
        """False where the room has ended: then `rest` says how to go on. The first record is always given, cut if it must be:
        a single one is worth more than `tokens`, never more than `characters`."""
        key = (original.session, original.record)
        if key in self._seen:
            return True
        if asked.skip:
            original = original._replace(text=original.text[asked.skip :], start=asked.skip, message=None)
        tokens, characters = raw_tokens(original.text) + PER_MESSAGE, len(original.text) + HEADING
        if self.given and (tokens > self._room.tokens or characters > self._room.characters):
            self.rest = asked.text if asked.name == str(original.record) else asked.on_from(original.record)
            return False
        self._seen.add(key)
        self._room = Room(self._room.tokens - tokens, self._room.characters - characters)
        whole = len(original.text)
        kept = whole if self._room.characters >= 0 else max(_LEAST, int(whole + self._room.characters))
        if kept >= whole:
            self.given.append(original)
            return True
        self.given.append(original._replace(text=original.text[:kept], message=None))
        self.rest = ",".join([asked.inside(original.record, original.start + kept), *_behind(original, asked)])
        return False


def _behind(original: Original, asked: _Asked) -> Sequence[str]:
    """What an id still means behind a record that was given in part."""
    if asked.skip or (asked.name.isdigit() and original.kind == "message" and asked.name == str(original.record)):
        return ()
    return (asked.on_from(1 if asked.name == str(original.record) else original.record + 1),)
