"""What the plan's own commands, checks and hooks come to: they are run here, and files are looked at, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from planrun.core import outputs
from planrun.core.actions import FileOutput, RunCommand, Verify
from planrun.core.events import CallEnded
from planrun.core.messages import CallStatus
from planrun.core.plan import ExistsCheck, Json, RunCheck, Step, UnchangedCheck
from planrun.core.state import State
from planrun.policy import hooks
from planrun.runner import files
from planrun.runner.commands import RUN_TIMEOUT, STOPPED_TIMEOUT, VERIFY_TIMEOUT, execute, how_it_ended
from planrun.runner.world import World
from planrun.settings import Hook
from planrun.tools import scratch
from planrun.tools.process import Finished

SHOWN = 2_000  # characters of a check's output that the model gets
KEPT = 4_000  # characters of a run step's output that the log keeps


class RealActs:
    """Acts on this machine."""

    def run(self, world: World, state: State, action: RunCommand, call_id: str) -> CallEnded:
        step = state.need_plan().step(action.step)
        usual = RUN_TIMEOUT if state.stop is None else STOPPED_TIMEOUT
        with scratch.directory(world.spill, "run") as folder:
            extra = folder / "output"
            extra.touch()
            values = {**dict(action.values), "PLANRUN_OUTPUT": str(extra)}
            timeout = step.timeout or usual
            finished, cut_off = execute(world, state, step, action.command, values, timeout, "command", (extra.parent,))
            written, faults = files.left_in(extra)
        if cut_off:
            return CallEnded(call_id, "run", "interrupted", round(finished.seconds, 3), step.id)
        return _ran(step, call_id, finished, written, faults)

    def judge(self, world: World, state: State, action: Verify) -> tuple[CallStatus, str, float | None]:
        step, here = state.need_plan().step(action.step), world.workspace
        match action.check:
            case RunCheck(timeout=timeout):
                return _command(world, state, action, step, timeout or VERIFY_TIMEOUT)
            case ExistsCheck(patterns):
                missing = [p for p in patterns if not files.matches(here, [p])]
                wrong = "".join(f"expected a file that matches {p}, found none. " for p in missing)
            case UnchangedCheck(patterns):
                before, now = state.step_state(step.id).baseline or {}, files.digests(here, list(patterns))
                change = files.difference(before, now, list(patterns))
                wrong = f"expected no change to {', '.join(patterns)}; found: {change}" if change else ""
            case FileOutput(field):
                there = files.describe(here, field.path or "") is not None
                wrong = "" if there else f"expected the file {field.path} (output {field.name}), found none"
            case _:
                assert_never(action.check)
        return "error" if wrong else "ok", wrong, None

    def baseline(self, world: World, step: Step) -> dict[str, str]:
        patterns = [p for c in step.verify if isinstance(c, UnchangedCheck) for p in c.unchanged]
        return files.digests(world.workspace, patterns)

    def describe(self, world: World, step: str, path: str) -> dict[str, Json] | None:
        return files.describe(world.workspace, path)

    def hook(self, world: World, hook: Hook, payload: Mapping[str, Json]) -> hooks.Ran:
        return hooks.run(hook, payload, workspace=world.workspace, environment=world.environment, mask=world.mask)


def _command(world: World, state: State, action: Verify, step: Step, timeout: float) -> tuple[CallStatus, str, float | None]:
    world.log.sync()
    finished, cut_off = execute(world, state, step, action.command, dict(action.values), timeout, "check")
    seconds = round(finished.seconds, 3)
    if cut_off or finished.exit_code == 0:
        return "interrupted" if cut_off else "ok", "", seconds
    said = finished.stdout.text(SHOWN).strip()
    what = f"`{_one_line(action.shown)}` {how_it_ended(finished)}; expected exit code 0"
    return "error", f"{said}\n({what})" if said else what, seconds


def _ran(step: Step, call_id: str, finished: Finished, written: str, faults: tuple[str, ...]) -> CallEnded:
    stdout = finished.stdout.text(1 << 20)
    shown = "\n".join(filter(None, (finished.stdout.text(KEPT).strip(), finished.stderr.text(KEPT).strip())))
    seconds = round(finished.seconds, 3)
    if finished.exit_code != 0:
        status: CallStatus = "timeout" if finished.timed_out else "error"
        text = f"`{_one_line(step.run or '')}` {how_it_ended(finished)}; expected exit code 0.\n{shown or '(no output)'}"
        return CallEnded(call_id, "run", status, seconds, step.id, text)
    if not faults:
        output, faults = outputs.from_run(step.handed_in, stdout, written)
    return CallEnded(call_id, "run", "ok", seconds, step.id, shown, None if faults else output, faults)


def _one_line(command: str) -> str:
    first, *rest = command.strip().split("\n")
    return first[:120] + ("…" if rest or len(first) > 120 else "")
