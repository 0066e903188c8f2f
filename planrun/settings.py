"""Settings: one frozen value, resolved once. A flag wins over the environment, then plan, project, user, default.

The environment is read here and nowhere below. An environment variable that is empty counts as not set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import unquote, urlsplit

from planrun import settings_file
from planrun.core import names
from planrun.core.plan import Json, Limits, Plan, Sandbox, Strategy
from planrun.core.units import words
from planrun.endpoint import DEFAULT_BASE_URL, normalise_base_url, shown
from planrun.errors import ConfigError
from planrun.masking.names import looks_secret
from planrun.precedence import Picker, amount, positive, sandbox, seconds, strategy


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says; None where it says nothing. Times are seconds, or text such as `90m`."""

    model: str | None = None
    base_url: str | None = None
    context: str | None = None
    window: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_time: float | str | None = None
    max_turns: int | None = None
    session_dir: str | Path | None = None


@dataclass(frozen=True, slots=True)
class ModelOverride:
    """What is known better of a model than what is built in. Tokens; prices in USD for a million tokens."""

    context: int | None = None
    max_output: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None


@dataclass(frozen=True, slots=True)
class PermissionRules:
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hook:
    """A command of the user's; `timeout` in seconds. With `fail_closed` a hook that fails stands for a refusal."""

    command: str
    timeout: float = 5.0
    fail_closed: bool = False


@dataclass(frozen=True, slots=True)
class Compaction:
    """Percent of the budget: when the ladder starts, what a rung must free, what the fresh tail may take; the name of what counts
    tokens."""

    summarize_token_percent: float = 75.0
    min_reclaim_percent: float = 5.0
    tail_percent: float = 25.0
    estimator: str = "builtin"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings in force. `origins` says where each came from: `flag --model`, `environment PLANRUN_MODEL`, `plan`, the path
    of a file, `default`. `warnings` are for the user to read once."""

    base_url: str = field(repr=False)  # may hold a password
    session_dir: Path
    api_key: str | None = field(repr=False, default=None)
    model: str | None = None
    summary_model: str | None = None
    sandbox: Sandbox | None = None
    context: Strategy = "compact"
    window: int | None = None
    limits: Limits = Limits()
    model_overrides: Mapping[str, ModelOverride] = field(default_factory=dict)
    permissions: PermissionRules = PermissionRules()
    hooks: Mapping[str, tuple[Hook, ...]] = field(default_factory=dict)
    compaction: Compaction = Compaction()
    mcp_servers: Mapping[str, Json] = field(default_factory=dict, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def public(self) -> dict[str, Json]:
        """What a session records: everything but secrets. Of MCP servers the names only, as their settings may hold keys."""
        return {
            "model": self.model,
            "base_url": shown(self.base_url),
            "summary_model": self.summary_model,
            "sandbox": asdict(self.sandbox) if self.sandbox else None,
            "context": self.context,
            "window": self.window,
            "limits": asdict(self.limits),
            "session_dir": str(self.session_dir),
            "model_overrides": {name: asdict(override) for name, override in self.model_overrides.items()},
            "permissions": {key: list(rules) for key, rules in asdict(self.permissions).items()},
            "hooks": {event: [asdict(hook) for hook in hooks] for event, hooks in self.hooks.items()},
            "compaction": asdict(self.compaction),
            "mcp_servers": list(self.mcp_servers),
        }

    def asked(self, *names: str) -> list[str]:
        """Those of the settings that somebody named by hand: with a flag, with a variable of planrun's own, or when an earlier
        run of the session began."""
        by_hand = ("flag", "environment PLANRUN_", "an earlier run")
        return [name for name in names if self.origins.get(name, "").startswith(by_hand)]

    def secrets(self) -> dict[str, str]:
        """Credentials that the settings hold, by name: the endpoint's key, a password in its address, what MCP servers are given."""
        password = urlsplit(self.base_url).password
        found = {"OPENAI_API_KEY": self.api_key or "", "base-url-password": unquote(password or "")}
        for server, table in self.mcp_servers.items():
            for key in ("env", "headers"):
                given = table.get(key) if isinstance(table, dict) else None
                named = given.items() if isinstance(given, dict) else ()
                found |= {f"{server}.{name}": value for name, value in named if isinstance(value, str) and looks_secret(name)}
        return {name: value for name, value in found.items() if value}

    def describe(self) -> tuple[tuple[str, Json, str], ...]:
        """Every setting as (name, value, origin), for people. The key itself is never among the values."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[tuple[str, Json, str]]:
        for name, value in self.public().items():
            if name in ("limits", "compaction", "permissions") and isinstance(value, dict):
                for key, part in value.items():
                    yield f"{name}.{key}", part, self.origins.get(f"{name}.{key}", "default")
            else:
                yield name, value, self.origins.get(name, "default")
        yield "api_key", "set" if self.api_key else "not set", self.origins.get("api_key", "default")


def resolve(
    cwd: Path, flags: Flags, environ: Mapping[str, str], plan: Plan | None, asked: Mapping[str, Json] = MappingProxyType({})
) -> Settings:
    """The settings in force for a run in `cwd`; `asked` are those that an earlier run of the session was given by hand. Raises
    ConfigError naming the place, what was expected and what was found."""
    files = [settings_file.load(cwd / names.SETTINGS), settings_file.load(_user_file(environ))]
    pick = Picker(environ, [file for file in files if file is not None], asked)
    warnings: list[str] = []
    base_url, warning = _base_url(pick, flags)
    if warning:
        warnings.append(warning)
    servers = pick.merged("mcp_servers")
    if servers:
        warnings.append(f"{pick.origins['mcp_servers']}: mcpServers: tools of MCP servers are not offered to models yet")
    return Settings(
        base_url=base_url,
        session_dir=cwd / (pick.first("session_dir", flags.session_dir, None, None, Path) or names.SESSIONS),
        api_key=_api_key(pick),
        model=pick.first("model", flags.model, plan and plan.model, "model", words),
        summary_model=pick.first("summary_model", None, None, "summary_model", words),
        sandbox=pick.first("sandbox", None, plan and plan.sandbox, "sandbox", sandbox),
        context=pick.first("context", flags.context, plan and plan.context, "plan_context_strategy", strategy) or "compact",
        window=pick.first("window", flags.window, plan and plan.window, None, positive),
        limits=_limits(pick, flags, plan),
        model_overrides={name: ModelOverride(**row.model_dump()) for name, row in pick.merged("model_overrides").items()},
        permissions=_permissions(pick),
        hooks=_hooks(pick),
        compaction=_compaction(pick),
        mcp_servers=servers,
        origins=pick.origins,
        warnings=tuple(warnings),
    )


def _user_file(environ: Mapping[str, str]) -> Path:
    if folder := environ.get("XDG_CONFIG_HOME"):
        return Path(folder) / "thclaws" / "settings.json"
    from platformdirs import user_config_path

    return user_config_path("thclaws") / "settings.json"


def _base_url(pick: Picker, flags: Flags) -> tuple[str, str | None]:
    found = pick.first("base_url", flags.base_url, None, None, normalise_base_url)
    if found is None and (endpoint := pick.environ.get("OPENAI_BASE_URL")):
        pick.origins["base_url"] = "environment OPENAI_BASE_URL"
        found = pick.reading("environment OPENAI_BASE_URL", endpoint, normalise_base_url)
    if found is None:
        found = pick.first("base_url", None, None, "base_url", normalise_base_url)
    return found or (DEFAULT_BASE_URL, None)


def _api_key(pick: Picker) -> str | None:
    key = pick.environ.get("OPENAI_API_KEY", "").strip()
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("environment OPENAI_API_KEY: there is a blank, a line end or a character in it that no key has")
    pick.origins["api_key"] = "environment OPENAI_API_KEY"
    return key


def _limits(pick: Picker, flags: Flags, plan: Plan | None) -> Limits:
    said = plan.limits if plan else Limits()
    return Limits(
        cost_usd=pick.first("limits.cost_usd", flags.max_cost, said.cost_usd, "limits.cost_usd", amount),
        tokens=pick.first("limits.tokens", flags.max_tokens, said.tokens, "limits.tokens", positive),
        time=pick.first("limits.time", flags.max_time, said.time, "limits.time", seconds),
        turns=pick.first("limits.turns", flags.max_turns, said.turns, "limits.turns", positive),
    )


def _permissions(pick: Picker) -> PermissionRules:
    """The rules of all files together, the project's first."""

    def rules(key: Literal["allow", "ask", "deny"]) -> tuple[str, ...]:
        found: list[str] = []
        for file in pick.files:
            if file.table.permissions and (listed := getattr(file.table.permissions, key)):
                found += listed
                pick.origins.setdefault(f"permissions.{key}", file.name)
        return tuple(dict.fromkeys(found))

    return PermissionRules(rules("allow"), rules("ask"), rules("deny"))


def _hooks(pick: Picker) -> dict[str, tuple[Hook, ...]]:
    return {event: tuple(Hook(**hook.model_dump()) for hook in hooks) for event, hooks in pick.merged("hooks").items()}


def _compaction(pick: Picker) -> Compaction:
    default = asdict(Compaction())
    said = {key: pick.first(f"compaction.{key}", None, None, f"compaction.{key}", type(default[key])) for key in default}
    return Compaction(**{key: default[key] if value is None else value for key, value in said.items()})
