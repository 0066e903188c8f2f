"""How much room the window leaves for messages, in tokens, and how much of it is taken."""

from __future__ import annotations

from dataclasses import dataclass

from planrun.core import context
from planrun.core.plan import Step
from planrun.core.state import State

GUESS, A_GUESS = 128_000, "a guess"  # tokens where nothing tells, and the word for it
RESERVE = 4_096  # tokens kept for the reply where `maxOutput` says nothing, at most a quarter of the window
MARGIN = 0.02  # of the window: what chat templates add that nobody counts

# Context windows in tokens, by the beginning of the model's name (its vendor's prefix left out); the longest match counts.
KNOWN = {
    "gpt-3.5": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 272_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4": 200_000,
    "claude": 200_000,
    "gemini": 1_048_576,
    "deepseek": 128_000,
    "qwen2.5": 32_768,
    "qwen3": 131_072,
    "qwen3-coder": 262_144,
    "llama-3": 8_192,
    "llama-3.1": 131_072,
    "llama-3.3": 131_072,
    "mistral-large": 131_072,
    "codestral": 256_000,
    "devstral": 131_072,
    "kimi-k2": 262_144,
    "glm-4.5": 131_072,
    "gpt-oss": 131_072,
}


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens. `fixed` is what every request of the step carries: system message and tool schemas; `used` the other messages;
    `budget` what they may take. `origin` says where the window is known from."""

    window: int
    origin: str
    fixed: int
    reserve: int
    used: int

    @property
    def budget(self) -> int:
        return int(self.window * (1 - MARGIN)) - self.fixed - self.reserve


def room_of(state: State, step: Step) -> Room:
    """The room of `step` as the state stands."""
    model = state.model_of(step)
    window, origin = window_of(state, model)
    system = sum(e.raw for s in state.view[:1] for e in s.entries if e.message.role == "system")
    used = context.raw_size(state.view) - system
    asked = override(state, model, "max_output")
    reserve = min(asked, window // 2) if asked else min(RESERVE, window // 4)
    return Room(
        window=window,
        origin=origin,
        fixed=round((system + tools_raw(state, step)) * state.factor),
        reserve=reserve,
        used=round(used * state.factor),
    )


def window_of(state: State, model: str, *, own: bool = True) -> tuple[int, str]:
    """The model's window: as configured, as an endpoint taught it (the smaller of the two), as it is known, or a guess. `own` is
    False for a model that is only asked for summaries: the window of the plan or the command line is not its."""
    configured = (state.settings.get("window") if own else None) or override(state, model, "context")
    taught = state.windows.get(model)
    if isinstance(configured, int):
        return (taught, "the endpoint") if taught and taught < configured else (configured, "settings")
    if taught:
        return taught, "the endpoint"
    listed = known_window(model)
    return (listed, "the table of known models") if listed else (GUESS, A_GUESS)


def known_window(model: str) -> int | None:
    """The window of a model by its name."""
    name = model.rpartition("/")[2].lower()
    fits = [known for known in KNOWN if name.startswith(known)]
    return KNOWN[max(fits, key=len)] if fits else None


def models(state: State) -> tuple[str, ...]:
    """The models that the plan's steps ask, recordings aside."""
    names = dict.fromkeys(state.model_of(s) for s in state.need_plan().steps if s.prompt is not None)
    return tuple(n for n in names if not n.startswith("replay:"))


def override(state: State, model: str, name: str) -> int | None:
    """A whole number that `modelOverrides` gives for a model."""
    value = _overridden(state, model, name)
    return value if isinstance(value, int) else None


def cost(state: State, model: str, prompt: int, completion: int = 0) -> float | None:
    """USD for a request of so many tokens; None where a price is not known."""
    prices = [p for name in ("input_price", "output_price") if isinstance(p := _overridden(state, model, name), int | float)]
    return round((prompt * prices[0] + completion * prices[1]) / 1e6, 8) if len(prices) == 2 else None


def _overridden(state: State, model: str, name: str) -> object:
    table = state.settings.get("model_overrides")
    row = table.get(model) if isinstance(table, dict) else None
    return row.get(name) if isinstance(row, dict) else None


def tools_raw(state: State, step: Step) -> float:
    """The raw estimate of the tool schemas that this step offers."""
    sizes = state.header.tools if state.header else {}
    return sum(size for name, size in sizes.items() if offers(step, name))


def offers(step: Step, tool: str) -> bool:
    """Whether the step offers this tool to the model; the plan tool always."""
    return step.tools is None or tool in step.tools or tool in context.PINNED


def percent(state: State, name: str, default: float) -> float:
    """A setting of `compaction`, as a share from 0 to 1."""
    table = state.settings.get("compaction")
    value = table.get(name) if isinstance(table, dict) else None
    return float(value) / 100 if isinstance(value, int | float) else default / 100
