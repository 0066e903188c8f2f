"""What is done to a stopped session by hand: making its context smaller."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from planrun import building, resuming
from planrun.core import budget, context
from planrun.core.actions import Summarise
from planrun.core.edits import Edit, Insert
from planrun.core.events import Compacted, Noted, Session
from planrun.core.seen import step_of
from planrun.core.state import State
from planrun.core.strategies import manual
from planrun.errors import NeedsHuman
from planrun.front import Front, Seams
from planrun.planfile import read_plan
from planrun.runner import by_hand, hooking
from planrun.runner.loop import Runner
from planrun.runner.signals import Signals
from planrun.runner.summarising import summariser
from planrun.session import snapshot
from planrun.session.following import latest
from planrun.session.log import Log
from planrun.settings import Flags, Settings
from planrun.tools.process import kill_all


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a compaction by hand is asked for: how many messages stay at the end, and whether a small context counts too."""

    keep: int = manual.KEEP
    force: bool = False


@dataclass(frozen=True, slots=True)
class Compaction:
    """`compacted` is the record, or what it would be with digests in the place of summaries; without one `why` says why not."""

    compacted: Compacted | None
    why: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """The texts that take the place of messages."""
        return tuple([e.text for e in (self.compacted.edits if self.compacted else ()) if isinstance(e, Insert)])


def preview(path: Path, wanted: Wanted) -> Compaction:
    """What `compact` would do, as far as that can be told without a model. Nothing is written. Raises NeedsHuman."""
    state = latest(path, read_plan)
    resuming.header_of(state, path)
    return _planned(state, path, wanted)[1]


def compact(
    path: Path, wanted: Wanted, front: Front, *, flags: Flags, environ: Mapping[str, str], seams: Seams = Seams()
) -> Compaction:
    """Put summaries in the place of older messages, by one record. Where there is no gain nothing is written. Raises NeedsHuman
    while somebody has to answer something first, SessionBusy while the session is being run."""
    with resuming.opened(path) as session:
        state = session.state
        header, plan = resuming.header_of(state, path)
        settings = resuming.settings_of(state, path, flags, environ)
        actions, planned = _planned(state, path, wanted)
        if planned.compacted is None:
            return planned
        for warning in settings.warnings:
            front.notice(warning)
        log = session.writable(plan, settings, environ, front.notice)
        with acting(log, state, header, settings, front, environ, seams) as runner:
            try:
                opening = Noted("resumed", f"opened by pid {os.getpid()} to be compacted by hand", settings=settings.public())
                for event in (opening, *session.sealed()):
                    runner.append(event)
                model = asks_model(runner.state)  # by the settings of today
                return _performed(runner, tuple([replace(a, model=model) for a in actions]))
            finally:
                if state.ended is not None:  # it still stands where it stood
                    runner.append(state.ended)
                runner.world.log.sync()


def _planned(state: State, path: Path, wanted: Wanted) -> tuple[tuple[Summarise, ...], Compaction]:
    """The summaries that are worth it, no model being asked, and what they come to."""
    unready = manual.unready(state)
    if unready is not None:
        raise NeedsHuman(
            f"session {path.stem} cannot be compacted now: {unready}; `planrun resume {path.stem}` goes on from there"
        )
    count = context.count(state.view)
    if count < manual.FEWEST and not wanted.force:
        return (), Compaction(None, f"the context has {count} messages only; --force compacts it all the same")
    step = step_of(state)
    actions: list[Summarise] = []
    edits: list[Edit] = []
    for action in manual.summaries(state, step.id, wanted.keep):
        fit = by_hand.with_digest(state, action)
        if fit:
            actions.append(action)
            edits += fit
    if not edits:
        return (), Compaction(None, "there is nothing to gain: what may go is no longer than its summary")
    return tuple(actions), Compaction(by_hand.record_of(state, step.id, tuple(edits)))


def asks_model(state: State) -> bool:
    """Whether a model may be asked for a summary: there is one, which is no recording, and no limit is reached."""
    step = step_of(state)
    name = summariser(state, step.id)
    return bool(name) and not name.startswith("replay:") and budget.exceeded(state, step) is None


def _performed(runner: Runner, actions: tuple[Summarise, ...]) -> Compaction:
    found, why = None, ""
    for event in by_hand.compact(runner.world, runner.state, actions):
        runner.append(event)
        if isinstance(event, Compacted):
            found = event
            for hooked in hooking.after(runner.world, runner.state, event):
                runner.append(hooked)
        elif isinstance(event, Noted):
            why = event.text
    return Compaction(found, "" if found else why)


@contextmanager
def acting(
    log: Log, state: State, header: Session, settings: Settings, front: Front, environ: Mapping[str, str], seams: Seams
) -> Iterator[Runner]:
    """A runner that appends to `log`, for what is done by hand."""
    with Signals(kill_all) as signals:
        world = building.world(
            seams.journal(log),
            log.path,
            header,
            settings,
            environ,
            models=seams.models or building.Models(settings, header, state.replies),
            signals=signals,
            front=front,
        )
        front.opened(log.path)
        yield Runner(seams.world(world), state, (*front.observers, snapshot.Keeper(log).observe))
