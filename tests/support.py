"""What several tests need: a scratch project, a plan in it, runs with a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planrun import api
from planrun.models.base import Model, Reply
from planrun.testing.crash import CrashingJournal, Moment
from planrun.testing.model import ScriptedModel

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PLANRUN_MODEL": "scripted"}


@dataclass
class Scratch:
    """A working directory with a plan. `run` and `resume` drive it with a scripted model; `requests` are those of the last drive."""

    folder: Path
    plan: str
    environ: dict[str, str] = field(default_factory=lambda: dict(ENVIRON))
    notices: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.plan_path = self.folder / "plan.yaml"
        self.plan_path.write_text(self.plan, encoding="utf-8")

    @property
    def log(self) -> Path:
        return self.folder / ".thclaws" / "sessions" / "s.jsonl"

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_bytes().split(b"\n")[:-1]]

    def run(self, script: Any, ask: api.Ask | None = None, crash: tuple[int, Moment] | None = None) -> api.Result:
        ask = ask or api.Ask(session="s")
        return self._drive(
            lambda front, seams: api.run(self.plan_path, ask, front, cwd=self.folder, environ=self.environ, seams=seams),
            script,
            crash,
        )

    def resume(self, script: Any, ask: api.Ask | None = None, crash: tuple[int, Moment] | None = None) -> api.Result:
        return self._drive(
            lambda front, seams: api.resume("s", ask or api.Ask(), front, cwd=self.folder, environ=self.environ, seams=seams),
            script,
            crash,
        )

    def _drive(
        self, act: Callable[[api.Front, api.Seams], api.Result], script: Any, crash: tuple[int, Moment] | None
    ) -> api.Result:
        model: Model = script if hasattr(script, "complete") else ScriptedModel(script)
        self.requests = getattr(model, "requests", [])
        seams = api.Seams(models=lambda name: model)
        if crash is not None:
            at, moment = crash
            seams = api.Seams(models=lambda name: model, journal=lambda log: CrashingJournal(log, at, moment))
        return act(api.Front(notice=self.notices.append), seams)


Script = Callable[[dict[str, Any]], Reply]


def tool_results(messages: list[dict[str, Any]]) -> list[str]:
    """Contents of the tool results since the last user message."""
    last = max(i for i, m in enumerate(messages) if m["role"] == "user")
    return [m["content"] for m in messages[last:] if m["role"] == "tool"]


def last_user(messages: list[dict[str, Any]]) -> str:
    return str(next(m["content"] for m in reversed(messages) if m["role"] == "user"))
