"""The concrete parts of a run: which tools there are, how a name becomes a model, the world that the runner acts on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from planrun.core import names
from planrun.core.events import Session
from planrun.core.messages import compact_json
from planrun.core.plan import Plan
from planrun.core.tokens import raw_tokens
from planrun.counting import CountingJournal, counter
from planrun.endpoint import incomplete
from planrun.errors import ConfigError, UsageError
from planrun.front import Ask, Front
from planrun.masking.masker import Masker
from planrun.masking.spellings import SHORTEST
from planrun.models.base import Model
from planrun.planfile import read_plan
from planrun.policy.permissions import Permissions, Rule, parse_rule
from planrun.runner.acts import RealActs
from planrun.runner.signals import Signals
from planrun.runner.world import Answered, Human, Journal, Price, World
from planrun.session.history import History
from planrun.session.log import begun
from planrun.session.store import Store
from planrun.settings import Settings
from planrun.tools.base import Tool
from planrun.tools.environment import child_environment
from planrun.tools.history import HISTORY
from planrun.tools.plan import PLAN_TOOL
from planrun.tools.registry import builtin_tools, schema
from planrun.tools.sandbox import Bubblewrap, NoSandbox, bubblewrap


def all_tools() -> tuple[Tool, ...]:
    """Every tool, in the order in which models are offered them."""
    return (*builtin_tools(), *HISTORY, PLAN_TOOL)


def tool_sizes() -> dict[str, int]:
    """Tokens of each tool's schema, uncalibrated, as the first record of a session keeps them."""
    return {t.name: round(raw_tokens(compact_json(schema(t)))) for t in all_tools()}


def free_path(store: Store, session: str) -> Path:
    """Where a new session of this name will lie. Raises UsageError where there is one already."""
    path = store.path(session)
    if begun(path):
        raise UsageError(f"there is already a session {session!r}; `planrun resume {session}` continues it")
    return path


def masker(plan: Plan, settings: Settings, environ: Mapping[str, str]) -> Masker:
    """What keeps secrets out of all that is recorded, shown and sent: those that the plan declares, and the settings' own."""
    return Masker({**settings.secrets(), **{n: environ[n] for n in plan.secrets if environ.get(n)}})


def sandbox(settings: Settings, workspace: Path, log: Path, environ: Mapping[str, str]) -> Bubblewrap | None:
    """What the settings ask for, tried once; commands cannot write into planrun's own folders. Raises ConfigError."""
    if settings.sandbox is None:
        return None
    own = (Path(os.path.realpath(folder)) for folder in (workspace / names.FOLDER, log.parent))
    protected = tuple(folder for folder in own if folder != workspace and folder.is_relative_to(workspace))
    try:
        return bubblewrap(workspace, protected, environ.get("PATH", os.defpath), network=settings.sandbox.network)
    except NoSandbox as error:
        raise ConfigError(f"sandbox ({settings.origins.get('sandbox', 'as recorded')}): {error}") from None


class _Nobody:
    def ask(self, question: str) -> Answered | None:
        return None


class _Everybody:
    def ask(self, question: str) -> Answered | None:
        return Answered(yes=True, by="--approve all")


NOBODY = _Nobody()


def human(ask: Ask, front: Front) -> Human:
    """Whoever answers approvals in this run."""
    if ask.approve == "all":
        return _Everybody()
    return front.human if ask.approve == "ask" and front.human is not None else NOBODY


def world(
    journal: Journal,
    log: Path,
    header: Session,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    models: Callable[[str], Model],
    signals: Signals,
    front: Front,
    human: Human = NOBODY,
) -> World:
    """Everything outside the state of the session whose log is at `log`; without a sandbox."""
    plan = read_plan(header)
    permissions, polling = rules(settings, plan)
    secrets = {n: environ[n] for n in plan.secrets if environ.get(n)}
    mask = masker(plan, settings, environ)
    _warn_of_short(mask, secrets, front)
    workspace = Path(header.cwd)
    count = counter(settings.compaction.estimator, header.model)
    return World(
        log=CountingJournal(journal, count) if count else journal,
        read_plan=read_plan,
        models=models,
        prices=lambda name: _price(settings, name),
        reply_reserve=lambda name: _reserve(settings, name),
        tools={t.name: t for t in all_tools()},
        permissions=permissions,
        polling=polling,
        human=human,
        signals=signals,
        acts=RealActs(),
        workspace=workspace,
        spill=workspace / names.SPILL,
        environment=child_environment(environ, secrets),
        mask=mask,
        on_retry=lambda retry: front.on_retry(replace(retry, reason=mask(retry.reason))),
        hooks=settings.hooks,
        history=History(log.parent, log),
    )


def _warn_of_short(mask: Masker, declared: Mapping[str, str], front: Front) -> None:
    """A key of the settings that is so short is none: local endpoints take any text."""
    for name in mask.short:
        if name in declared:
            front.notice(
                f"the secret {name} is too short to be masked ({SHORTEST} characters are needed): it will stand in the log"
            )


def rules(settings: Settings, plan: Plan) -> tuple[Permissions, tuple[Rule, ...]]:
    """The permissions, and what the plan lets poll. Raises ConfigError for a rule that cannot be read."""
    said = settings.permissions
    return Permissions.parse(said.allow, said.ask, said.deny), tuple(parse_rule(text) for text in plan.polling)


def _price(settings: Settings, model: str) -> Price | None:
    override = settings.model_overrides.get(model)
    if override is None or override.input_price is None or override.output_price is None:
        return None
    cached = override.cached_price if override.cached_price is not None else override.input_price
    return Price(override.input_price, override.output_price, cached)


def _reserve(settings: Settings, model: str) -> int | None:
    override = settings.model_overrides.get(model)
    return override.max_output if override else None


def as_recorded(settings: Settings, plan_path: Path) -> Settings:
    """The settings; where a recording answers and nothing names a window, with that of the recorded model."""
    recording = recording_of(settings.model or "", plan_path)
    if settings.window is not None or recording is None:
        return settings
    from planrun.replaying import window_of

    return replace(settings, window=window_of(recording, read_plan))


def recording_of(model: str, plan_path: Path) -> Path | None:
    """The session log that `replay:FILE` names, beside the plan."""
    return plan_path.parent / model.removeprefix("replay:") if model.startswith("replay:") else None


class Models:
    """Gives the model of a name, made when first asked for: an endpoint behind retries, or a recording."""

    def __init__(self, settings: Settings, header: Session, replies: int, wait_limit: float | None = None) -> None:
        self._settings, self._header, self._replies, self._wait_limit = settings, header, replies, wait_limit
        self._made: dict[str, Model] = {}

    def __call__(self, name: str) -> Model:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Model:
        if recording := recording_of(name, Path(self._header.plan_path)):
            from planrun.replaying import replay_of

            return replay_of(recording, self._replies, read_plan)
        if incomplete(url := self._settings.base_url):
            raise ConfigError(f"the base URL {url} is an earlier run's, without its password: name it again with --base-url")
        from planrun.models.openai import OpenAIModel
        from planrun.models.retry import RetryingModel

        return RetryingModel(OpenAIModel(self._settings.base_url, self._settings.api_key or ""), park=self._wait_limit)
