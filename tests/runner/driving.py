"""Runs with a scripted model that refuses what a strict endpoint would refuse, in every test here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planrun import api
from planrun.models.base import Model, ModelRequest, Reply
from planrun.runner.world import Answered, Journal
from planrun.session.log import Log
from planrun.settings import Flags
from planrun.testing.crash import CrashingJournal, Moment
from planrun.testing.model import ScriptedModel
from tests.pairs import problems
from tests.support import Scratch

Wire = dict[str, Any]
DONE = {"role": "assistant", "content": "Step {} is done."}


class Strict(ScriptedModel):
    """A scripted model in front of which stands the check of messages, in its strictest form."""

    def complete(self, request: ModelRequest) -> Reply:
        found = problems(json.loads(request.body)["messages"], alternate=True)
        assert found == [], found
        return super().complete(request)


@dataclass
class Yes:
    """A human who gives the same answer to everything and remembers what was asked."""

    answer: bool = True
    asked: list[str] = field(default_factory=list)

    def ask(self, question: str) -> Answered | None:
        self.asked.append(question)
        return Answered(self.answer, "me")


@dataclass
class Project(Scratch):
    """A scratch project whose models are strict. `human` answers approvals; `journal` may stand before the log."""

    human: Yes | None = None
    journal: Callable[[Log], Journal] | None = None
    usage: bool = True

    def _drive(
        self, act: Callable[[api.Front, api.Seams], api.Result], script: Any, crash: tuple[int, Moment] | None
    ) -> api.Result:
        model: Model = script if hasattr(script, "complete") else Strict(script, self.usage)
        self.requests = getattr(model, "requests", [])
        journal: Callable[[Log], Journal] = self.journal or (lambda log: log)
        if crash is not None:
            at, moment = crash
            journal = lambda log: CrashingJournal(log, at, moment)  # noqa: E731
        return act(
            api.Front(notice=self.notices.append, human=self.human), api.Seams(models=lambda name: model, journal=journal)
        )

    def messages(self, request: int = -1) -> list[Wire]:
        found: list[Wire] = self.requests[request]["messages"]
        return found

    def settings(self, **values: Any) -> None:
        path = self.folder / ".thclaws" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")

    def rewrite(self, *steps: Wire, **head: Any) -> None:
        """Another plan in the place of the first."""
        self.plan_path.write_text(json.dumps({"name": "p", "steps": list(steps), **head}, ensure_ascii=False), encoding="utf-8")

    def of(self, kind: str) -> list[Wire]:
        return [r for r in self.records() if r["type"] == kind]

    def file(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


def project(folder: Path, *steps: Wire, **head: Any) -> Project:
    """A project with a plan of these steps (JSON is YAML too)."""
    return Project(folder, json.dumps({"name": "p", "window": 128_000, "steps": list(steps), **head}, ensure_ascii=False))


def step(name: str, prompt: str = "Work.", **more: Any) -> Wire:
    return {"id": name, "prompt": prompt, **more}


def shell(name: str, command: str, **more: Any) -> Wire:
    return {"id": name, "run": command, **more}


def ask(**more: Any) -> api.Ask:
    """What a first run asks for; `flags` as a mapping."""
    flags = Flags(**more.pop("flags", {}))
    return api.Ask(flags=flags, session="s", **more)


def again(**more: Any) -> api.Ask:
    """What a resume asks for."""
    flags = Flags(**more.pop("flags", {}))
    return api.Ask(flags=flags, **more)


def ended(result: api.Result) -> tuple[str, int]:
    """How it ended: outcome and exit code."""
    end = result.state.ended
    assert end is not None
    return str(end.outcome), end.exit_code


def reason(result: api.Result) -> str:
    assert result.state.ended is not None
    return result.state.ended.reason


def statuses(result: api.Result) -> list[str]:
    return [s.status for s in result.state.steps]


def contents(messages: list[Wire], role: str) -> list[str]:
    return [m["content"] for m in messages if m["role"] == role]


def last_result(messages: list[Wire]) -> str:
    return contents(messages, "tool")[-1]
