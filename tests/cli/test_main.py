"""The entry: names of commands, plan files in their place, errors and exit codes."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from planrun.cli.main import cli
from planrun.cli.table import COMMANDS
from tests.cli.conftest import Call


def test_every_command_of_the_table_exists_and_explains_itself(planrun: Call) -> None:
    for name, entry in COMMANDS.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None and command.name == name, entry
        shown = planrun(name, "--help")
        assert shown.exit_code == 0
        assert f"planrun {name}" in shown.output.split("Options:")[0].split("\n\n", 1)[1], f"{name} has no example"


def test_help_lists_every_command_with_its_line(planrun: Call) -> None:
    shown = planrun("--help")
    assert shown.exit_code == 0
    assert all(line in shown.output for line in COMMANDS.values())


def test_an_unknown_command_is_a_usage_error_with_a_suggestion(planrun: Call) -> None:
    shown = planrun("rnu")
    assert shown.exit_code == 2
    assert "Did you mean 'run'?" in shown.stderr and shown.stdout == ""


def test_no_arguments_show_the_help(planrun: Call) -> None:
    assert "Commands:" in planrun().output


@pytest.mark.parametrize("name", ["plan.yaml", "./plan.yaml", "odd name"])
def test_a_plan_in_the_place_of_a_command_is_run(planrun: Call, plan: Path, name: str) -> None:
    if not (plan.parent / name).exists():
        (plan.parent / name).write_bytes(plan.read_bytes())
    shown = planrun(name, "-p", "word=there", "-q")
    assert shown.exit_code == 0
    assert "said: there" in shown.stdout


def test_a_plan_that_is_not_there_is_a_plan_error(planrun: Call) -> None:
    shown = planrun("nope.yaml")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr == "nope.yaml: no such file\n"


def test_a_command_wins_over_a_file_of_its_name(planrun: Call, project: Path) -> None:
    (project / "list").write_text("version: 1\n", encoding="utf-8")
    assert planrun("list").exit_code == 0
