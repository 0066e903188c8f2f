"""`planrun init`"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("init")
def command() -> None:
    """Write a starter plan (plan.yaml), .thclaws/settings.json and the lines that .gitignore needs, here.

    A file that is there already is left alone, and that is said.

    \b
    planrun init && planrun validate plan.yaml
    """
    from planrun.cli.printing import say
    from planrun.cli.starter import PLAN, SETTINGS
    from planrun.core import names
    from planrun.errors import UsageError

    try:
        say(_create(Path("plan.yaml"), PLAN))
        say(_create(Path(names.SETTINGS), SETTINGS))
        say(_ignore(Path(".gitignore")))
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror or error}") from error
    say("next: planrun run -n plan.yaml, then planrun run plan.yaml --model NAME")


def _create(path: Path, text: str) -> str:
    from planrun.writing import creating

    try:
        with creating(path.absolute()) as file:
            file.write(text.encode())
    except FileExistsError:
        return f"{path}: is there already, left alone"
    return f"{path}: written"


def _ignore(path: Path) -> str:
    """Add the lines that are missing; those that are there stay as they are."""
    from planrun.cli.starter import IGNORED
    from planrun.writing import atomic_write

    old = path.read_bytes() if path.exists() else b""
    known = {line.strip() for line in old.decode("utf-8", "replace").splitlines()}
    missing = [line for line in IGNORED if line not in known]
    if not missing:
        return f"{path}: has the lines already, left alone"
    glue = b"" if not old or old.endswith(b"\n") else b"\n"
    atomic_write(path.resolve(), old + glue + "".join(f"{line}\n" for line in missing).encode())
    return f"{path}: {', '.join(missing)} added"
