"""A new session that goes on from a summary of another: its plan, its finished steps, its settings, a fresh context."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from planrun import building, resuming
from planrun.core import context, prompts, summaries
from planrun.core.actions import Summarise
from planrun.core.events import Ended, Event, LimitNeared, Said, Session, StepChanged
from planrun.core.expressions import render
from planrun.core.messages import Message
from planrun.core.plan import Plan
from planrun.core.scope import scope_of
from planrun.core.seen import step_of
from planrun.core.state import State
from planrun.errors import EXIT_CODES, Outcome, SessionBusy, SessionDamaged
from planrun.front import Front, Seams
from planrun.manual import acting, asks_model
from planrun.planfile import read_plan
from planrun.runner.loop import Runner
from planrun.runner.summarising import source_of, written
from planrun.session import lock, snapshot
from planrun.session import log as logs
from planrun.session.following import latest
from planrun.session.store import Store, new_id
from planrun.settings import Flags

_HALF = ".fork"  # what is being made is no session yet: half of one, resumed, would do finished steps again
_LEVEL = 2  # a whole session is summed up at the length of a summary of summaries
_IDS = re.compile(r'ids="(\d+(?:-\d+)?)"')  # what notes of the old session say of themselves
_WORTH = 200  # tokens; less than that is told by the digest


def fork(
    path: Path, session: str | None, front: Front, *, flags: Flags, environ: Mapping[str, str], seams: Seams = Seams()
) -> tuple[Path, State]:
    """Start a session named `session`, to be resumed; returns its log and its state. The one at `path` is only read."""
    old = latest(path, read_plan)
    header, plan = resuming.header_of(old, path)
    settings = resuming.settings_of(old, path, flags, environ)
    target = building.free_path(Store(path.parent), new_id() if session is None else session)
    for warning in settings.warnings:
        front.notice(warning)
    _sweep(path.parent)
    half = target.with_name(f".{target.stem}{_HALF}")
    log = logs.create(half, building.masker(plan, settings, environ))
    try:
        new = _header(old, header, target.stem, path.stem)
        with acting(log, State(), new, settings, front, environ, seams) as runner:
            _begin(runner, old, new, plan)
            runner.world.log.sync()
            logs.name(half, target)
            return target, runner.state
    finally:
        with suppress(OSError):  # or else the next fork removes it
            _remove(half)
        log.close()


def _sweep(folder: Path) -> None:
    """Remove what forks have left that were killed, as far as that can be done."""
    for half in folder.glob(f".*{_HALF}"):
        with suppress(SessionBusy, SessionDamaged, OSError):
            file = logs.open_locked(half)
            try:
                _remove(half)
            finally:
                lock.release(file, half)


def _remove(half: Path) -> None:
    for path in (half, snapshot.path_of(half)):
        path.unlink(missing_ok=True)


def _header(old: State, header: Session, name: str, parent: str) -> Session:
    return replace(
        header,
        session=name,
        parent=parent,
        model=old.model,
        settings=old.settings,
        options=old.options,
        tools=building.tool_sizes(),
    )


def _begin(runner: Runner, old: State, new: Session, plan: Plan) -> None:
    """All that the new session starts with. Its last record says that it was not run yet."""
    for event in (new, *_taught(old), *_carried(old, plan)):
        runner.append(event)
    told = _summary(runner, old, new.parent)
    for event in _under_way(old, plan):  # from here on its time counts
        runner.append(event)
    for event in _conversation(runner.state, new.parent, told) if told else ():
        runner.append(event)
    why = f"forked from session {new.parent}; nothing was run yet"
    runner.append(Ended(Outcome.FINISHED, EXIT_CODES[Outcome.FINISHED], why, partial=True))


def _summary(runner: Runner, old: State, parent: str) -> str:
    """The old context summed up, by a model where one may be asked; "" where nothing was said."""
    said = [e for e in context.entries(old.view) if e.message.role != "system"]
    if not said:
        return ""
    first, last = min(e.span[0] for e in said), max(e.span[1] for e in said)
    model = asks_model(runner.state) and sum(e.raw for e in said) * old.factor >= _WORTH
    texts = []
    while said:  # what is too long for one summary gets several
        action = Summarise(step_of(old).id, "manual", said[0].span[0], last, _LEVEL, model)
        source = source_of(old, action)
        text = _recorded(runner, written(runner.world, old, action, source))
        texts.append(text or summaries.digest(source.entries, source.target(summaries.levels(_LEVEL)[0])))
        said = [e for e in said if e.span[0] > source.span[1]]
    head = f"Summary of session {parent}, records {first} to {last}, whose numbers it cites"
    body = _IDS.sub(rf'ids="{parent}:\1"', "\n\n".join(texts))
    return f'[{head}; ExpandHistory(ids="{parent}:{first}-{last}") gives the originals]\n{body}'


def _recorded(runner: Runner, making: Generator[Event, None, str | None]) -> str | None:
    """Append all that is yielded, and return what comes of it."""
    while True:
        try:
            runner.append(next(making))
        except StopIteration as over:
            made: str | None = over.value
            return made


def _taught(old: State) -> Iterator[Event]:
    """The windows that endpoints have taught."""
    for model, window in old.windows.items():
        yield LimitNeared("window", 0, window, model=model, purpose="summary")


def _carried(old: State, plan: Plan) -> Iterator[Event]:
    """Steps that have ended, as they stand, with what their checks compare against. Those of `finally` run again, at the end of
    the new session."""
    for step, now in zip(plan.steps, old.steps, strict=True):
        if step.final or now.status in ("todo", "blocked", "in_progress"):
            continue
        if now.attempt:
            yield StepChanged(step.id, "in_progress", now.attempt, baseline=now.baseline)
        yield StepChanged(step.id, now.status, now.attempt, now.note, now.output, now.reason, files=now.files)


def _under_way(old: State, plan: Plan) -> Iterator[Event]:
    """The step that is under way goes on as its next attempt."""
    if old.under_way is not None and not plan.steps[old.under_way].final:
        now = old.steps[old.under_way]
        step = plan.steps[old.under_way].id
        yield StepChanged(step, "in_progress", now.attempt + 1, now.note, baseline=now.baseline)


def _conversation(state: State, parent: str, told: str) -> Iterator[Event]:
    """The active context of the new session: the system message, the goal, the summary."""
    goal = render(state.need_plan().goal, scope_of(state)).strip()
    asked = f"Goal: {goal}\n\nThis goes on from session {parent}; what was done there is summed up next."
    yield Said.of(Message("system", prompts.system(state)), "runner", None, 0)
    yield Said.of(Message("user", asked), "user", None, 0)
    yield Said.of(Message("assistant", told), "runner", None, 0)
