"""The crash matrix of a recorded session: its log cut everywhere, each cut resumed, each resume compared with the whole run.

    for cut in matrix(Path(".thclaws/sessions/20260131-0915.jsonl")):
        assert not cut.faults, f"{cut}: {cut.faults}"

Nothing of the session is run: its model, tools, commands, checks, hooks and people answer what is on record (`recorded`), in
a folder of its own. So anybody can test a plan with a session that it made. The time it takes grows with the square of the
number of records, as each cut is resumed to the end."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from planrun import api
from planrun.core import context, names, prompts, summaries
from planrun.core.events import Compacted, Noted, Requested, Said
from planrun.core.messages import Message, compact_json
from planrun.core.records import Record
from planrun.core.state import Spend, State
from planrun.errors import PlanrunError, ReplayMismatch, SessionDamaged
from planrun.models.base import ModelRequest, Reply
from planrun.models.replay import Recorded, ReplayModel
from planrun.replaying import replay
from planrun.session.following import follow
from planrun.session.reader import GENESIS, line_digest
from planrun.settings import Flags
from planrun.testing.comparing import answered, effects, outcome, totals
from planrun.testing.recorded import RecordedWorld

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


@dataclass(slots=True)
class Whole:
    """The recorded session, moved to a folder: its lines, its records, the state after each."""

    folder: Path
    path: Path
    lines: list[bytes]
    records: list[Record]
    states: list[State]
    end: State = field(default_factory=State)

    def messages(self, seq: int) -> list[dict[str, Any]]:
        """What the request of record `seq` carried."""
        return [m.wire() for m in context.messages(self.states[seq - 1].view)]


def matrix(path: Path, only: Container[int] | None = None) -> Iterator[Cut]:
    """Every cut of the log at `path` in its order, or those at some records, with its faults. Raises SessionDamaged where it cannot
    be read."""
    with tempfile.TemporaryDirectory(prefix="planrun-crash-") as made:
        whole = _moved(path, Path(made).resolve())
        last = _resumed(whole, len(whole.lines), "whole")
        if isinstance(last, str):
            raise SessionDamaged(f"{path}: the whole session cannot be resumed from its own record: {last}")
        whole.end = last.state
        for number, record in enumerate(whole.records, 1):
            for where in WHERE if only is None or number in only else ():
                if number > 1 or where != "half":  # half a header is no session
                    yield _judged(whole, Cut(number, where, record.event.type))


def _moved(path: Path, folder: Path) -> Whole:
    """The log with another working directory: nothing of the real one is looked at."""
    workspace = folder / "workspace"
    (workspace / names.FOLDER).mkdir(parents=True)
    lines, prev = [], GENESIS
    for line in path.read_bytes().split(b"\n"):
        try:
            body: dict[str, Any] = json.loads(line)
        except ValueError:
            continue  # a torn end; anything else `follow` names
        if body.get("type") == "session":
            body |= {"cwd": str(workspace), "plan_path": str(workspace / "plan.yaml")}
        lines.append(compact_json(body | {"prev": prev}).encode("utf-8"))
        prev = line_digest(lines[-1])
    moved = folder / "whole.jsonl"
    moved.write_bytes(b"".join(line + b"\n" for line in lines))
    whole = Whole(workspace, moved, lines, [], [State()])
    for record, state in follow(moved, api.read_plan):
        whole.records.append(record)
        whole.states.append(state)
    settings = _settings(whole.states[-1].settings)
    (workspace / names.SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
    return whole


def _settings(public: dict[str, Any]) -> dict[str, Any]:
    """The settings of a record as the file that would give them; what only the command line can say is `_flags`."""
    camel = {
        "model": public.get("model"),
        "summaryModel": public.get("summary_model"),
        "planContextStrategy": public.get("context"),
        "modelOverrides": {name: _camel(row) for name, row in (public.get("model_overrides") or {}).items()},
        "permissions": public.get("permissions"),
        "hooks": {event: [_camel(hook) for hook in hooks] for event, hooks in (public.get("hooks") or {}).items()},
        "compaction": _camel(public.get("compaction") or {}),
    }
    return {key: value for key, value in camel.items() if value is not None}


def _camel(table: dict[str, Any]) -> dict[str, Any]:
    from pydantic.alias_generators import to_camel

    return {to_camel(key): value for key, value in table.items() if value is not None}


def _flags(public: dict[str, Any]) -> Flags:
    limits = public.get("limits") or {}
    return Flags(
        window=public.get("window"),
        max_cost=limits.get("cost_usd"),
        max_tokens=limits.get("tokens"),
        max_turns=limits.get("turns"),
    )


@dataclass(slots=True)
class Resume:
    """A resume as it was watched: how it ended, what it asked to run, what was wrong with its first request."""

    given: State
    records: Sequence[Record]  # of the whole session
    unsure: bool  # what the last answer cost is lost, and what it taught of the size of tokens
    state: State = field(default_factory=State)
    world: RecordedWorld | None = None
    faults: list[str] = field(default_factory=list)
    interrupted: bool = False
    asked: int = 0
    cut: bool = False  # the context was cut since: numbers of records in it may differ
    extra: bool = False  # a summary was asked for that the recording has not, as the context has another size
    shift: int = 0  # how much higher the numbers of records are than in the recording
    settled: Spend = field(default_factory=Spend)  # after the note that begins it, which counts a request that was cut off

    def observe(self, record: Record, state: State) -> None:
        if isinstance(record.event, Noted) and record.event.kind == "resumed":
            self.settled = state.spend
        self.interrupted = self.interrupted or (isinstance(record.event, Said) and record.event.status == "interrupted")
        self.cut = self.cut or isinstance(record.event, Compacted)
        self.asked += isinstance(record.event, Requested) and record.event.purpose == "step"
        self.state = state

    def accepts(self, recorded: Recorded, request: ModelRequest) -> bool:
        """Whether this may stand for the recorded request. The first one may differ in the note on an interrupted call; later ones
        in the numbers of records too, as those of a resume are higher."""
        if recorded.purpose != request.purpose:
            return False
        self.shift = self.state.seq - recorded.seq
        self.unsure = self.unsure or self.interrupted
        due = any(isinstance(r.event, Compacted) for r in self.records[self.given.seq : recorded.seq])
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

    def __init__(self, model: ReplayModel, resume: Resume) -> None:
        self._model, self._resume = model, resume

    def due(self, request: ModelRequest) -> bool:
        return self._model.due(request)

    def complete(self, request: ModelRequest) -> Reply:
        try:
            reply = self._model.complete(request)
        except ReplayMismatch:
            if request.purpose == "step" or not self._resume.unsure:
                raise
            self._resume.extra = True
            return Reply(Message("assistant", _SUMMARY), "stop")
        said = reply.message
        if request.purpose == "step" or said is None or said.content is None:
            return reply
        text = summaries.shifted(said.content, self._resume.given.seq, self._resume.shift)
        return replace(reply, message=replace(said, content=text))


def _resumed(whole: Whole, number: int, where: Where) -> Resume | str:
    """The cut, resumed; or why it could not be."""
    given = number - (where == "half")
    log = whole.folder / names.SESSIONS / f"{_NAME}.jsonl"
    log.parent.mkdir(exist_ok=True)
    for old in log.parent.glob(f"{_NAME}.*"):
        old.unlink()
    last = whole.lines[number - 1]
    end = {"half": last[: len(last) // 2], "unended": last, "whole": last + b"\n"}[where]
    log.write_bytes(b"".join(line + b"\n" for line in whole.lines[: number - 1]) + end)
    found = Resume(whole.states[given], whole.records, answered(whole.records[:given]))
    found.world = RecordedWorld(whole.records, given)
    recorded = replay(whole.records, whole.states[given].replies, whole.messages, accepts=found.accepts)
    model = _Answers(recorded, found)
    public, options = whole.states[-1].settings, whole.states[-1].options
    until = options.get("until")
    ask = api.Ask(flags=_flags(public), approve="ask", until=until if isinstance(until, str) else None)
    front = api.Front(observers=(found.observe,), human=found.world)
    environ = {"XDG_CONFIG_HOME": str(whole.folder / "none")}
    seams = api.Seams(models=lambda name: model, world=found.world)
    try:
        api.resume(_NAME, ask, front, cwd=whole.folder, environ=environ, seams=seams)
    except PlanrunError as error:
        return f"{type(error).__name__}: {error}"
    return found


def _judged(whole: Whole, cut: Cut) -> Cut:
    found = _resumed(whole, cut.record, cut.where)
    if isinstance(found, str):
        return replace(cut, faults=(found,))
    given = cut.record - (cut.where == "half")
    faults = [*found.faults, *outcome(whole.end, found.state), *effects(whole, given, found), *totals(whole, given, found)]
    return replace(cut, faults=tuple(faults), executions=sum(found.world.executed.values()) if found.world else 0)
