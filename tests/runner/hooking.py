"""What tests of hooks share: a project with hooks, and a hook that writes down what it was told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planrun.models.base import Reply
from planrun.testing.model import call
from tests.runner.driving import Project, Wire, project, step

TELL = "cat >> told"
LONG = "g" * 500  # a plan that holds it is longer than the placeholder of its text
READS = call("Read", file_path="plan.yaml")
LATER = (step("a"), step("b"))


def hooked(folder: Path, *steps: Wire, hooks: dict[str, Any], **head: Any) -> Project:
    run = project(folder, *(steps or (step("a"),)), **head)
    run.settings(hooks=hooks)
    return run


def told(run: Project) -> list[Wire]:
    """What hooks that do TELL were told, in order."""
    return [json.loads(line) for line in run.file("told").splitlines()]


def sh(command: str) -> Reply:
    return call("Bash", command=command)


def records(run: Project, event: str) -> list[Wire]:
    return [r for r in run.of("hook") if r["event"] == event]
