"""The composition root, and what a program that embeds planrun calls: run a plan, resume a session, look at one.

    asked = api.Ask(params={"package": "httpx"}, flags=api.Flags(max_tokens=500_000))
    found = api.run(Path("plan.yaml"), asked, api.Front(), cwd=Path.cwd(), environ=os.environ)
    print(found.state.ended.outcome, found.state.ended.output)

Nothing is printed and no environment is read but the one that is given. What keeps a run from starting is raised as a
PlanrunError; how one that has started came to its end is its last record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from planrun import building, planfile, resuming
from planrun.building import all_tools, masker
from planrun.core import room
from planrun.core.budget import limits_in_force
from planrun.core.events import FORMAT, Event, Noted, Session
from planrun.core.plan import Plan
from planrun.core.state import State
from planrun.counting import counter
from planrun.errors import ConfigError, SessionDamaged, named
from planrun.front import Ask, Front, Result, Seams
from planrun.masking import inputs
from planrun.models.base import Model
from planrun.params import typed
from planrun.planfile import read_plan
from planrun.runner.loop import Runner
from planrun.runner.signals import Signals
from planrun.runner.world import Price
from planrun.session import log as logs
from planrun.session import snapshot
from planrun.session.following import latest
from planrun.session.store import Store, new_id
from planrun.settings import Flags, Settings, resolve
from planrun.tools import scratch
from planrun.tools.process import kill_all
from planrun.tools.sandbox import Bubblewrap

__all__ = ["Ask", "Flags", "Front", "Result", "Seams", "all_tools", "load", "prepare", "read_plan", "resume", "run"]


def prepare(plan_path: Path, ask: Ask, *, cwd: Path, environ: Mapping[str, str]) -> tuple[Session, Settings, Plan]:
    """All that a run checks before it starts: the plan, the settings, the parameters, the names. Writes nothing. Raises PlanrunError."""
    workspace = _recordable(cwd.resolve())
    loaded = planfile.load(plan_path)
    plan = loaded.plan
    settings = building.as_recorded(resolve(workspace, ask.flags, environ, plan), plan_path)
    building.rules(settings, plan)
    params = typed(plan, ask.params)
    resuming.check_steps(plan, (ask.until,))
    model = _model_of(plan, settings)
    counter(settings.compaction.estimator, model)
    header = Session(
        format=FORMAT,
        session=ask.session or new_id(),
        cwd=str(workspace),
        plan_path=str(plan_path.resolve()),
        plan=loaded.text,
        plan_digest=loaded.digest,
        params=params,
        model=model,
        settings=settings.public(),
        options=resuming.options_of(ask, settings),
        files=loaded.files,
        env=_declared(plan, environ),
        tools=building.tool_sizes(),
    )
    building.free_path(Store(settings.session_dir), header.session)
    inputs.check(header, masker(plan, settings, environ))
    return header, settings, plan


def run(plan_path: Path, ask: Ask, front: Front, *, cwd: Path, environ: Mapping[str, str], seams: Seams = Seams()) -> Result:
    """Validate the plan, start a session in the folder `cwd`, run it to its end. Raises PlanrunError where nothing could be
    started, StorageError where the log cannot be written any more."""
    header, settings, plan = prepare(plan_path, ask, cwd=cwd, environ=environ)
    for warning in settings.warnings:
        front.notice(warning)
    path = Store(settings.session_dir).path(header.session)
    box = building.sandbox(settings, Path(header.cwd), path, environ)
    log = logs.create(path, masker(plan, settings, environ))
    try:
        return Result(_drive(log, State(), settings, box, ask, front, environ, (header,), seams), path)
    finally:
        log.close()


def resume(
    name: str | None, ask: Ask, front: Front, *, cwd: Path, environ: Mapping[str, str], seams: Seams = Seams()
) -> Result:
    """Continue a session from its log alone: the one of this name or unique beginning, else the newest unfinished one of `cwd`.
    Raises PlanrunError where it cannot be used as it is, and then nothing was written; else as `run`."""
    workspace = cwd.resolve()
    store = Store(resolve(workspace, ask.flags, environ, None).session_dir)
    path = Path(os.path.realpath(store.find(name) if name else store.newest_unfinished(workspace)))
    with resuming.opened(path) as session:
        state = session.state
        header, plan = resuming.header_of(state, path)
        settings = resuming.settings_of(state, path, ask.flags, environ)
        building.rules(settings, plan)
        box = building.sandbox(settings, Path(header.cwd), path, environ)
        again = ask.rerun if ask.rerun not in ("none", "stale") else None
        resuming.check_steps(plan, (ask.until, ask.start_from, *ask.skip, again))
        note = resuming.resumed(state, settings, ask)
        changes = resuming.changes(note, state, header, plan, ask)
        first: tuple[Event, ...] = (note, *session.sealed(), *changes)
        resuming.check_messages(first, state, path)
        for warning in settings.warnings:
            front.notice(warning)
        log = session.writable(plan, settings, environ, front.notice)
        return Result(_drive(log, state, settings, box, ask, front, environ, first, seams), path)


def load(path: Path) -> State:
    """The state of the session whose log is at `path`, for looking only. Raises SessionDamaged."""
    return latest(path, read_plan)


def _drive(
    log: logs.Log,
    state: State,
    settings: Settings,
    box: Bubblewrap | None,
    ask: Ask,
    front: Front,
    environ: Mapping[str, str],
    first: tuple[Event, ...],
    seams: Seams,
) -> State:
    """Record what this run begins with, then loop."""
    header = next((e for e in first if isinstance(e, Session)), state.header)
    if header is None:
        raise SessionDamaged(f"{log.path} has no session record", 1)
    with Signals(kill_all) as signals:
        models: Callable[[str], Model] = seams.models or building.Models(settings, header, state.replies, ask.wait_limit)
        world = building.world(
            seams.journal(log),
            log.path,
            header,
            settings,
            environ,
            models=models,
            signals=signals,
            front=front,
            human=building.human(ask, front),
        )
        world = replace(world, sandbox=box, log_bytes=lambda: log.size)
        runner = Runner(seams.world(world), state, (*front.observers, snapshot.Keeper(log).observe))
        scratch.sweep(world.spill)
        front.opened(log.path)
        for event in first:
            runner.append(event)
        for text in _unknown(runner.state, world.prices):
            runner.append(Noted("notice", text))
        world.log.sync()
        return runner.run()


def _unknown(state: State, prices: Callable[[str], Price | None]) -> Iterator[str]:
    """What the run has to do without, to be said before it begins: windows that are guesses, limits that cannot hold."""
    for name in room.models(state):
        if room.window_of(state, name)[1] == room.A_GUESS:
            how = "name it with --window, `window:` in the plan or modelOverrides in settings.json"
            yield f"the context window of {name} is not known: {room.GUESS:,} tokens is a guess; {how}"
        if limits_in_force(state).cost_usd is not None and prices(name) is None:
            yield f"the cost limit does not hold for {name}: no price is known; give inputPrice and outputPrice in modelOverrides"


def _recordable(folder: Path) -> Path:
    """A session that could not name its working directory could not be resumed there."""
    if not _utf8(str(folder)):
        raise ConfigError(f"the working directory {named(str(folder))} is not UTF-8, as a session needs it: rename it")
    return folder


def _utf8(text: str) -> bool:
    """Whether this was UTF-8 before Python made text of it: only then a record can hold it."""
    return text.encode("utf-8", "replace").decode() == text


def _model_of(plan: Plan, settings: Settings) -> str:
    needed = [s.id for s in plan.steps if s.prompt is not None and not s.model]
    if settings.model is None and needed:
        raise ConfigError(
            f"no model is named, and step {needed[0]} needs one: use --model, PLANRUN_MODEL, `model:` in the plan or in settings.json"
        )
    return settings.model or ""


def _declared(plan: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    missing = [n for n in plan.env if n not in environ]
    if missing:
        raise ConfigError(f"the plan reads the environment variable {missing[0]}, which is not set")
    if strange := [n for n in plan.env if not _utf8(environ[n])]:
        raise ConfigError(f"the plan reads the environment variable {strange[0]}, whose value is not UTF-8")
    return {n: environ[n] for n in plan.env}
