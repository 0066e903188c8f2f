"""Options that several commands share, and how they read the environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from planrun.core.plan import Strategy
from planrun.core.units import duration, integer, number
from planrun.errors import Outcome

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("text", "json", "jsonl")


class Shared(click.Option):
    """An option that reads `PLANRUN_<COMMAND>_<NAME>` and then `PLANRUN_<NAME>`."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        return super().resolve_envvar_value(ctx) or os.environ.get(f"PLANRUN_{(self.name or '').upper()}") or None


class Amount(click.ParamType):  # type: ignore[type-arg]  # generic in the newest releases only
    """A positive value in one of the spellings that plans and settings take."""

    def __init__(self, name: str, read: Callable[[object], float]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            found = self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not isinstance(found, int | float) or found <= 0:
            self.fail(f"expected more than 0, found {value}", param, ctx)
        return found


COUNT, USD, TIME = Amount("N", integer), Amount("USD", number), Amount("TIME", duration)
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

session_dir = click.option(
    "--session-dir", cls=Shared, type=FOLDER, help="The folder of session logs; .thclaws/sessions by default."
)
# The settings read PLANRUN_<NAME> of these themselves, and say so where they tell where a value comes from.
_SETTINGS = (
    click.option("--model", help="Model to use, over the plan's own."),
    click.option("--base-url", metavar="URL", help="Address of an OpenAI-compatible endpoint; OPENAI_API_KEY is its key."),
    click.option("--context", type=click.Choice(get_args(Strategy)), help="What a step sees of earlier ones when it starts."),
    click.option("--window", type=COUNT, help="The model's context window in tokens."),
    click.option("--max-cost", type=USD, help="Stop before the run costs more."),
    click.option("--max-tokens", type=COUNT, help="Stop before the run uses more tokens."),
    click.option("--max-time", type=TIME, help="Stop after this time, such as 90m or 1h30m."),
    click.option("--max-turns", type=COUNT, help="Stop after this many turns."),
)
_RUNNING = (
    click.option("--until", cls=Shared, metavar="STEP", help="Stop after this step."),
    click.option(
        "--approve",
        cls=Shared,
        type=click.Choice(["all", "none", "ask"]),
        default="ask",
        show_default=True,
        help="Who answers approvals: yes to all, nobody, or you on the terminal.",
    ),
    click.option(
        "--wait-limit",
        cls=Shared,
        type=TIME,
        help="Where the endpoint names the time at which its limit resets, wait for it up to this long, such as 2h; --max-time still holds.",
    ),
    session_dir,
    click.option(
        "--format",
        cls=Shared,
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="On stdout: the plan's outputs, one JSON object at the end, or each record as it is written.",
    ),
    click.option("--summary", cls=Shared, type=FILE, help="Write the result as JSON to this file."),
    click.option("--junit", cls=Shared, type=FILE, help="Write the result as JUnit XML to this file."),
    click.option("-q", "--quiet", cls=Shared, is_flag=True, help="Only errors and how it ended."),
    click.option("-v", "--verbose", cls=Shared, is_flag=True, help="Also arguments, results and what the model says."),
)


def run_options(command: F) -> F:
    """The options of `run` and `resume`."""
    for option in reversed((*_SETTINGS, *_RUNNING)):
        command = option(command)
    return command


def text_or_json(command: F) -> F:
    choice = click.Choice(["text", "json"])
    return click.option("--format", type=choice, default="text", show_default=True, help="For people, or as JSON.")(command)


class RunCommand(click.Command):
    """A command that answers wrong arguments in the form that was asked for, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if _wants_json(given, self.name or ""):
                from planrun.views.result import refused

                sys.stdout.write(json.dumps(refused(Outcome.USAGE, 2, error.format_message())) + "\n")
            raise


def _wants_json(args: list[str], name: str) -> bool:
    if "--format=json" in args or ("--format", "json") in pairwise(args):
        return True
    return not any(a.startswith("--format") for a in args) and "json" in (
        os.environ.get(f"PLANRUN_{name.upper()}_FORMAT"),
        os.environ.get("PLANRUN_FORMAT"),
    )
