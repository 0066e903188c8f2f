"""`planrun doctor`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planrun.cli.kinds import FILE, TEXT, URL
from planrun.cli.options import session_dir_option, text_or_json

if TYPE_CHECKING:
    from planrun.session.store import Store


@click.command("doctor")
@click.argument("sessions", nargs=-1, type=TEXT, metavar="[SESSION|FILE]...")
@click.option("--repair", is_flag=True, help="Write a repaired copy of the one session that is named: ID-repaired.")
@click.option("-o", "--output", type=FILE, help="Where the repaired copy goes; never over a file that is there.")
@click.option("--endpoint", is_flag=True, help="Try the model's endpoint with two small requests; it says first what it sends.")
@click.option("--model", type=TEXT, help="Model to try, with --endpoint.")
@click.option("--base-url", type=URL, metavar="URL", help="Address to try, with --endpoint.")
@click.option(
    "--crash-test", is_flag=True, help="Cut the log of the one session that is named everywhere, and resume each cut."
)
@session_dir_option
@text_or_json
@click.pass_context
def command(
    ctx: click.Context,
    sessions: tuple[str, ...],
    repair: bool,
    output: Path | None,
    endpoint: bool,
    model: str | None,
    base_url: str | None,
    crash_test: bool,
    session_dir: Path | None,
    format: str,
) -> None:
    """Check session logs: every line, the numbers, the chain, what lies beside them. Nothing is changed in place.

    Without a name it is every session of this directory, and what was left over beside them. It says what is wrong at which
    line and what to do. The exit code is 5 where something is damaged.

    --crash-test cuts a copy of the log after each record, without its newline and in the middle of it, resumes each cut and
    compares what comes of it with the whole run. Nothing is run: model, tools, commands and people answer from the record.
    The exit code is 1 where a cut comes to something else.

    \b
    planrun doctor
    planrun doctor 20260131-0915 --repair && planrun resume 20260131-0915-repaired
    planrun doctor backup/session.jsonl --format json
    planrun doctor 20260131-0915 --crash-test
    planrun doctor --endpoint --model qwen3-coder
    """
    from planrun.cli.finding import store_of
    from planrun.errors import UsageError

    if (repair or output or crash_test) and len(sessions) != 1:
        raise UsageError(f"a {'crash test' if crash_test else 'repair'} is of one session: name it")
    if endpoint:
        from planrun.cli.trying import try_endpoint

        ctx.exit(try_endpoint(model, base_url, format))
    store = store_of(session_dir)
    paths = [_log(name, store) for name in sessions]
    if crash_test:
        from planrun.cli.crashing import crash_test as test

        ctx.exit(0 if test(paths[0], format) else 1)
    damaged = _repaired(paths[0], output, format) if repair or output else _checked(paths, store, format)
    ctx.exit(5 if damaged else 0)


def _log(name: str, store: Store) -> Path:
    """The log that a session's name, a unique beginning of it, or a path means. Raises UsageError."""
    path = Path(name)
    return path if os.sep in name or (path.suffix == ".jsonl" and path.exists()) else store.find(name)


def _checked(paths: list[Path], store: Store, format: str) -> bool:
    """Examine, and print what was found. True where something is damaged."""
    from planrun.cli.printing import complain, say, say_json
    from planrun.core.names import SPILL
    from planrun.doctor.findings import Finding, Report
    from planrun.doctor.folder import Saved, beside
    from planrun.doctor.log import examine
    from planrun.errors import SessionDamaged
    from planrun.planfile import read_plan
    from planrun.views import doctor as view

    here, saved, reports = Path.cwd(), Saved(), []
    for path in paths or sorted(store.folder.glob("*.jsonl")):
        try:
            reports.append(examine(path, read_plan, saved.look))
        except SessionDamaged as error:
            reports.append(Report(path, [Finding("unreadable", str(error))]))
        if format == "text":
            say(view.text(reports[-1], here))
    found = [] if paths else list(beside(store.folder, here / SPILL, saved))
    damaged = [r for r in reports if r.damaged]
    if format == "json":
        say_json(view.as_json(reports, found))
    elif found:
        say(view.beside(found, here))
    if format == "text" and len(reports) != 1:
        complain(f"{len(reports)} sessions, {len(damaged)} damaged" if reports else f"no sessions in {store.folder}")
    return bool(damaged)


def _repaired(path: Path, output: Path | None, format: str) -> bool:
    """Write the copy, examine it, and print what came of it. True where it is no session that can go on."""
    from planrun.cli.printing import complain, say, say_json
    from planrun.doctor.log import examine
    from planrun.doctor.repair import repair
    from planrun.planfile import read_plan
    from planrun.session.lock import busy, writer
    from planrun.views import doctor as view
    from planrun.views.words import one_line, plural

    who = writer(path)
    if who is not None:
        raise busy(path, who)
    copy = repair(path, output or path.with_name(f"{path.stem}-repaired.jsonl"), read_plan)
    report = examine(copy.path, read_plan)
    more = [f"and {copy.more:,} more"] if copy.more else []
    if format == "json":
        say_json(view.repaired(report, copy.lost, [*copy.told, *more]))
        return report.damaged
    for what in (*copy.told, *more):
        complain(one_line(what, 400))
    complain(f"{plural(copy.kept, 'record')} kept, {copy.lost} lost; {path} was not changed")
    say(view.text(report, Path.cwd()))
    if not report.damaged and report.outcome != "finished":
        complain(f"go on with: planrun resume {copy.path.stem}")
    return report.damaged
