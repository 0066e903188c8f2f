"""The command line's entry: which commands there are, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

import click

from planrun import __version__
from planrun.cli.table import COMMANDS

_PLAN_SUFFIXES = (".yaml", ".yml")


class Commands(click.Group):
    """A group that knows its commands' names and help texts, and imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"planrun.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """`planrun PLAN.yaml` is `planrun run PLAN.yaml`."""
        name = args[0]
        if name in COMMANDS or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        # pathlib takes longer to import than this module.
        if name.endswith(_PLAN_SUFFIXES) or os.path.isfile(name):
            return "run", self.get_command(ctx, "run"), args
        from planrun.core.units import shown

        raise click.UsageError(f"there is no command {shown(name)}, and no file of that name.{_suggestion(name)}", ctx)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; whatever goes wrong leaves here as a message on stderr and an exit code."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            from planrun.errors import one_line

            raise click.UsageError(one_line(error.format_message()), error.ctx) from None
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            ctx.exit(_explained(ctx, error))


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, 1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _say(text: str) -> None:
    from planrun.masking.masker import Masker
    from planrun.views.screen import Screen
    from planrun.views.words import block

    Screen(sys.stderr).line(block(Masker({"OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY", "")})(text)))


def _explained(ctx: click.Context, error: Exception) -> int:
    """The exit code of an error, once it has been told."""
    from planrun.errors import PlanInvalid, PlanrunError, known

    if isinstance(error, PlanrunError | OSError):
        # Faults of a file begin with their place, so that an editor or a terminal can jump to it.
        _say(str(error) if isinstance(error, PlanInvalid) else f"planrun: {known(error)}")
        return known(error).exit_code
    log = ctx.meta.get("planrun.log")
    where = f"; the log is at {log}" if log else ""
    _say(f"planrun: internal error: {type(error).__name__}: {error}{where}")
    if os.environ.get("PLANRUN_DEBUG") or ctx.meta.get("planrun.verbose"):
        import traceback

        _say("".join(traceback.format_exception(error)))
    else:
        _say("PLANRUN_DEBUG=1 shows where it happened; please report it")
    return 1


@click.group(
    cls=Commands,
    context_settings={"auto_envvar_prefix": "PLANRUN", "help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`planrun COMMAND --help` says more. `planrun PLAN.yaml` is short for `planrun run PLAN.yaml`.\n\n"
    "Exit codes: 0 finished, 1 the work failed, 2 nothing ran (plan, settings, key), 3 a limit, 4 a human is needed, 5 the session "
    "cannot be used, 75 the endpoint failed, 130/143/129 interrupted.",
)
@click.version_option(__version__, prog_name="planrun", message="%(prog)s %(version)s")
def cli() -> None:
    """Run a plan: steps that a language model or a shell command carries out one after another, unattended, with a full
    record, resumable after any crash. OPENAI_BASE_URL and OPENAI_API_KEY are the endpoint.

    \b
    planrun init                      a starter plan
    planrun run plan.yaml             run it
    planrun resume                    go on where it stopped
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        from planrun.errors import UsageError

        raise UsageError("the working directory is not there any more: change to one that is") from None


def main(args: list[str] | None = None) -> Any:
    """The entry point. Never returns: it ends the process with the command's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupted)
    _prepare_streams()
    return cli.main(args, prog_name="planrun")


def _interrupted(number: int, frame: FrameType | None) -> NoReturn:
    """What a signal does before a run takes over and after it: end the process, whatever it is doing. Nothing there is worth
    saving, and an exception could come up inside an import or a library that makes another error of it."""
    with contextlib.suppress(OSError):
        os.write(2, b"planrun: interrupted\n")
    os._exit(128 + number)


def _prepare_streams() -> None:
    """A closed descriptor would be taken by the next file that is opened, the log among them; and no character may be
    one that a stream cannot carry."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
