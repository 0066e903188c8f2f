"""`planrun run -n`: everything that a run checks, then what it would do. Nothing is written and nothing is spent."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from planrun import api
from planrun.cli.delivering import Shown
from planrun.cli.printing import complain, say, say_json
from planrun.core.fold import apply
from planrun.core.records import Record
from planrun.core.state import State
from planrun.errors import PlanrunError
from planrun.views import preview
from planrun.views.result import refused
from planrun.views.words import one_line


def dry_run(plan_path: Path, ask: Callable[[], api.Ask], shown: Shown) -> None:
    """Print the preview. Raises PlanrunError where a run would not start."""
    try:
        header, settings, _ = api.prepare(plan_path, ask(), cwd=Path.cwd(), environ=os.environ)
    except PlanrunError as error:
        if shown.format == "json":
            say_json(refused(str(error.outcome), error.exit_code, str(error)))
        raise
    for warning in settings.warnings:
        complain(f"planrun: {one_line(warning, 400)}")
    state = apply(State(), Record(1, 0.0, header), api.read_plan)
    if shown.format == "text":
        say(preview.text(state))
    else:
        say_json(preview.as_json(state))
