"""Session files of the case collection as logs of planrun. The files are in a neutral form: one JSON object a line of type
session, step_start, message, step_end, compaction or approval_request. Each line becomes one record, so line numbers stay;
a line that is cut off stays cut off."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from planrun.core.edits import Drop
from planrun.core.events import Approval, Compacted, Event, Responded, Said, Session, StepChanged
from planrun.core.messages import Message, Origin, ToolCall
from planrun.core.records import encode
from planrun.session.reader import GENESIS, line_digest

CASES = Path(__file__).parent / "cases"
PLAN = "name: case\nmodel: test-model\nsteps:\n" + "".join(
    f"  - {{id: {s}, prompt: Do {s}.}}\n" for s in ("one", "two", "three")
)
_ORIGINS: dict[str, Origin] = {"system": "runner", "user": "user", "assistant": "model", "tool": "tool"}


def plan_text(name: str) -> str:
    """The plan of a case, or one of three prompt steps where it has none of its own."""
    path = CASES / f"{name}.plan.yaml"
    return path.read_text(encoding="utf-8") if path.exists() else PLAN


def convert(name: str, folder: Path, plan: str = PLAN) -> Path:
    """Write case `name` into `folder` as a log; its bytes are what our encoder makes, escapes as in the case."""
    neutral = (CASES / f"{name}.session.jsonl").read_bytes()
    path = folder / f"{name}.jsonl"
    make = _Converter(plan)
    prev, out = GENESIS, []
    for number, line in enumerate(neutral.split(b"\n"), 1):
        if not line:
            continue
        try:
            body: dict[str, Any] = {
                "seq": number,
                **encode(make.event(json.loads(line))),
                "timestamp": 1000.0 + number,
                "prev": prev,
            }
            line = json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode("ascii")
        except ValueError:
            pass  # the line that the case has cut off
        prev = line_digest(line)
        out.append(line)
    path.write_bytes(b"\n".join(out) + (b"\n" if neutral.endswith(b"\n") else b""))
    return path


class _Converter:
    def __init__(self, plan: str) -> None:
        self._plan = plan
        self._step: str | None = None
        self._tools: dict[str, str] = {}
        self._seqs: list[int] = []

    def event(self, body: dict[str, Any]) -> Event:
        """The event of one neutral record. Raises ValueError for a type that the collection does not have."""
        makers: dict[str, Callable[[dict[str, Any]], Event]] = {
            "session": self._session,
            "step_start": self._start,
            "step_end": self._end,
            "message": self._message,
            "compaction": self._compaction,
            "approval_request": self._approval,
        }
        if body["type"] not in makers:
            raise ValueError(body["type"])
        return makers[body["type"]](body)

    def _session(self, body: dict[str, Any]) -> Event:
        digest = hashlib.sha256(self._plan.encode()).hexdigest()
        where = f"{body['cwd']}/{body['plan']['path']}"
        return Session(1, body["id"], body["cwd"], where, self._plan, digest, {}, "test-model", {})

    def _start(self, body: dict[str, Any]) -> Event:
        self._step = body["step"]
        return StepChanged(body["step"], "in_progress", 1)

    def _end(self, body: dict[str, Any]) -> Event:
        failed = body["status"] == "failed"
        note = "it failed" if failed else None
        return StepChanged(body["step"], body["status"], 1, note, body["output"], "step_failed" if failed else None)

    def _message(self, body: dict[str, Any]) -> Event:
        """An assistant message of neither text nor calls is what we record as an empty answer."""
        wire = body["message"]
        calls = tuple(ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in wire.get("tool_calls", ()))
        if wire["role"] == "assistant" and not calls and not wire["content"]:
            return Responded(None, "test-model", 0.1, empty=True)
        self._tools.update({c.id: c.name for c in calls})
        self._seqs.append(body["seq"] + 1)
        message = Message(wire["role"], wire["content"], calls, wire.get("tool_call_id"))
        step = None if wire["role"] == "system" else self._step
        name = self._tools.get(wire.get("tool_call_id") or "")
        return Said.of(message, _ORIGINS[wire["role"]], step, 1, name=name)

    def _compaction(self, body: dict[str, Any]) -> Event:
        gone = [s for s in self._seqs if s < body["first_kept"] + 1]
        edits = (Drop(gone[0], gone[-1]),) if gone else ()
        return Compacted(body["mode"], "boundary", edits, len(gone), len(self._seqs), len(self._seqs) - len(gone), 0, 0)

    def _approval(self, body: dict[str, Any]) -> Event:
        return Approval("asked", body["call_id"], self._step or "", body["args_sha256"], f"call {body['call_id']}?")


def texts(name: str) -> Iterator[str]:
    yield from json.loads((CASES / f"{name}.texts.json").read_text(encoding="utf-8"))
