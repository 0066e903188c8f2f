"""Every option and argument of every command, given what nobody means: one short message that names it, and nothing else."""

from __future__ import annotations

import os
import re
from pathlib import Path
from unicodedata import category

import click
import pytest
from click.testing import Result

from planrun.cli.main import cli
from planrun.cli.table import COMMANDS
from tests.cli.conftest import Call
from tests.fuzz.laws import hold

VALUES = {
    "empty": "", "blank": " ", "lines": "a\nb", "long": "x" * 100_000, "not UTF-8": "a\udcffb", "digits": "9" * 5_000,
    "nan": "NaN", "infinite": "1e400", "nothing": "1e-400", "zero": "0", "negative": "-1", "half": "0.5", "truth": "true",
    "deep": "[" * 50_000, "shell": "'\"`$(touch pwned)", "template": "%s{0}${{ x }}", "terminal": "\x1b[31m\u202e", "letters": "é中😀",
    "upwards": "../x", "above": "..", "here": ".", "dash": "-", "pair": "a=b", "address": "http://[", "device": "/dev/zero",
    "loop": "loop", "folder": "folder", "pipe": "pipe", "dangling": "dangling", "under a file": "plan.yaml/x",
}  # fmt: skip
CALLS = {  # of each command, one that ends well
    "run": ["run", "plan.yaml", "-q"], "resume": ["resume", "half", "-q"], "validate": ["validate", "plan.yaml"],
    "schema": ["schema"], "init": ["init"], "list": ["list"], "show": ["show"], "logs": ["logs"], "output": ["output", "s"],
    "context": ["context"], "compact": ["compact", "--dry-run"], "fork": ["fork", "s"], "search": ["search", "true"],
    "expand": ["expand", "a"], "doctor": ["doctor"], "config": ["config"],
}  # fmt: skip
PLAN = """\
name: doors
params: {p: x, n: {type: integer, default: 1}, o: {type: object, default: {}}}
steps:
- {id: a, run: echo 1, output: {t: string}}
- {id: b, run: echo 2}
"""


def parameters() -> list[tuple[str, str]]:
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    return [(name, p.name or "") for name, c in commands.items() if c for p in c.params if not getattr(p, "is_flag", False)]


@pytest.fixture
def doors(project: Path, planrun: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a finished session, an unfinished one, and names of everything that is no file."""
    inner = project / "in" / "side"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    Path("plan.yaml").write_text(PLAN)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nowhere/x")
    assert planrun("run", "plan.yaml", "-q", "--session", "half", "--until", "a").exit_code == 0
    assert planrun("run", "plan.yaml", "-q", "--session", "s").exit_code == 0
    return project


def told(planrun: Call, *args: str, env: dict[str, str] | None = None) -> Result:
    """What a call came to. It takes a second (on a slow machine five) and 200 MB at the most, and says what it has to say in a few plain lines."""
    results: list[Result] = []
    hold(lambda _: results.append(planrun(*args, env=env)), b"", patience=5)  # the machine may be slow
    (result,) = results
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    lines = result.stderr.splitlines()
    assert not re.search("internal error|Traceback|Errno", result.output)
    assert len(lines) <= 8 and all(len(line) < 1_200 for line in lines), lines
    assert [c for c in result.stderr if category(c) in ("Cc", "Cf", "Cs") and c != "\n"] == []
    undelivered = result.exit_code == 5 and "planrun: cannot write" in lines[-1]
    assert result.exit_code in (0, 2) or undelivered, (result.exit_code, lines)
    assert lines or result.exit_code == 0
    return result


def given(command: str, name: str, value: str) -> list[str]:
    found = cli.get_command(click.Context(cli), command)
    assert found is not None
    (parameter,) = [p for p in found.params if p.name == name]
    if isinstance(parameter, click.Option):
        option = parameter.opts[-1]
        return [*CALLS[command], f"{option}={value}" if option.startswith("--") else f"{option}{value}"]
    before = ["s"] if (command, name) == ("output", "name") else []
    return [command, *before, *(["--dry-run"] if command == "compact" else []), "--", value]


@pytest.mark.parametrize(("command", "name"), parameters())
def test_what_nobody_means(doors: Path, planrun: Call, command: str, name: str) -> None:
    around = sorted(p.name for p in doors.iterdir())
    for value in VALUES.values():
        args = given(command, name, value)
        if command == "doctor" and name == "sessions" and os.sep in value and value.isprintable() and len(value) < 1_000:
            assert planrun(*args).exit_code == 5  # a path that is no log is a finding
            continue
        if command == "doctor" and name in ("model", "base_url"):
            args.append("--crash-test")  # which wants a session first: nothing is sent anywhere
        told(planrun, *args)
    assert sorted(p.name for p in doors.iterdir()) == around and not Path("pwned").exists()


@pytest.mark.parametrize("name", [name for command, name in parameters() if command == "run"])
def test_what_nobody_means_in_the_environment(doors: Path, planrun: Call, name: str) -> None:
    """The message names the variable. An empty one is not set."""
    for value in VALUES.values():
        for variable in (f"PLANRUN_RUN_{name.upper()}", f"PLANRUN_{name.upper()}"):
            result = told(planrun, *CALLS["run"], "-n", env={variable: value})
            named = variable in result.stderr or name in (
                "plan",
                "params_file",
                "param",
                "until",
            )  # those are told by what is in them
            assert result.exit_code == 0 or (value and named), result.stderr
