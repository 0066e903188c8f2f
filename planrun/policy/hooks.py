"""Hooks: commands of the user's that are told of an event and, at a gate, may refuse what is about to happen.

A hook is run by `/bin/sh -c` in the workspace and killed with its process group when its time is over. It reads one JSON
object from stdin; some of its fields also stand in the environment, as `PLANRUN_NAME` and as the `THCLAWS_NAME` that hooks
written for thClaws read. At a gate (`pre_*`) exit code 2 denies, with what the hook wrote to stderr as the reason; with
`failClosed` everything but exit code 0 denies. Any other failure is recorded and changes nothing.

A hook leaves its record when it is over, and the record changes no state: one that a crash cut off is not on record, and
where what it belongs to was not on record either, a resume runs it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planrun.core.events import Hooked
from planrun.core.messages import compact_json, well_formed
from planrun.core.plan import Json
from planrun.masking.masker import NOTHING, Masker
from planrun.settings import Hook
from planrun.tools.process import Finished, run_command
from planrun.tools.text import clip

GATES = frozenset({"pre_tool_use", "pre_compact"})
DENIES = 2  # the exit code
LONGEST_VALUE = 100_000  # bytes of an environment variable: Linux takes 128 KiB with the name (MAX_ARG_STRLEN)
KEPT = 500  # characters of a hook's output in its record
TOLD = 2_000  # characters of a reason that the model reads
_TERM_GRACE = 0.5  # seconds between TERM and KILL
_SHELL = ("/bin/sh", "-c", "--")
_SHARED = (
    "tool_name", "tool_input", "tool_output", "tool_error", "session_id", "model", "compact_messages", "compact_tokens"
)  # fmt: skip
_NAMES: Mapping[str, tuple[str, ...]] = {
    **{name: (f"PLANRUN_{name.upper()}", f"THCLAWS_{name.upper()}") for name in _SHARED},
    "event": ("PLANRUN_EVENT", "THCLAWS_HOOK_EVENT"),
    "step": ("PLANRUN_STEP",),
}
_OURS = frozenset(name for names in _NAMES.values() for name in names)


@dataclass(frozen=True, slots=True)
class Ran:
    """A hook that is over: its record, and why it denies, for the model; None where it does not."""

    event: Hooked
    denial: str | None = None


def run(
    hook: Hook, payload: Mapping[str, Json], *, workspace: Path, environment: Mapping[str, str], mask: Masker = NOTHING
) -> Ran:
    """Run one hook of the event that `payload` tells of. Nothing is raised for what the hook does or cannot do; what a signal
    handler raises passes through, after the kill."""
    event = str(payload["event"])
    finished = run_command(
        hook.command,
        cwd=workspace,
        env=_environment(payload, environment),
        timeout=hook.timeout,
        merge=False,
        term_grace=_TERM_GRACE,
        stdin=(well_formed(compact_json(payload)) + "\n").encode("utf-8"),
        interpreter=_SHELL,
        mask=mask,
    )
    if finished.fault:
        return _judged(hook, event, "error", 0.0, f"could not be started: {finished.fault}")
    said = _said(finished)
    if event in GATES and finished.exit_code == DENIES:
        return _denied(hook, event, finished.seconds, said or f"the hook `{hook.command}` gave no reason")
    if finished.exit_code == 0:
        return Ran(Hooked(event, hook.command, "ok", round(finished.seconds, 3), _kept(said)))
    status = "timeout" if finished.timed_out else "error"
    return _judged(hook, event, status, finished.seconds, ": ".join(filter(None, (_how(hook, finished), said))))


def _environment(payload: Mapping[str, Json], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a hook. A value that is too long for it is cut; stdin has the whole."""
    told = {name: _value(payload[key]) for key, names in _NAMES.items() if payload.get(key) is not None for name in names}
    return {**{name: value for name, value in environment.items() if name not in _OURS}, **told}


def _value(value: Json) -> str:
    text = value if isinstance(value, str) else compact_json(value)
    raw = well_formed(text.replace("\0", "")).encode("utf-8")
    return raw[:LONGEST_VALUE].decode("utf-8", "ignore")


def _said(finished: Finished) -> str:
    return next(filter(None, (stream.text(TOLD).strip() for stream in (finished.stderr, finished.stdout))), "")


def _how(hook: Hook, finished: Finished) -> str:
    if finished.timed_out:
        return f"was stopped after its timeout of {hook.timeout:g} s"
    return f"was killed by signal {finished.signal}" if finished.signal else f"exited with {finished.exit_code}"


def _judged(hook: Hook, event: str, status: str, seconds: float, text: str) -> Ran:
    """A hook that failed: at a gate with `failClosed` that denies."""
    if event in GATES and hook.fail_closed:
        return _denied(hook, event, seconds, f"the hook `{hook.command}` must allow it (failClosed), but {text}")
    return Ran(Hooked(event, hook.command, status, round(seconds, 3), _kept(text)))


def _denied(hook: Hook, event: str, seconds: float, reason: str) -> Ran:
    return Ran(Hooked(event, hook.command, "denied", round(seconds, 3), _kept(reason)), reason)


def _kept(text: str) -> str:
    return clip(text, KEPT, "the rest was not kept")
