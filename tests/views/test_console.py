"""Where lines go: screens that die, streams that are not Unicode, who is asked."""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given

from planrun.core.events import Session
from planrun.core.fold import apply
from planrun.core.records import Record
from planrun.core.state import State
from planrun.models.base import Retry
from planrun.views.board import board
from planrun.views.console import Plain, console, resume_command
from planrun.views.human import AtTerminal
from planrun.views.live import Activity, Live
from planrun.views.screen import Screen
from tests.strategies import PLAN, runs


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_a_screen_that_breaks_is_silent_from_then_on() -> None:
    screen = Screen(Broken())
    screen.line("one")
    screen.line("two")
    assert not screen.alive and not screen.isatty() and screen.lost == ""
    assert not Screen(None).alive


def test_a_screen_that_is_full_says_why() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        screen = Screen(full)
        screen.line("one")
        assert screen.lost == "No space left on device"


def test_what_an_encoding_cannot_carry_is_spelled() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Screen(stream).line("wait… “é” 中")
    assert raw.getvalue() == b'wait... "\\xe9" \\u4e2d\n'


@pytest.mark.parametrize(
    ("environ", "live"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "CI": "1"}, False), ({"TERM": "dumb"}, False), ({}, False)],
)
def test_a_live_screen_only_on_a_terminal_that_can(environ: dict[str, str], live: bool) -> None:
    assert isinstance(console(Tty(), environ, 1), Live) == live
    assert isinstance(console(io.StringIO(), environ, 1), Plain)
    assert isinstance(console(Tty(), environ, 0), Plain), "quiet needs no screen"


@given(runs())
def test_no_run_breaks_a_console(records: list[Record]) -> None:
    for stream, environ in ((Tty(), {"TERM": "xterm"}), (io.StringIO(), {}), (Broken(), {})):
        view = console(stream, environ, 2)
        state = State()
        view.opened(Path("/x/s.jsonl"))
        try:
            for record in records:
                state = apply(state, record, lambda header: PLAN)
                view(record, state)
                with view.paused():
                    view.notice("a notice\n")
            view.on_retry(Retry(1, 3, 2.0, "busy"))
        finally:
            view.close()


@given(runs())
def test_a_board_fits_its_terminal(records: list[Record]) -> None:
    state = State()
    for record in records:
        state = apply(state, record, lambda header: PLAN)
        for height in (3, 6, 24):
            rows = board(state, "waiting", 3.0, 10, height=height, unicode=False)
            assert len(rows) <= max(height, 5)
            assert all("\n" not in row.plain and row.plain[:1].isascii() for row in rows)


def test_what_is_waited_for_counts_up_and_a_pause_counts_down() -> None:
    assert Activity("waiting for m", since=10.0).shown(12.5) == "2.5s  waiting for m"
    pause = Activity("waiting for m", since=10.0, retry=Retry(1, 6, 4.0, "busy"))
    assert pause.shown(11.0) == "retry 1 of 5 in 3.0s: busy"
    assert pause.shown(15.0) == "1.0s  waiting for m"
    assert Activity().shown(1.0) == ""


def test_the_command_to_resume_names_a_folder_only_where_it_must() -> None:
    header = Session(1, "s", "/p", "/p/plan.yaml", "", "", {}, "m", {})
    state = apply(State(), Record(1, 0.0, header), lambda _: PLAN)
    assert resume_command(Path("/p/.thclaws/sessions/s.jsonl"), state) == "planrun resume s"
    assert resume_command(Path("/q r/s.jsonl"), state) == "planrun resume s --session-dir '/q r'"


@pytest.mark.parametrize(
    ("said", "yes"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("maybe\n\nno\n", False), ("", None), ("eh\n", None)],
)
def test_an_answer_is_yes_or_no_or_nobodys(said: str, yes: bool | None) -> None:
    asked = Tty()
    answer = AtTerminal(Tty(said), asked, {}, nullcontext).ask("Push?\x1b[2J\nReally?")
    assert (answer.yes if answer else None) == yes
    assert asked.getvalue().startswith("Push?\nReally?\nAllow it? [y/n] ")


def test_nobody_is_asked_without_a_terminal_or_with_ci() -> None:
    for source, stream, environ in (
        (io.StringIO("y\n"), Tty(), {}),
        (Tty("y\n"), io.StringIO(), {}),
        (Tty("y\n"), Tty(), {"CI": "true"}),
        (None, None, {}),
    ):
        assert AtTerminal(source, stream, environ, nullcontext).ask("Push?") is None
        assert stream is None or stream.getvalue() == ""
