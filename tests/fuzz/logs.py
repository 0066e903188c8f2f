"""The targets for session logs: bytes as they are, and real logs with parts of records changed and the chain made whole."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from planrun import planfile
from planrun.core.events import Session
from planrun.core.messages import compact_json
from planrun.core.plan import Plan
from planrun.errors import SessionDamaged
from planrun.session.following import folded
from planrun.session.log import GENESIS, line_digest
from planrun.session.texts import Lines, docs

QUICKSTART = Path(__file__).parents[2] / "plans" / "quickstart.session.jsonl"
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**70, 1.5, 1e308, "", "x", "\ud83d", "prepare", [], ["x"], [[]], {}, {"x": []}, "in_progress", "done", "tool",
)  # fmt: skip


def read_plan(header: Session) -> Plan:
    return _plan(header.plan, header.plan_path, tuple(sorted(header.files.items())))


@lru_cache(maxsize=64)
def _plan(text: str, path: str, files: tuple[tuple[str, str], ...]) -> Plan:
    """Most records that are changed are not the one with the plan."""
    return planfile.parse(text, path, dict(files)).plan


@cache
def _path() -> Path:
    descriptor, name = tempfile.mkstemp(".jsonl", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    os.close(descriptor)
    return Path(name)


def log(data: bytes) -> None:
    """Any bytes as a log: a state, or SessionDamaged with its line; the lenient readers read it to its end."""
    path = _path()
    path.write_bytes(data)
    with suppress(SessionDamaged):
        folded(path, read_plan)
    with path.open("rb") as file:
        for _ in docs(Lines(file)):
            pass


def records(data: bytes) -> None:
    """Each four bytes change one thing in a real session: a field's value, a field's absence, a record's place."""
    bodies = [json.loads(line) for line in _real()]
    for at in range(0, min(len(data), 40) - 3, 4):
        _change(bodies, *data[at : at + 4])
    path = _path()
    path.write_bytes(chained(bodies))
    try:
        folded(path, read_plan)
    except SessionDamaged as error:
        assert error.line, error


def _change(bodies: list[dict[str, Any]], which: int, field: int, how: int, more: int) -> None:
    if not bodies:
        return
    at = which % len(bodies)
    holder: Any = bodies[at]
    match how % 8:
        case 0:
            del bodies[at]
        case 1:
            bodies.insert(more % len(bodies), json.loads(json.dumps(holder)))
        case 2:
            bodies.insert(more % len(bodies), bodies.pop(at))
        case 3:
            holder.pop(sorted(holder)[field % len(holder)])
        case depth:
            key = _key(holder, field)
            while depth > 4 and key is not None and isinstance(holder[key], dict | list) and holder[key]:
                holder, depth = holder[key], depth - 1
                key = _key(holder, more)
            if key is not None:
                holder[key] = copy.deepcopy(ODD[more % len(ODD)])


def _key(holder: Any, number: int) -> Any:
    if not holder:
        return None
    return number % len(holder) if isinstance(holder, list) else sorted(holder)[number % len(holder)]


def chained(bodies: list[dict[str, Any]]) -> bytes:
    """The records as a log whose numbers and digests are right."""
    lines, prev = [], GENESIS
    for number, body in enumerate(bodies, 1):
        line = json.dumps({**body, "seq": number, "prev": prev}, separators=(",", ":")).encode()
        lines.append(line)
        prev = line_digest(line)
    return b"".join(line + b"\n" for line in lines)


@cache
def _real() -> list[str]:
    """The quickstart's session and what it does not have: a compaction, approvals, limits, notes."""
    bodies = [json.loads(line) for line in QUICKSTART.read_bytes().splitlines()]
    extra = (
        {"type": "compaction", "strategy": "compact", "trigger": "boundary", "edits": [{"edit": "elide", "seqs": [4]},
         {"edit": "insert", "text": "t", "first": 3, "last": 9}, {"edit": "cut", "seq": 3, "keep": 9}, {"edit": "drop", "first": 3, "last": 5},
         {"edit": "shorten", "seqs": [4]}], "replaces_count": 1, "messages_before": 9, "messages_after": 8, "tokens_before": 9,
         "tokens_after": 8, "messages": [{"role": "user", "content": "x"}], "timestamp": 2e9},
        {"type": "approval", "decision": "asked", "subject": "before", "step": "count", "digest": "d", "timestamp": 2e9},
        {"type": "limit", "limit": "window", "used": 5, "maximum": 9, "timestamp": 2e9},
        {"type": "note", "kind": "resumed", "options": {"model": "m"}, "settings": {}, "timestamp": 2e9},
        {"type": "hook", "event": "e", "command": "c", "status": "s", "seconds": 1, "timestamp": 2e9},
        {"type": "other", "x": 1, "timestamp": 2e9},
    )  # fmt: skip
    return [compact_json(body) for body in (*bodies[:-1], *extra, bodies[-1])]
