"""Every row of the table of faults, through a whole run: real HTTP, the real layers, only the sleeping left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from planrun import api
from planrun.models.base import ModelRequest, Reply, Retry
from planrun.models.openai import OpenAIModel
from planrun.models.retry import RetryingModel
from planrun.testing.server import LoopbackServer
from tests.models.table import TABLE, Row
from tests.pairs import problems
from tests.runner.driving import Project, ended, project, reason, step

KEY = "planrun-test-KEY-123456"


@dataclass
class Driven:
    """A finished run: what it sent, what it was told about retries, what it slept."""

    run: Project
    result: api.Result
    server: LoopbackServer
    told: list[Retry] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    @property
    def sent(self) -> list[list[dict[str, Any]]]:
        return [body["messages"] for body in self.server.bodies]

    @property
    def results(self) -> list[str]:
        return [m["content"] for m in self.sent[-1] if m["role"] == "tool"]


class Patience:
    """Gives up soon on the answers that never come, and waits long for all others."""

    def __init__(self, url: str, row: Row) -> None:
        silent = len(row.answers) if row.says.startswith("silent") else 0
        self._models = iter([OpenAIModel(url, KEY, read_timeout=0.5)] * silent)
        self._patient = OpenAIModel(url, KEY)

    def complete(self, request: ModelRequest) -> Reply:
        return next(self._models, self._patient).complete(request)


def drive(folder: Path, row: Row) -> Driven:
    run = project(folder, step("a"))
    told: list[Retry] = []
    waits: list[float] = []
    with LoopbackServer(row.answers) as server:
        model = RetryingModel(Patience(server.url, row), sleep=waits.append)
        result = api.run(
            run.plan_path,
            api.Ask(session="s"),
            api.Front(on_retry=told.append),
            cwd=folder,
            environ={**run.environ, "OPENAI_API_KEY": KEY},
            seams=api.Seams(models=lambda name: model),
        )
    return Driven(run, result, server, told, waits)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_fault(tmp_path: Path, row: Row) -> None:
    driven = drive(tmp_path, row)
    assert ended(driven.result) == row.ended, reason(driven.result)
    assert len(driven.server.requests) == (row.requests or len(row.answers) + 1)
    assert driven.result.state.spend.requests == len(driven.server.requests)
    assert [f for sent in driven.sent for f in problems(sent, alternate=True)] == []
    log = driven.run.log.read_text("utf-8")
    assert KEY not in log and "<html" not in log.lower()
    assert list(_contradictions(row, driven)) == []


def _contradictions(row: Row, driven: Driven) -> Iterator[str]:
    """What of the row's `then` and `says` does not hold."""
    sent, retried = driven.sent, len(driven.told)
    nudges = [m["content"] for m in sent[-1] if m["role"] == "user"][1:]
    said = {
        "again": [t.reason for t in driven.told],
        "told": driven.results,
        "ends": [reason(driven.result)],
    }.get(row.then, [json.dumps(sent[-1], ensure_ascii=False)])
    if not any(row.says in text for text in said):
        yield f"{row.says!r} is not in {said}"
    if retried != (len(row.answers) - (row.then == "ends") if row.then == "again" or len(row.answers) > 2 else 0):
        yield f"{retried} retries"
    if len(driven.waits) != retried:
        yield f"{driven.waits}"
    if row.then in ("again", "asks") and any(s != sent[0] for s in sent):
        yield "the messages changed"
    if (row.then == "nudge") != bool(nudges):
        yield f"nudges: {nudges}"
    if row.then == "told" and (driven.run.folder / "x").exists():
        yield "the call was run"
    if row.then == "runs" and not driven.results:
        yield "nothing was run"
