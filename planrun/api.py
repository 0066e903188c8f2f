"""The composition root: opens sessions, builds the world, runs. It alone knows the concrete classes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from planrun import planfile
from planrun.core.events import FORMAT, Event, Noted, Session, StepChanged
from planrun.core.fold import apply, fold
from planrun.core.messages import compact_json
from planrun.core.plan import Json, Plan
from planrun.core.state import State
from planrun.core.tokens import raw_tokens
from planrun.errors import ConfigError, PlanChanged, SessionDamaged, UsageError
from planrun.models.base import Model, Retry
from planrun.params import typed
from planrun.policy.permissions import Permissions
from planrun.policy.secrets import Masker
from planrun.runner.loop import Observer, Runner
from planrun.runner.signals import Signals
from planrun.runner.world import Answered, Human, Journal, Price, World
from planrun.session import log as logs
from planrun.session import snapshot
from planrun.session.history import History
from planrun.session.store import Store, new_id, records
from planrun.settings import Flags, Settings, resolve
from planrun.tools.base import Tool
from planrun.tools.environment import child_environment
from planrun.tools.history import HISTORY
from planrun.tools.plan import PLAN_TOOL
from planrun.tools.process import kill_all
from planrun.tools.registry import builtin_tools, schema

STATE_DIR = ".thclaws"


@dataclass(frozen=True, slots=True)
class Ask:
    """What the command line asks of a run or a resume. `approve` is all, none or ask; `rerun` is none, stale or a step's id."""

    flags: Flags = field(default_factory=Flags)
    params: Mapping[str, Json] = field(default_factory=dict)
    session: str | None = None
    until: str | None = None
    approve: str = "ask"
    start_from: str | None = None
    skip: tuple[str, ...] = ()
    rerun: str | None = None


@dataclass(frozen=True, slots=True)
class Front:
    """Who watches and who answers: everything that a front end gives to a run."""

    observers: tuple[Observer, ...] = ()
    on_retry: Callable[[Retry], None] = lambda retry: None
    notice: Callable[[str], None] = lambda text: None
    human: Human | None = None
    opened: Callable[[Path], None] = lambda path: None  # the session's log is there and locked; nothing was appended yet


@dataclass(frozen=True, slots=True)
class Seams:
    """Where a program that embeds planrun, or a test, puts its own: how a name becomes a model, what stands before the log."""

    models: Callable[[str], Model] | None = None
    journal: Callable[[logs.Log], Journal] = lambda log: log


@dataclass(frozen=True, slots=True)
class Result:
    state: State
    path: Path


class _Nobody:
    def ask(self, question: str) -> Answered | None:
        return None


class _Everybody:
    def ask(self, question: str) -> Answered | None:
        return Answered(True, "--approve all")


def all_tools() -> tuple[Tool, ...]:
    """Every tool, in the order in which models are offered them."""
    return (*builtin_tools(), *HISTORY, PLAN_TOOL)


def read_plan(header: Session) -> Plan:
    """The plan of a session record, from the text in it alone. Raises PlanInvalid."""
    return planfile.parse(header.plan, header.plan_path, header.files).plan


def prepare(plan_path: Path, ask: Ask, *, cwd: Path, environ: Mapping[str, str]) -> tuple[Session, Settings, Plan]:
    """All that a run checks before it starts: the plan, the settings, the parameters, the names. Writes nothing. Raises PlanrunError."""
    workspace = cwd.resolve()
    loaded = planfile.load(plan_path)
    plan = loaded.plan
    settings = resolve(workspace, ask.flags, environ, plan)
    params = typed(plan, ask.params)
    _check_steps(plan, (ask.until,))
    header = Session(
        format=FORMAT,
        session=ask.session or new_id(),
        cwd=str(workspace),
        plan_path=str(plan_path.resolve()),
        plan=loaded.text,
        plan_digest=loaded.digest,
        params=params,
        model=_model_of(plan, settings, ask),
        settings=settings.public(),
        options=_options(ask, settings),
        files=loaded.files,
        env=_declared(plan, environ),
        tools={t.name: round(raw_tokens(compact_json(schema(t)))) for t in all_tools()},
    )
    path = Store(settings.session_dir).path(header.session)
    if path.exists() or path.is_symlink():
        raise UsageError(f"there is already a session {header.session!r}; `planrun resume {header.session}` continues it")
    return header, settings, plan


def run(
    plan_path: Path, ask: Ask, front: Front, *, cwd: Path, environ: Mapping[str, str], seams: Seams = Seams()
) -> Result:
    """Validate, start a session, run it to its end. Raises PlanrunError where nothing could be started."""
    header, settings, plan = prepare(plan_path, ask, cwd=cwd, environ=environ)
    for warning in settings.warnings:
        front.notice(warning)
    path = Store(settings.session_dir).path(header.session)
    log = logs.create(path, Masker(_secrets(plan, settings, environ)))
    try:
        return Result(_drive(log, State(), settings, ask, front, environ, (header,), seams), path)
    finally:
        log.close()


def resume(
    name: str | None, ask: Ask, front: Front, *, cwd: Path, environ: Mapping[str, str], seams: Seams = Seams()
) -> Result:
    """Continue a session from its log alone. Raises PlanrunError where it cannot be used as it is; then nothing was written."""
    workspace = cwd.resolve()
    store = Store(resolve(workspace, ask.flags, environ, None).session_dir)
    path = (store.find(name) if name else store.newest_unfinished(workspace)).resolve()
    with _opened(path) as (file, state, reader):
        header, plan = _header(state, path)
        home = Path(header.cwd)
        if not home.is_dir():
            raise ConfigError(f"session {path.stem} works in {home}, which is not there any more")
        settings = resolve(home, _with_base(ask.flags, header), environ, plan)
        _check_steps(plan, (ask.until, ask.start_from, *ask.skip, ask.rerun if ask.rerun not in ("none", "stale") else None))
        note = _resumed(state, settings, ask, plan)
        # An adopted plan comes with what is asked of this run, not of the first one.
        now = replace(header, options={**state.options, **note.options}, settings=note.settings, model=note.model or "")
        changes = _changes(now, plan, state, ask)
        log = logs.continue_at(file, path, reader, state.timestamp, Masker(_secrets(plan, settings, environ)))
        first: list[Event] = [note]
        if reader.torn:
            front.notice(f"the last line of {path.name} was torn by a crash; it was never in force and is dropped")
            first.append(Noted("sealed", f"dropped a torn last line of {len(reader.torn)} bytes"))
        return Result(_drive(log, state, settings, ask, front, environ, (*first, *changes), seams), path)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, State, logs.Reader]]:
    """The log of `path`, locked and folded, by way of its snapshot where that one fits."""
    file = logs.open_locked(path)
    try:
        state, reader = snapshot.load(path, file, read_plan)
        for record in reader:
            state = apply(state, record, read_plan)
        yield file, state, reader
    finally:
        file.close()
        path.with_suffix(".lock").unlink(missing_ok=True)


def load(path: Path) -> State:
    """The state of a session, for looking only."""
    return fold(records(path), State(), read_plan)


def _header(state: State, path: Path) -> tuple[Session, Plan]:
    if state.header is None or state.plan is None:
        raise SessionDamaged(f"{path} has no session record; there is nothing to resume", 1)
    if state.header.format != FORMAT:
        raise SessionDamaged(f"{path} has format {state.header.format}; this planrun reads format {FORMAT}", 1)
    return state.header, state.plan


def _with_base(flags: Flags, header: Session) -> Flags:
    """An endpoint and a model that the session was started with hold on, unless they are named anew."""
    return flags


def _resumed(state: State, settings: Settings, ask: Ask, plan: Plan) -> Noted:
    options = _options(ask, settings)
    options.setdefault("until", None)
    model = settings.model if settings.origins.get("model", "default").startswith(("flag", "environment")) else None
    return Noted(
        "resumed", f"resumed by pid {os.getpid()}", options=options, settings=settings.public(), model=model or state.model or None
    )


def _changes(header: Session, plan: Plan, state: State, ask: Ask) -> list[Event]:
    """What a resume changes before it goes on: an adopted plan, steps to skip or to run again."""
    events: list[Event] = []
    again: set[str] = set()
    loaded = _plan_now(header) if ask.rerun != "none" else None
    if loaded is not None and loaded.digest != header.plan_digest:
        if ask.rerun is None:
            raise PlanChanged(
                f"{header.plan_path} is not the plan that this session recorded. `--rerun none` goes on with the recorded plan, "
                "`--rerun stale` takes the new one and runs again what changed in it."
            )
        if ask.rerun != "none":
            events.append(replace(header, plan=loaded.text, plan_digest=loaded.digest, files=loaded.files))
            again |= _stale(plan, loaded.plan) if ask.rerun == "stale" else set()
            plan = loaded.plan
    if ask.rerun not in (None, "none", "stale"):
        again.add(str(ask.rerun))
    if ask.start_from:
        again |= {s.id for s in plan.steps[plan.index[ask.start_from] :]}
    for step in plan.steps:
        old = state.plan.index.get(step.id) if state.plan else None
        now = state.steps[old] if old is not None else None
        if step.id in ask.skip:
            events.append(StepChanged(step.id, "skipped", now.attempt if now else 0, "skipped by hand"))
        elif step.id in again and now is not None and now.status != "todo":
            events.append(StepChanged(step.id, "todo", now.attempt, "to be run again"))
    return events


def _plan_now(header: Session) -> planfile.LoadedPlan | None:
    path = Path(header.plan_path)
    return planfile.load(path) if path.exists() else None


def _stale(old: Plan, new: Plan) -> set[str]:
    """Steps whose definition changed, and every later one: it may have used what they left."""
    for position, step in enumerate(new.steps):
        if step.id not in old.index or old.step(step.id) != step:
            return {s.id for s in new.steps[position:]}
    return set()


def _check_steps(plan: Plan, ids: tuple[str | None, ...]) -> None:
    for step_id in ids:
        if step_id is not None and step_id not in plan.index:
            raise UsageError(f"the plan has no step {step_id!r}; its steps are: {', '.join(plan.index)}")


def _model_of(plan: Plan, settings: Settings, ask: Ask) -> str:
    needed = [s.id for s in plan.steps if s.prompt is not None and not s.model]
    if settings.model is None and needed:
        raise ConfigError(
            f"no model is named, and step {needed[0]} needs one: use --model, PLANRUN_MODEL, `model:` in the plan or in settings.json"
        )
    return settings.model or ""


def _options(ask: Ask, settings: Settings) -> dict[str, Json]:
    options: dict[str, Json] = {"approve": ask.approve}
    if ask.until:
        options["until"] = ask.until
    for name, value in (("model", settings.model), ("context", settings.context)):
        if settings.origins.get(name, "default").startswith(("flag", "environment")):
            options[name] = value
    return options


def _declared(plan: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    missing = [n for n in plan.env if n not in environ]
    if missing:
        raise ConfigError(f"the plan reads the environment variable {missing[0]}, which is not set")
    return {n: environ[n] for n in plan.env}


def _secrets(plan: Plan, settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    named = {n: environ[n] for n in plan.secrets if environ.get(n)}
    return {**({"OPENAI_API_KEY": settings.api_key} if settings.api_key else {}), **named}


def _drive(
    log: logs.Log,
    state: State,
    settings: Settings,
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
    secrets = {n: environ[n] for n in read_plan(header).secrets if environ.get(n)}
    workspace = Path(header.cwd)
    with Signals(kill_all) as signals:
        world = World(
            log=seams.journal(log),
            read_plan=read_plan,
            models=seams.models or Models(settings, header, state.replies),
            prices=lambda name: _price(settings, name),
            reply_reserve=lambda name: _reserve(settings, name),
            tools={t.name: t for t in all_tools()},
            permissions=Permissions.parse(settings.permissions.allow, settings.permissions.ask, settings.permissions.deny),
            human=_human(ask, front),
            signals=signals,
            workspace=workspace,
            spill=workspace / STATE_DIR / "tool-output",
            environment=child_environment(environ, secrets, {}, ()),
            on_retry=front.on_retry,
            hooks=settings.hooks,
            history=History(log.path.parent, log.path),
        )
        runner = Runner(world, state, (*front.observers, snapshot.Keeper(log).observe))
        front.opened(log.path)
        for event in first:
            runner.append(event)
        world.log.sync()
        return runner.run()


def _human(ask: Ask, front: Front) -> Human:
    if ask.approve == "all":
        return _Everybody()
    return front.human if ask.approve == "ask" and front.human is not None else _Nobody()


def _price(settings: Settings, model: str) -> Price | None:
    override = settings.model_overrides.get(model)
    if override is None or override.input_price is None or override.output_price is None:
        return None
    cached = override.cached_price if override.cached_price is not None else override.input_price
    return Price(override.input_price, override.output_price, cached)


def _reserve(settings: Settings, model: str) -> int | None:
    override = settings.model_overrides.get(model)
    return override.max_output if override else None


class Models:
    """Gives the model of a name, made when first asked for: an endpoint behind retries, or a recording."""

    def __init__(self, settings: Settings, header: Session, replies: int) -> None:
        self._settings, self._header, self._replies = settings, header, replies
        self._made: dict[str, Model] = {}

    def __call__(self, name: str) -> Model:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Model:
        if name.startswith("replay:"):
            from planrun.replaying import replay_of

            return replay_of(Path(self._header.plan_path).parent / name.removeprefix("replay:"), self._replies, read_plan)
        from planrun.models.openai import OpenAIModel
        from planrun.models.retry import RetryingModel

        return RetryingModel(OpenAIModel(self._settings.base_url, self._settings.api_key or ""))
