"""A Model that answers from a recording, in order, and fails at the first request that is not the recorded one. Requests for
summaries have a queue of their own: one that is made beside the run has no place in the order of the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from planrun.core.events import Purpose
from planrun.core.messages import compact_json
from planrun.errors import PlanrunError, ReplayMismatch
from planrun.models.base import ModelRequest, Reply
from planrun.models.said import one_line

_CONTEXT = 40  # characters shown before the first difference of two lines


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded answer, or the error that came instead. `digest` is that of the request that it answered, `seq` its record,
    `purpose` what it was for; `messages` gives its messages in wire form, and is called only to explain a difference. `after` is the number of step requests that had
    been answered when the answer to a summary came; None where none ever came."""

    digest: str
    reply: Reply | PlanrunError
    messages: Callable[[], list[dict[str, Any]]] = list
    after: int | None = 0
    seq: int = 0
    purpose: Purpose = "step"


Accepts = Callable[[Recorded, ModelRequest], bool]


def _never(recorded: Recorded, request: ModelRequest) -> bool:
    return False


class ReplayModel:
    """Answers step request number N with answer number N, and a request for a summary with the next one of its digest. Raises
    ReplayMismatch, and what was recorded as an error. `accepts` says of a request that is not the recorded one whether it gets
    its answer all the same. It is Paced: see models.base."""

    def __init__(self, answers: Sequence[Recorded], summaries: Sequence[Recorded] = (), accepts: Accepts = _never) -> None:
        self._accepts = accepts
        self._answers = answers
        self._summaries = list(summaries)
        self._next = 0
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """How many answers to steps are still to come."""
        return len(self._answers) - self._next

    def due(self, request: ModelRequest) -> bool:
        """Whether the recording had the answer to this summary by now. One that it does not know is due, and fails."""
        with self._lock:
            recorded = next((s for s in self._summaries if self._fits(s, request)), None)
            return recorded is None or (recorded.after is not None and recorded.after <= self._next)

    def complete(self, request: ModelRequest) -> Reply:
        with self._lock:
            recorded = self._step(request) if request.purpose == "step" else self._summary(request)
        if isinstance(recorded, PlanrunError):
            raise recorded
        return recorded

    def _fits(self, recorded: Recorded, request: ModelRequest) -> bool:
        return recorded.digest == request.digest or self._accepts(recorded, request)

    def _summary(self, request: ModelRequest) -> Reply | PlanrunError:
        for position, recorded in enumerate(self._summaries):
            if self._fits(recorded, request):
                del self._summaries[: position + 1]
                return recorded.reply
        raise ReplayMismatch(f"the recording has no summary of what is to be summed up here ({len(self._summaries)} are left)")

    def _step(self, request: ModelRequest) -> Reply | PlanrunError:
        while True:
            number = self._next + 1
            if number > len(self._answers):
                raise ReplayMismatch(f"the recording has {len(self._answers)} answers, and this is request {number}")
            recorded = self._answers[self._next]
            if recorded.digest != request.digest and isinstance(recorded.reply, PlanrunError):
                self._next = number  # what the error taught is known already
                continue
            if not self._fits(recorded, request):
                shown = difference(recorded.messages(), _messages(request.body))
                raise ReplayMismatch(f"request {number} is not the recorded one (- recorded, + now): {shown}")
            self._next = number
            return recorded.reply


def difference(recorded: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    """The first message that differs, and in it the first line, both spellings clipped to about 120 characters."""
    for index, (old, new) in enumerate(zip_longest(recorded, now)):
        if old == new:
            continue
        if old is None or new is None:
            extra, sign, how = (new, "+", "new") if old is None else (old, "-", "gone")
            return f"message {index} ({extra.get('role')}) is {how}\n{sign} {_cut(_text(extra), 0)}"
        role = str(new.get("role")) if old.get("role") == new.get("role") else f"{old.get('role')} -> {new.get('role')}"
        return f"message {index} ({role}) differs\n{_lines(_text(old), _text(new))}"
    return "the messages are the same, so the tools or the settings sent with them differ"


def _messages(body: bytes) -> list[dict[str, Any]]:
    found = json.loads(body).get("messages")
    return found if isinstance(found, list) else []


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    rest = {k: v for k, v in message.items() if k not in ("role", "content")}
    text = content if isinstance(content, str) else compact_json(content)
    return f"{text}\n{compact_json(rest)}" if rest else text


def _lines(old: str, new: str) -> str:
    for number, (a, b) in enumerate(zip_longest(old.split("\n"), new.split("\n")), start=1):
        if a != b:
            at = next(
                (i for i, (x, y) in enumerate(zip(a or "", b or "", strict=False)) if x != y),
                min(len(a or ""), len(b or "")),
            )
            return "\n".join(
                f"line {number}: (no such line)" if line is None else f"{sign} {_cut(line, at)}"
                for sign, line in (("-", a), ("+", b))
            )
    return "only the role differs"


def _cut(line: str, at: int) -> str:
    start = max(0, at - _CONTEXT)
    return ("…" if start else "") + one_line(line[start:], 120)
