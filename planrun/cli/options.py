"""Options that several commands share, and how they read the environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from planrun.cli.kinds import COUNT, FILE, FOLDER, TEXT, TIME, URL, USD
from planrun.core.plan import STRATEGIES
from planrun.errors import Outcome

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("text", "json", "jsonl")


class Option(click.Option):
    """An option that reads `PLANRUN_<COMMAND>_<NAME>`, and says so where the value is wrong."""

    def variables(self, ctx: click.Context) -> tuple[str, ...]:
        """The variables that it reads, the first that is not empty counts."""
        return (f"{ctx.auto_envvar_prefix}_{(self.name or '').upper()}",)

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        return next(filter(None, map(os.environ.get, self.variables(ctx))), None)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        if ctx is None or ctx.get_parameter_source(self.name or "") is not ParameterSource.ENVIRONMENT:
            return super().get_error_hint(ctx)
        return next(filter(os.environ.get, self.variables(ctx)))


class Shared(Option):
    """One that also reads `PLANRUN_<NAME>`."""

    def variables(self, ctx: click.Context) -> tuple[str, ...]:
        return (*super().variables(ctx), f"PLANRUN_{(self.name or '').upper()}")


session_dir_option = click.option(
    "--session-dir", cls=Shared, type=FOLDER, help="The folder of session logs; .thclaws/sessions by default."
)
# The settings read PLANRUN_<NAME> of these themselves, and say so where they tell where a value comes from.
_SETTINGS = (
    click.option("--model", cls=Option, type=TEXT, help="Model to use, over the plan's own."),
    click.option(
        "--base-url",
        cls=Option,
        type=URL,
        metavar="URL",
        help="Address of an OpenAI-compatible endpoint; OPENAI_API_KEY is its key.",
    ),
    click.option(
        "--context", cls=Option, type=click.Choice(STRATEGIES), help="What a step sees of earlier ones when it starts."
    ),
    click.option("--window", cls=Option, type=COUNT, help="The model's context window in tokens."),
    click.option("--max-cost", cls=Option, type=USD, help="Stop before the run costs more."),
    click.option("--max-tokens", cls=Option, type=COUNT, help="Stop before the run uses more tokens."),
    click.option("--max-time", cls=Option, type=TIME, help="Stop after this time, such as 90m or 1h30m."),
    click.option("--max-turns", cls=Option, type=COUNT, help="Stop after this many turns."),
)
_RUNNING = (
    click.option("--until", cls=Shared, type=TEXT, metavar="STEP", help="Stop after this step."),
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
    session_dir_option,
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
    return click.option("--format", cls=Option, type=choice, default="text", show_default=True, help="For people, or as JSON.")(
        command
    )


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
