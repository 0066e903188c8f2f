"""A tokenizer by name: its counts stand in the log, and whoever folds the log needs it no more."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from planrun import api
from planrun.core.context import PER_MESSAGE, entries
from planrun.core.events import Said
from planrun.counting import CountingJournal, counter
from planrun.errors import ConfigError
from planrun.session.store import records
from planrun.testing.model import call, done
from tests.runner.driving import Project, ask, ended, project, step

PLUGIN = "def words(model):\n    return lambda text: len(text.split())\n\n\ndef broken(model):\n    raise OSError(model)\n"
POINTS = "[planrun.estimators]\nwords = plugged:words\nbroken = plugged:broken\n"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with estimators, installed."""
    folder = tmp_path / "site"
    (folder / "plugged-1.dist-info").mkdir(parents=True)
    (folder / "plugged.py").write_text(PLUGIN)
    (folder / "plugged-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (folder / "plugged-1.dist-info" / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(folder)


def counting(folder: Path, name: str) -> Project:
    run = project(folder / "run", step("a"))
    run.settings(compaction={"estimator": name})
    return run


def test_counts_stand_in_the_log(tmp_path: Path, plugin: None) -> None:
    run = counting(tmp_path, "words")
    (run.folder / "text").write_text("one two three\n" * 50)
    result = run.run([call("Read", file_path="text"), done()], ask())
    assert ended(result) == ("finished", 0)
    said = [r.event for r in records(run.log) if isinstance(r.event, Said)]
    assert [e.counted for e in said if not e.tool_calls] == [len((e.content or "").split()) for e in said if not e.tool_calls]
    assert all(e.counted for e in said)
    view = api.load(run.log).view
    assert [e.raw for e in entries(view)] == [
        (e.counted or 0) + PER_MESSAGE * (1 + len(e.message.tool_calls)) for e in entries(view)
    ]
    assert view == result.state.view


def test_what_is_not_there(tmp_path: Path, plugin: None) -> None:
    for name, words in {
        "none": "there is no 'none' here; there are: broken, builtin, tiktoken, words",
        "broken": "OSError",
    }.items():
        run = counting(tmp_path, name)
        with pytest.raises(ConfigError, match=words):
            run.run([], ask())
        assert not run.log.exists()


def test_long_texts_are_counted_in_pieces() -> None:
    longest = 0

    def count(text: str) -> int:
        nonlocal longest
        longest = max(longest, len(text))
        return len(text)

    class Memory:
        kept: Said

        def append(self, event: Said) -> None:
            self.kept = event

    journal = Memory()
    CountingJournal(journal, count).append(Said("user", "a" * 1_000_000, "user"))  # type: ignore[arg-type]
    assert journal.kept.counted == 1_000_000
    assert longest < 100_000


def test_the_one_built_in_needs_nothing() -> None:
    assert counter("builtin", "gpt-4o") is None


@pytest.mark.skipif(importlib.util.find_spec("tiktoken") is not None, reason="tiktoken is installed")
def test_the_extra_is_named() -> None:
    with pytest.raises(ConfigError, match=r"pip install 'planrun\[tiktoken\]'"):
        counter("tiktoken", "gpt-4o")
