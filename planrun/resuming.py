"""Going on with a session: its log opened, folded and checked, and what a resume changes before it goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from planrun import planfile
from planrun.building import as_recorded, masker
from planrun.core import pairing, seen
from planrun.core.events import FORMAT, Event, Noted, Session, StepChanged
from planrun.core.fold import apply
from planrun.core.plan import Json, Plan, Sandbox
from planrun.core.records import Record
from planrun.core.state import State
from planrun.counting import counter
from planrun.errors import ConfigError, PlanChanged, SessionDamaged, UsageError
from planrun.front import Ask
from planrun.planfile import read_plan
from planrun.session import lock, snapshot
from planrun.session import log as logs
from planrun.session.following import folded
from planrun.session.reader import Reader
from planrun.settings import Flags, Settings, resolve

# Settings that hold for the session once they were named by hand; what was said of the model and of `context` stands beside them.
_KEPT = ("base_url", "window", "limits.cost_usd", "limits.tokens", "limits.time", "limits.turns")


@dataclass(frozen=True, slots=True)
class Opened:
    """A log that is locked, and the state that it folds to. Nothing was appended yet."""

    path: Path
    file: BinaryIO
    state: State
    reader: Reader

    def writable(self, plan: Plan, settings: Settings, environ: Mapping[str, str], notice: Callable[[str], None]) -> logs.Log:
        """The log, ready to append. A torn last line is cut off and `notice` hears of it; what to record of that is `sealed`."""
        if self.reader.torn:
            notice(f"the last line of {self.path.name} was torn by a crash; it was never in force and is dropped")
        return logs.continue_at(self.file, self.path, self.reader, self.state.timestamp, masker(plan, settings, environ))

    def sealed(self) -> tuple[Noted, ...]:
        torn = self.reader.torn
        return (Noted("sealed", f"dropped a torn last line of {len(torn)} bytes"),) if torn else ()


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """The log of `path`, locked and folded, by way of its snapshot where that one fits. Raises SessionBusy, SessionDamaged."""
    file = logs.open_locked(path)
    try:
        state, reader = snapshot.load(path, file, read_plan)
        try:
            state = folded(path, read_plan, reader, state)
        except OSError as error:
            raise SessionDamaged(f"cannot read the session log {path}: {error.strerror or error}") from error
        yield Opened(path, file, state, reader)
    finally:
        lock.release(file, path)


def header_of(state: State, path: Path) -> tuple[Session, Plan]:
    """The session record in force and its plan. Raises SessionDamaged where the log has none that this version reads."""
    if state.header is None or state.plan is None:
        raise SessionDamaged(
            f"{path} has no session record, as if it was killed when it began; there is nothing to resume: run the plan again",
            1,
        )
    if state.header.format != FORMAT:
        raise SessionDamaged(f"{path} has format {state.header.format}; this planrun reads format {FORMAT}", 1)
    return state.header, state.plan


def settings_of(state: State, path: Path, flags: Flags, environ: Mapping[str, str]) -> Settings:
    """The settings in force now where the session works; what its last run was given by hand still holds, so that no limit and
    no endpoint is lost with the flag that named it. Raises ConfigError where that folder is gone or something that they name is
    not there."""
    header, plan = header_of(state, path)
    home = Path(header.cwd)
    if not home.is_dir():
        raise ConfigError(f"session {path.stem} works in {home}, which is not there any more")
    settings = as_recorded(resolve(home, flags, environ, plan, _asked(state)), Path(header.plan_path))
    counter(settings.compaction.estimator, header.model)
    return settings if settings.sandbox else replace(settings, sandbox=_sandbox_of(header))


def _asked(state: State) -> dict[str, Json]:
    """What the last run was given by hand, by the names of settings."""
    names, found = state.options.get("asked"), {}
    for name in names if isinstance(names, list) else ():
        value: Json = state.settings
        for part in str(name).split("."):
            value = value.get(part) if isinstance(value, dict) else None
        found[str(name)] = value
    return found


def _sandbox_of(header: Session) -> Sandbox | None:
    """What the session was begun in: where nothing asks for a sandbox any more, it stays."""
    match header.settings.get("sandbox"):
        case {"network": network}:
            return Sandbox(network=network is True)
    return None


def resumed(state: State, settings: Settings, ask: Ask) -> Noted:
    """The note that a resume begins with: what is asked of this run, and the settings in force now."""
    options = options_of(ask, settings)
    options.setdefault("until", None)
    model = settings.model if settings.asked("model") else None
    return Noted(
        "resumed",
        f"resumed by pid {os.getpid()}",
        options=options,
        settings=settings.public(),
        model=model or state.model or None,
    )


def options_of(ask: Ask, settings: Settings) -> dict[str, Json]:
    options: dict[str, Json] = {"approve": ask.approve}
    if ask.until:
        options["until"] = ask.until
    values: dict[str, Json] = {"model": settings.model, "context": settings.context}
    options |= {name: values[name] for name in settings.asked(*values)}
    if asked := settings.asked(*_KEPT):
        options["asked"] = list(asked)
    return options


def changes(note: Noted, state: State, header: Session, plan: Plan, ask: Ask) -> list[Event]:
    """What a resume that begins with `note` changes before it goes on: an adopted plan, steps to skip or to run again."""
    events: list[Event] = []
    again: set[str] = set()
    loaded = _plan_now(header) if ask.rerun != "none" else None
    if loaded is not None and loaded.digest != header.plan_digest:
        if ask.rerun is None:
            raise PlanChanged(
                f"{header.plan_path} is not the plan that this session recorded. `--rerun none` goes on with the recorded plan, "
                "`--rerun stale` takes the new one and runs again what changed in it."
            )
        # An adopted plan comes with what is asked of this run, not of the first one.
        now = replace(header, options={**state.options, **note.options}, settings=note.settings, model=note.model or "")
        events.append(replace(now, plan=loaded.text, plan_digest=loaded.digest, files=loaded.files))
        if ask.rerun == "stale":
            # The step under way saw the old plan, so it starts anew.
            under_way = {plan.steps[state.under_way].id} if state.under_way is not None else set()
            again |= _stale(plan, loaded.plan) | under_way
        plan = loaded.plan
    if ask.rerun not in (None, "none", "stale"):
        again.add(str(ask.rerun))
    if ask.start_from:
        again |= {s.id for s in plan.steps[plan.index[ask.start_from] :]}
    events += _step_changes(state, plan, ask.skip, again)
    return events


def _step_changes(state: State, plan: Plan, skip: tuple[str, ...], again: set[str]) -> Iterator[Event]:
    for step in plan.steps:
        old = state.plan.index.get(step.id) if state.plan else None
        now = state.steps[old] if old is not None else None
        if step.id in skip:
            yield StepChanged(step.id, "skipped", now.attempt if now else 0, "skipped by hand")
        elif step.id in again and now is not None and now.status != "todo":
            yield StepChanged(step.id, "todo", now.attempt, "to be run again")


def _plan_now(header: Session) -> planfile.LoadedPlan | None:
    path = Path(header.plan_path)
    return planfile.load(path) if path.exists() else None


def _stale(old: Plan, new: Plan) -> set[str]:
    """Steps whose definition changed, and every later one: it may have used what they left."""
    for position, step in enumerate(new.steps):
        if step.id not in old.index or old.step(step.id) != step:
            return {s.id for s in new.steps[position:]}
    return set()


def check_messages(events: Iterable[Event], state: State, path: Path) -> None:
    """Raises SessionDamaged where the messages that the model would get after these events are a list that no endpoint takes."""
    for at, event in enumerate(events, 1):
        state = apply(state, Record(state.seq + at, state.timestamp, event), read_plan)
    wrong = pairing.faults(state.view, resting=True)
    if wrong:
        step = f"`planrun resume {path.stem} --rerun {seen.step_of(state).id}` begins the step anew, "
        raise SessionDamaged(
            f"{path}: {wrong[0]}; no endpoint takes such a list. Nothing was changed. "
            f"{step}`planrun doctor {path.stem} --repair` makes a copy that can go on."
        )


def check_steps(plan: Plan, ids: tuple[str | None, ...]) -> None:
    for step_id in ids:
        if step_id is not None and step_id not in plan.index:
            raise UsageError(f"the plan has no step {step_id!r}; its steps are: {', '.join(plan.index)}")
