"""What records say: the lines of a run, and the laws of every line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis import given

from planrun import api
from planrun.core.edits import Cut, Drop, Edit, Elide, Insert, Shorten
from planrun.core.events import Compacted
from planrun.core.fold import apply
from planrun.core.records import Record
from planrun.core.state import State
from planrun.models.base import Retry
from planrun.testing.model import call, calls, done, say
from planrun.views.console import lines, retry_text
from planrun.views.edits import boundary
from planrun.views.line import Line
from planrun.views.logs import log_line
from planrun.views.result import result
from planrun.views.show import show
from tests.strategies import PLAN, events, runs
from tests.support import Scratch

TWO = """\
version: 1
name: two
window: 128000
steps:
  - {id: a, title: Look around, prompt: Look., output: {n: integer}}
  - {id: b, prompt: Write., verify: [{exists: [out.txt]}, {run: grep -q hi out.txt}], fix: 1}
"""
SCRIPT = [
    calls(("Bash", {"command": "head -c 3000 /dev/zero | tr '\\0' x"}), ("Read", {"file_path": "plan.yaml"})),
    say("Let me think."),
    call("Bash", command="git push"),
    done(n="x"),
    done(n=3),
    done(),
    call("Write", file_path="out.txt", content="hi\n"),
    done(),
]


def told(scratch: Scratch, script: list[object], **ask: object) -> list[Line]:
    found: list[Line] = []
    log: list[Path] = []

    def observe(record: Record, state: State) -> None:
        found.extend(lines(record, state, log[0]))

    def act(front: api.Front, seams: api.Seams) -> api.Result:
        watched = api.Front(observers=(observe,), opened=log.append)
        return api.run(
            scratch.plan_path, api.Ask(session="s"), watched, cwd=scratch.folder, environ=scratch.environ, seams=seams
        )

    scratch._drive(act, script, None)
    return found


def test_a_run_in_lines(tmp_path: Path) -> None:
    texts = [line.text for line in told(Scratch(tmp_path, TWO), list(SCRIPT)) if line.level <= 1]
    assert texts[0] == "session s of plan two, log in .thclaws/sessions/s.jsonl"
    assert texts[1] == "[1/2] a: started (Look around)"
    assert texts[2].startswith("[1/2] a: waiting for scripted (turn 1, ") and texts[2].endswith(" tokens)")
    wanted = [
        "[1/2] a: Bash head -c 3000 /dev/zero | tr '\\0' x",
        "[1/2] a: Read plan.yaml",
        "[1/2] a: reminded: Go on with step a by calling a tool. When it is done, call UpdatePlanStep.",
        "[1/2] a: Bash denied: Not allowed: git push",
        "[1/2] a: UpdatePlanStep refused: The output of step a is not accepted",
        "[1/2] a: done, ",
        "boundary before b: compact, ",
        "[2/2] b: started",
        "[2/2] b: checking that out.txt exists",
        "[2/2] b: check failed: expected a file that matches out.txt, found none.",
        "[2/2] b: Write out.txt",
        "[2/2] b: checking that out.txt exists",
        "[2/2] b: check passed",
        "[2/2] b: checking grep -q hi out.txt",
        "[2/2] b: check passed",
        "[2/2] b: done, ",
        "[2/2] b: check passed again, at the end",
        "finished in ",
    ]
    left = iter(texts)
    for start in wanted:
        assert any(text.startswith(start) for text in left), f"{start!r} is missing, or comes too early, in {texts}"
    assert not any("UpdatePlanStep refused: The step is not done" in text for text in texts), "a failed check is told once"


def test_what_stays_on_a_screen_is_what_is_done(tmp_path: Path) -> None:
    stays = [line.text for line in told(Scratch(tmp_path, TWO), list(SCRIPT)) if line.stays]
    assert [text.split(",")[0] for text in stays if ": done, " in text] == ["[1/2] a: done", "[2/2] b: done"]
    assert not any("waiting for" in text or "started" in text for text in stays)


def test_results_and_speech_are_for_those_who_ask(tmp_path: Path) -> None:
    verbose = [line.text for line in told(Scratch(tmp_path, TWO), list(SCRIPT)) if line.level == 2]
    assert "[1/2] a: says: Let me think." in verbose
    assert any(text.startswith("[1/2] a: Read -> ") for text in verbose)
    assert '  {"file_path": "out.txt", "content": "hi\\n"}' in verbose


def test_a_boundary_says_what_went_and_what_it_saved(tmp_path: Path) -> None:
    found = next(line.text for line in told(Scratch(tmp_path, TWO), list(SCRIPT)) if line.text.startswith("boundary"))
    head, strategy, what, sizes = found.split(", ", 3)[0], *found.split(": ")[1].split(", ", 2)
    assert (head, strategy) == ("boundary before b: compact", "compact")
    assert what == "1 tool result elided" or what.endswith("tool results elided")
    assert " -> " in sizes and sizes.endswith(" tokens")


def test_every_kind_of_edit_has_words() -> None:
    def words(*edits: Edit, before: int = 9, after: int = 9) -> str:
        return boundary(Compacted("ladder", "pressure", edits, 4, before, after, 4210, 1130))

    tail = "4,210 -> 1,130 tokens"
    assert words(Elide((3, 4)), Shorten((2,))) == (
        f"compaction (pressure): ladder, 2 tool results elided, 1 message shortened, {tail}"
    )
    assert words(Cut(3, 100)) == f"compaction (pressure): ladder, 1 long message cut, {tail}"
    assert words(Drop(2, 5), after=5) == f"compaction (pressure): ladder, 4 messages dropped, {tail}"
    assert words(Insert("…", 2, 5), after=6) == f"compaction (pressure): ladder, 4 messages dropped, {tail}"
    assert words(Insert("…", 2, 5, 1), after=6) == f"compaction (pressure): ladder, 4 messages summarised, {tail}"


def test_a_retry_says_which_how_long_and_why() -> None:
    shown = retry_text(Retry(2, 6, 4.0, "Rate limit\nreached\x1b[2J"), 3.2)
    assert shown == "retry 2 of 5 in 3.2s: Rate limit reached"


def _states(records: list[Record]) -> Iterator[tuple[Record, State]]:
    state = State()
    for record in records:
        state = apply(state, record, lambda header: PLAN)
        yield record, state


@given(runs())
def test_every_line_of_every_run_is_one_harmless_line(records: list[Record]) -> None:
    state = State()
    for record, state in _states(records):
        for line in lines(record, state, Path("/x/s.jsonl")):
            assert line.text and len(line.text.splitlines()) == 1
            assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in line.text)
    assert show(state, Path("/x/s.jsonl"), None)
    assert result(state, Path("/x/s.jsonl"))["session"] == "s"


@given(events)
def test_every_record_is_one_line_of_a_log(event: object) -> None:
    line = log_line(Record(7, 0.0, event))  # type: ignore[arg-type]
    assert line.startswith("    7  ") and len(line.splitlines()) == 1
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in line)


@given(runs())
def test_a_compaction_in_words_never_fails(records: list[Record]) -> None:
    for record, _ in _states(records):
        if record.event.type == "compaction":
            assert boundary(record.event).endswith(" tokens")  # type: ignore[arg-type]
