"""A project folder to stand in, and the command line to call in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from planrun.cli.main import cli
from planrun.testing.server import LoopbackServer, Script, done

Call = Callable[..., Result]
COMMANDS = """\
version: 1
name: commands
params: {word: hello}
steps:
  - {id: first, run: 'echo ${{ params.word }}', output: {said: string}}
  - {id: second, run: 'printf "%s\\n" "a b" "c"', output: {text: string}}
output: {said: '${{ steps.first.output.said }}', lines: '${{ steps.second.output.text }}'}
"""
PROMPT = "version: 1\nname: asked\nsteps:\n  - {id: one, title: Say it, prompt: Say it., output: {word: string}}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory; no settings of the user's, no CI, no endpoint."""
    for name in ("CI", "GITHUB_STEP_SUMMARY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PLANRUN_MODEL", "PLANRUN_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def planrun(project: Path) -> Call:
    """Calls the command line: `planrun("run", "plan.yaml", env={...})`."""

    def call(*args: str, **more: Any) -> Result:
        return CliRunner().invoke(cli, args, prog_name="planrun", **more)

    return call


@pytest.fixture
def plan(project: Path) -> Path:
    path = project / "plan.yaml"
    path.write_text(COMMANDS, encoding="utf-8")
    return path


@pytest.fixture
def served(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LoopbackServer]]:
    """`served(answer, …)` starts an endpoint with these answers, then `done`, and writes ask.yaml."""
    started: list[LoopbackServer] = []

    def serve(*answers: Any, plan: str = PROMPT) -> LoopbackServer:
        (project / "ask.yaml").write_text(plan, encoding="utf-8")
        server = LoopbackServer(Script(answers, fallback=lambda body: done({"word": "yes"})))
        server.__enter__()
        started.append(server)
        monkeypatch.setenv("OPENAI_API_KEY", "planrun-test-KEY-123456")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("PLANRUN_MODEL", "test-model")
        return server

    yield serve
    for server in started:
        server.__exit__(None, None, None)


def one_object(text: str) -> dict[str, Any]:
    """The text is exactly one JSON object."""
    found = json.loads(text)
    assert isinstance(found, dict)
    return found
