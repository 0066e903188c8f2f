"""On a real terminal: the live screen, the question, Ctrl-C."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import COMMANDS
from tests.cli.processes import on_terminal

ASKING = "version: 1\nsteps:\n  - {id: a, title: 'T[red]t[/red]', run: echo, approve: before}\n  - {id: b, run: sleep 60}\n"
ESCAPE = "\x1b"
SGR = re.compile(r"\x1b\[[0-9;]*m")


def test_the_screen_shows_what_is_going_on_and_keeps_what_is_done(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(ASKING, encoding="utf-8")
    with on_terminal(tmp_path, "run", "plan.yaml", "--session", "s") as terminal:
        terminal.until("Allow it? [y/n] ")
        terminal.type("what\n")
        terminal.until("what\r\nAllow it? [y/n] ")
        terminal.type("y\n")
        terminal.until("running sleep 60")
        terminal.type("\x03")
        shown = terminal.rest()
    assert terminal.process.returncode == 130
    assert "approved by " in shown and "T[red]t[/red]" in shown
    assert re.search(r"done, \d", shown)
    assert "resume with: planrun resume s\r\n" in SGR.sub("", shown)
    assert f"{ESCAPE}[?25l" not in shown, "a hidden cursor stays hidden where the process is killed"
    assert f"{ESCAPE}[?1049h" not in shown


def test_no_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(ASKING, encoding="utf-8")
    with on_terminal(tmp_path, "run", "plan.yaml", "--session", "s") as terminal:
        terminal.until("Allow it? [y/n] ")
        terminal.type("no\n")
        shown = terminal.rest()
    assert terminal.process.returncode == 1 and "denied by " in shown


def test_ctrl_c_answers_the_question_too(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(ASKING, encoding="utf-8")
    with on_terminal(tmp_path, "run", "plan.yaml", "--session", "s") as terminal:
        terminal.until("Allow it? [y/n] ")
        terminal.process.send_signal(2)
        terminal.rest()
    assert terminal.process.returncode == 130


@pytest.mark.parametrize("env", [{"CI": "true"}, {"TERM": "dumb"}])
def test_lines_only_where_a_screen_is_not_wanted(tmp_path: Path, env: dict[str, str]) -> None:
    (tmp_path / "plan.yaml").write_text(COMMANDS, encoding="utf-8")
    with on_terminal(tmp_path, "run", "plan.yaml", env=env) as terminal:
        shown = terminal.rest()
    assert terminal.process.returncode == 0
    assert ESCAPE not in shown and "[1/2] first: started" in shown


def test_with_ci_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(ASKING, encoding="utf-8")
    with on_terminal(tmp_path, "run", "plan.yaml", env={"CI": "1"}) as terminal:
        shown = terminal.rest()
    assert terminal.process.returncode == 4 and "Allow it?" not in shown


def test_no_colour_where_it_is_not_wanted(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(COMMANDS, encoding="utf-8")
    with on_terminal(tmp_path, "run", "plan.yaml", env={"NO_COLOR": "1"}) as terminal:
        shown = terminal.rest()
    colours = {code for found in SGR.findall(shown) for code in found[2:-1].split(";") if code.startswith(("3", "4", "9"))}
    assert terminal.process.returncode == 0 and colours <= {"39", "49"}


@pytest.mark.parametrize("columns", ["20", "200"])
def test_a_narrow_and_a_wide_terminal(tmp_path: Path, columns: str) -> None:
    (tmp_path / "plan.yaml").write_text(COMMANDS, encoding="utf-8")
    with on_terminal(tmp_path, "run", "plan.yaml", env={"COLUMNS": columns, "LINES": "5"}) as terminal:
        shown = terminal.rest()
    assert terminal.process.returncode == 0 and "lines:" in shown
