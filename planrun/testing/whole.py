"""A recorded session in a folder of its own, and the runs that it consists of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from planrun import api
from planrun.core import budget, context, names
from planrun.core.events import Ended, Noted, Session, StepChanged
from planrun.core.messages import compact_json
from planrun.core.records import Record
from planrun.core.state import State
from planrun.errors import Outcome
from planrun.session.following import follow
from planrun.session.reader import GENESIS, line_digest
from planrun.settings import Flags

# What ended such a run is not on record: a resume does not meet it again.
_FROM_OUTSIDE = (Outcome.INTERRUPTED, Outcome.PROVIDER, Outcome.CONFIG, Outcome.TIME_LIMIT)


@dataclass(frozen=True, slots=True)
class Whole:
    """A session up to the end of one of its runs, moved to a folder: its lines, its records, the state before each and after the
    last. The run begins behind record `began`, and what a human changed before it went on ends with record `asked`."""

    folder: Path
    lines: list[bytes]
    records: list[Record]
    states: list[State]
    began: int = 0
    asked: int = 0

    @property
    def end(self) -> State:
        return self.states[-1]

    @property
    def final(self) -> frozenset[str]:
        """The steps under `finally`."""
        return frozenset(s.id for s in self.end.need_plan().steps if s.final)

    @property
    def worked(self) -> int:
        """How many records there are until all work is done, and only what stands under `finally` follows."""
        return self.end.worked

    @property
    def killed(self) -> bool:
        """Whether the run has no end."""
        return self.end.ended is None

    @property
    def cut_short(self) -> bool:
        """Whether something from outside ended the run."""
        return self.end.ended is None or self.end.ended.outcome in _FROM_OUTSIDE

    def open(self, given: int) -> bool:
        """Whether a resume of the first `given` records may want more than there is: it begins something anew, or something from
        outside ended the run."""
        return self.anew(given) or self.cut_short

    def anew(self, given: int) -> bool:
        """Whether a resume of the first `given` records is another run, or tries a step again that the run ended with as failed."""
        steps = zip(self.end.need_plan().steps, self.states[given].steps, self.end.steps, strict=True)
        tried = any(now.status == then.status == "failed" and s.on_failure == "stop" and not s.final for s, now, then in steps)
        return tried or given == len(self.records)

    def messages(self, seq: int) -> list[dict[str, Any]]:
        """What the request of record `seq` carried."""
        return [m.wire() for m in context.messages(self.states[seq - 1].view)]

    @property
    def limited(self) -> bool:
        """Whether what requests cost is limited."""
        plan = self.end.need_plan()
        limits = (budget.limits_in_force(self.end), *(s.limits for s in plan.steps))
        return any(most.tokens is not None or most.cost_usd is not None for most in limits)

    def flags(self) -> Flags:
        """What only the command line can say."""
        public: dict[str, Any] = self.end.settings
        limits = public.get("limits") or {}
        return Flags(
            window=public.get("window"),
            max_cost=limits.get("cost_usd"),
            max_tokens=limits.get("tokens"),
            max_turns=limits.get("turns"),
        )


def runs(whole: Whole) -> Iterator[Whole]:
    """The session at the end of each of its runs; the last one may have none."""
    ends = [one.seq for one, other in pairwise(whole.records) if isinstance(one.event, Ended) or _resumes(other)]
    for began, end in zip([0, *ends], [*ends, len(whole.records)], strict=True):
        by_hand = list(takewhile(_before_it_goes_on, whole.records[began:end]))
        changed = [r.seq for r in by_hand if not isinstance(r.event, Noted)] if began else []
        asked = changed[-1] if changed else began
        yield replace(
            whole,
            lines=whole.lines[:end],
            records=whole.records[:end],
            states=whole.states[: end + 1],
            began=began,
            asked=asked,
        )


def _resumes(record: Record) -> bool:
    return isinstance(record.event, Noted) and record.event.kind == "resumed"


def _before_it_goes_on(record: Record) -> bool:
    match record.event:
        case Noted() | Session() | StepChanged(status="todo" | "skipped"):
            return True
    return False


def moved(path: Path, folder: Path) -> Whole:
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
    log = folder / "whole.jsonl"
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    whole = Whole(workspace, lines, [], [State()])
    for record, state in follow(log, api.read_plan):
        whole.records.append(record)
        whole.states.append(state)
    return whole


def settings(public: dict[str, Any]) -> dict[str, Any]:
    """The settings of a record as the file that would give them; what only the command line can say is in `Whole.flags`."""
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
