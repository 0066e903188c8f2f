"""The crash matrix of a recorded session: its log cut everywhere, each cut resumed, each resume compared with the whole run.

    for cut in matrix(Path(".thclaws/sessions/20260131-0915.jsonl")):
        assert not cut.faults, f"{cut}: {cut.faults}"

Nothing of the session is run: its model, tools, commands, checks, hooks and people answer what is on record (`recorded`), in
a folder of its own. So anybody can test a plan with a session that it made. The time it takes grows with the square of the
number of records, as each cut is resumed to the end."""

from __future__ import annotations

import json
import re
import signal
import tempfile
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn

from planrun import api
from planrun.core import names, prompts, summaries
from planrun.core.events import Compacted, Noted, Requested, Said
from planrun.core.messages import Message, compact_json
from planrun.core.records import Record
from planrun.core.state import Spend, State
from planrun.errors import Interrupted, Outcome, PlanrunError, ReplayMismatch
from planrun.models.base import ModelRequest, Reply
from planrun.models.replay import Recorded, ReplayModel
from planrun.replaying import replay
from planrun.testing.comparing import answered, effects, outcome, totals, unanswered
from planrun.testing.recorded import RecordedWorld
from planrun.testing.whole import Whole, moved, runs, settings

Where = Literal["half", "unended", "whole"]
WHERE: tuple[Where, ...] = ("half", "unended", "whole")
_NAME = "cut"
_SUMMARY = "Facts: none\nDone: none\nFiles: none\nOpen: none"


@dataclass(frozen=True, slots=True)
class Cut:
    """A log that ends with record `record`: with half of its line, with the line but not its newline, or after the fsync (`whole`).
    `faults` say what a resume of it did otherwise than the whole run; `executions` is what was asked to run after it."""

    record: int
    where: Where
    type: str
    faults: tuple[str, ...] = ()
    executions: int = 0

    def __str__(self) -> str:
        return f"record {self.record} ({self.type}), {self.where}"


def matrix(path: Path, only: Container[int] | None = None, resume: Callable[..., object] = api.resume) -> Iterator[Cut]:
    """Every cut of the log at `path` in its order, or those at some records, with its faults. Raises SessionDamaged where it cannot
    be read."""
    with tempfile.TemporaryDirectory(prefix="planrun-crash-") as made:
        rest = list(runs(moved(path, Path(made).resolve())))
        for record in rest[-1].records:
            for where in WHERE if only is None or record.seq in only else ():
                given = record.seq - (where == "half")
                while len(rest) > 1 and given >= len(rest[0].records):
                    rest.pop(0)
                if given >= max(1, rest[0].asked):  # half a header is no session
                    yield _judged(rest[0], given, Cut(record.seq, where, record.event.type), resume)


@dataclass(slots=True)
class Resume:
    """A resume as it was watched: how it ended, what it asked to run, what was wrong with its first request."""

    whole: Whole
    given: State
    unsure: bool  # what the last answer cost is lost, and what it taught of the size of tokens
    model: ReplayModel = field(init=False)
    world: RecordedWorld = field(init=False)
    state: State = field(default_factory=State)
    faults: list[str] = field(default_factory=list)
    stopped: bool = False  # where the record ends
    interrupted: bool = False
    asked: int = 0
    cut: bool = False  # the context was cut since: numbers of records in it may differ
    extra: bool = False  # a summary was asked for that the recording has not, as the context has another size
    shift: int = 0  # how much higher the numbers of records are than in the recording
    settled: Spend = field(default_factory=Spend)  # after the note that begins it, which counts a request that was cut off

    @property
    def charged(self) -> bool:
        """Whether a request that was cut off counts in the resume."""
        return self.settled != self.given.spend

    @property
    def sooner(self) -> bool:
        """Whether a limit stopped the resume, which a request that was cut off has brought nearer."""
        return self.charged and self.state.ended is not None and self.state.ended.outcome == Outcome.BUDGET

    def observe(self, record: Record, state: State) -> None:
        if isinstance(record.event, Noted) and record.event.kind == "resumed":
            self.settled = state.spend
            self.unsure = self.unsure or (self.charged and self.whole.limited)
        if isinstance(record.event, Said) and record.event.role == "tool":
            self._answered(record.event.tool_call_id or "", record.event.status)
        self.cut = self.cut or isinstance(record.event, Compacted)
        self.asked += isinstance(record.event, Requested) and record.event.purpose == "step"
        self.state = state

    def _answered(self, call_id: str, status: str | None) -> None:
        self.interrupted = self.interrupted or (status == "interrupted" and call_id in self.given.in_flight)
        known = (r.event.tool_call_id for r in self.whole.records[: self.given.seq] if isinstance(r.event, Said))
        if call_id in known:
            self.faults.append(f"the call {call_id} was answered again")

    def beyond(self, asked: str) -> NoReturn:
        """What is asked for is not on record: a fault, and raises ReplayMismatch; or a signal stops the run where it has come to the end of the record."""
        if self.model.left or self.world.left or not self.whole.open(self.given.seq):
            self.faults.append(asked)
            raise ReplayMismatch(asked)
        self.stopped = True
        raise Interrupted(signal.SIGTERM)

    def accepts(self, recorded: Recorded, request: ModelRequest) -> bool:
        """Whether this may stand for the recorded request. The first one may differ in the note on an interrupted call; later ones
        in the numbers of records too, as those of a resume are higher."""
        if recorded.purpose != request.purpose:
            return False
        self.shift = self.state.seq - recorded.seq
        self.unsure = self.unsure or self.interrupted
        due = any(isinstance(r.event, Compacted) for r in self.whole.records[self.given.seq : recorded.seq])
        if request.purpose != "step" or (self.unsure and (self.asked > 1 or self.cut or due)):
            return True  # another size of the context lets it be cut elsewhere
        now, then = json.loads(request.body)["messages"], recorded.messages()
        if self.interrupted:
            now = [m if n.get("content") == prompts.INTERRUPTED else n for m, n in zip(then, now, strict=False)] + now[
                len(then) :
            ]
        if self.asked > 1 or self.cut:
            return _without_numbers(now) == _without_numbers(then)
        return bool(now == then)


def _without_numbers(messages: list[dict[str, Any]]) -> str:
    return re.sub(r"\d+", "#", compact_json(messages))


class _Answers:
    """The recorded model. Its summaries cite records by the numbers that they have now."""

    def __init__(self, resume: Resume) -> None:
        self._resume = resume

    def due(self, request: ModelRequest) -> bool:
        return self._resume.model.due(request)

    def complete(self, request: ModelRequest) -> Reply:
        try:
            reply = self._resume.model.complete(request)
        except ReplayMismatch as error:
            if request.purpose == "step":
                self._unanswered(request)
                self._resume.beyond(str(error))
            if not self._resume.unsure:
                raise
            self._resume.extra = True
            return Reply(Message("assistant", _SUMMARY), "stop")
        said = reply.message
        if request.purpose == "step" or said is None or said.content is None:
            return reply
        text = summaries.shifted(said.content, self._resume.given.seq, self._resume.shift)
        return replace(reply, message=replace(said, content=text))

    def _unanswered(self, request: ModelRequest) -> None:
        """A fault where the recorded run sent another request last, which got no answer."""
        found, sent = self._resume, unanswered(self._resume.whole.records)
        if found.model.left or sent is None:
            return
        seq, digest = sent
        if digest != request.digest and not found.accepts(
            Recorded(digest, Reply(None), partial(found.whole.messages, seq), seq=seq), request
        ):
            self._resume.faults.append(f"the request that got no answer was another one (record {seq})")


def _resumed(whole: Whole, given: int, cut: Cut, resume: Callable[..., object]) -> Resume | str:
    """The cut, resumed; or why it could not be."""
    log = whole.folder / names.SESSIONS / f"{_NAME}.jsonl"
    log.parent.mkdir(exist_ok=True)
    for old in log.parent.glob(f"{_NAME}.*"):
        old.unlink()
    last = whole.lines[cut.record - 1]
    end = {"half": last[: len(last) // 2], "unended": last, "whole": last + b"\n"}[cut.where]
    log.write_bytes(b"".join(line + b"\n" for line in whole.lines[: cut.record - 1]) + end)
    (whole.folder / names.SETTINGS).write_text(json.dumps(settings(whole.end.settings)), encoding="utf-8")
    found = Resume(whole, whole.states[given], answered(whole.records[:given]))
    found.world = RecordedWorld(whole, given, found.beyond)
    found.model = replay(whole.records, found.given.replies, whole.messages, accepts=found.accepts)
    model, until = _Answers(found), whole.end.options.get("until")
    ask = api.Ask(flags=whole.flags(), approve="ask", until=until if isinstance(until, str) else None)
    front = api.Front(observers=(found.observe,), human=found.world)
    environ = {"XDG_CONFIG_HOME": str(whole.folder / "none")}
    seams = api.Seams(models=lambda name: model, world=found.world)
    try:
        resume(_NAME, ask, front, cwd=whole.folder, environ=environ, seams=seams)
    except Interrupted:  # under `finally`, where the record ends too
        return found
    except PlanrunError as error:
        return f"{type(error).__name__}: {error}"
    return found


def _judged(whole: Whole, given: int, cut: Cut, resume: Callable[..., object]) -> Cut:
    found = _resumed(whole, given, cut, resume)
    if isinstance(found, str):
        return replace(cut, faults=(found,))
    faults = [*found.faults, *outcome(whole, found), *effects(whole, given, found), *totals(whole, given, found)]
    return replace(cut, faults=tuple(faults), executions=sum(found.world.executed.values()))
