"""Law 2 for the disk: what was announced was durable before, whatever is lost of the rest; a log that cannot be written stops a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import StorageError
from planrun.session.log import begun
from planrun.session.store import records
from planrun.testing.crash import LOSSES, REFUSALS, Crash, PowerCut, Refusal, RefusingJournal
from tests.crash.test_crash import PLAN, effects, script
from tests.runner.driving import Project

HOOKS = {"pre_tool_use": "echo x >> hooks", "step_end": "echo x >> hooks"}
EFFECTS = ["a", "c", "fix", "tidy", "two"]


def project(folder: Path) -> Project:
    made = Project(folder, PLAN)
    made.settings(hooks=HOOKS)
    return made


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Project:
    whole = project(tmp_path_factory.mktemp("unbroken") / "p")
    whole.run(script)
    return whole


@pytest.mark.parametrize("block", range(8))
def test_what_was_announced_survives_a_power_cut(unbroken: Project, tmp_path: Path, block: int) -> None:
    """At every record; the kinds of loss take turns, two at each."""
    total = len(unbroken.records())
    for at in range(1 + block, total + 1, 8):
        for loss in (LOSSES[at % 4], LOSSES[(at + 1 + at // 4 % 3) % 4]):
            cut = project(tmp_path / f"{at}-{loss}")
            cut.journal = lambda log, at=at, loss=loss: PowerCut(log, at, loss)  # type: ignore[misc]
            with pytest.raises(Crash):
                cut.run(script)
            _announced(cut)
            _goes_on(cut, f"record {at} of {total}, {loss}")


def _announced(cut: Project) -> None:
    """Every request that was sent and every effect of a command is on record in what is left."""
    left = _whole(cut.log)
    assert sum(r["type"] == "request" for r in left) >= len(cut.requests)
    ran = sum(r["type"] == "tool_start" and r["name"] in ("Bash", "run") for r in left)
    done = (cut.folder / "effects").read_text().split() if (cut.folder / "effects").exists() else []
    assert ran >= len(done)


def _whole(log: Path) -> list[dict[str, Any]]:
    lines = []
    for line in log.read_bytes().split(b"\n"):
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def _goes_on(cut: Project, where: str) -> None:
    cut.journal = None
    result = cut.resume(script) if begun(cut.log) and _whole(cut.log) else cut.run(script)
    assert result.state.ended is not None and result.state.ended.outcome == "finished", where
    assert result.state.ended.output == {"text": "hello again"}, where
    assert effects(cut.folder) == EFFECTS, where
    assert list(records(cut.log)), where


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_log_that_cannot_be_written_stops_the_run_at_once(unbroken: Project, tmp_path: Path, refusal: Refusal) -> None:
    total = len(unbroken.records())
    for at in range(1, total, 4):
        broken = project(tmp_path / f"{at}")
        made: list[RefusingJournal] = []

        def journal(log: Any, at: int = at, made: list[RefusingJournal] = made) -> RefusingJournal:
            made.append(RefusingJournal(log, at, refusal))
            return made[0]

        broken.journal = journal
        try:
            broken.run(script)
        except StorageError as error:
            assert error.exit_code == 5 and str(broken.log) in str(error)
        else:
            assert refusal == "sync" and not made[0].refused, at  # there are fewer syncs than records
            break
        assert made[0].refused == 1, f"{at}: after the first refusal nothing is tried"
        _announced(broken)
        _goes_on(broken, f"{refusal} at {at} of {total}")
