"""Commands that the plan itself runs: what `run` and `verify` have in common."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from planrun.core import budget
from planrun.core.expressions import render
from planrun.core.plan import Step
from planrun.core.room import room_of
from planrun.core.scope import scope_of
from planrun.core.state import State
from planrun.runner.world import World
from planrun.tools.base import ToolContext
from planrun.tools.process import Finished, run_command

RESULT = 50_000  # characters of a result that a model gets, at most
LEAST_RESULT = 2_000
SHARE, CHARACTERS = 0.4, 2.5  # of the room for messages that one result may take, at so many characters a token
RUN_TIMEOUT = 3600.0  # seconds that a run step may take where it says nothing
STOPPED_TIMEOUT = 300.0  # the same under `finally`, once a limit has stopped the run
VERIFY_TIMEOUT = 600.0


def environment_of(world: World, state: State, step: Step) -> dict[str, str]:
    """The environment of a step's commands: the runner's, and what the step's `env` adds (rendered)."""
    extra = {name: render(value, scope_of(state)) for name, value in step.env}
    return {**world.environment, **extra}


def context_of(world: World, state: State, step: Step) -> ToolContext:
    left = budget.time_left(state, step)
    deadline = None if left is None else time.monotonic() + left
    return ToolContext(
        workspace=world.workspace,
        spill=world.spill,
        env=environment_of(world, state, step),
        deadline=deadline,
        limit=max(LEAST_RESULT, min(RESULT, int(room_of(state, step).budget * SHARE * CHARACTERS))),
        protected=world.permissions.protected(),
        sandbox=world.sandbox.prefix() if world.sandbox else (),
        history=world.history,
        mask=world.mask,
    )


def execute(
    world: World,
    state: State,
    step: Step,
    command: str,
    values: Mapping[str, str],
    timeout: float,
    doing: budget.Work,
    writable: tuple[Path, ...] = (),
) -> tuple[Finished, bool]:
    """Run a command of the plan in the workspace, bounded by its own timeout and by what the limits leave. True says that it was one
    of these limits that cut it off. What a check prints on both channels is one text. In a sandbox the command may write into
    the folders `writable` too."""
    left = budget.time_left(state, step, doing)
    bound = timeout if left is None else min(timeout, left)
    env = {**environment_of(world, state, step), **values}
    prefix = world.sandbox.prefix(*writable) if world.sandbox else ()
    finished = world.signals.abandonable(
        lambda: run_command(
            command, cwd=world.workspace, env=env, timeout=bound, merge=doing == "check", prefix=prefix, mask=world.mask
        )
    )
    return finished, finished.timed_out and bound < timeout


def how_it_ended(finished: Finished) -> str:
    if finished.fault:
        return f"could not be run: {finished.fault}"
    if finished.timed_out:
        return f"was stopped after {finished.seconds:.0f} s"
    if finished.signal is not None:
        return f"was killed by signal {finished.signal}"
    return f"exited with {finished.exit_code}"
