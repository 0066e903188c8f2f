"""The log: append-only, chained, one writer, torn only at its end."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.core.events import Ended, Event, Noted, Requested, Said, Session
from planrun.core.messages import well_formed
from planrun.errors import ConfigError, SessionBusy, SessionDamaged, StorageError
from planrun.masking.masker import NOTHING, Masker
from planrun.session import lock
from planrun.session import log as logs
from planrun.session.log import Clock, Log
from planrun.session.reader import GENESIS, Reader, line_digest
from planrun.session.store import records
from tests.cases_support import convert, texts

REPO = Path(__file__).parents[2]


def note(text: str) -> Noted:
    return Noted("notice", text)


def write(path: Path, *events: Event, mask: Masker = NOTHING) -> list[bytes]:
    log = logs.create(path, mask)
    for event in events:
        log.append(event)
    log.close()
    return lines(path)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")


@contextmanager
def reopened(path: Path) -> Iterator[tuple[Log, Reader, list[Event]]]:
    """The log opened again as a resume does it: locked, read, ready to append."""
    file = logs.open_locked(path)
    try:
        reader = Reader(file, path)
        read = [r.event for r in reader]
        yield logs.continue_at(file, path, reader, 0.0), reader, read
    finally:
        lock.release(file, path)


def read(path: Path) -> list[Event]:
    return [r.event for r in records(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s.jsonl"


def test_records_are_numbered_chained_and_one_a_line(path: Path) -> None:
    written = write(path, note("a"), note("b"), note("c"))
    assert written.pop() == b""
    bodies = [json.loads(line) for line in written]
    assert [b["seq"] for b in bodies] == [1, 2, 3]
    assert [b["prev"] for b in bodies] == [GENESIS, *map(line_digest, written[:2])]
    assert all(next(iter(b)) == "seq" and b["type"] == "note" and b["timestamp"] > 0 for b in bodies)


def test_the_log_is_for_its_owner_alone_and_never_taken_over(path: Path) -> None:
    write(path, note("a"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(ConfigError, match="File exists"):
        logs.create(path)


HEADER = Session(1, "s", "/w", "/w/p.yaml", "", "", {}, "m", {})


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.99])
def test_a_log_whose_first_record_was_never_whole_is_taken_over(path: Path, share: float) -> None:
    (line, _) = write(path, HEADER)
    path.write_bytes(line[: int(len(line) * share)])
    assert not logs.begun(path)
    log = logs.create(path)
    for event in (HEADER, Noted("notice", "x")):
        log.append(event)
        log.sync()
    assert log.size == path.stat().st_size
    log.close()
    assert read(path) == [HEADER, Noted("notice", "x")]


@pytest.mark.parametrize("content", [b"notes of my own", b"\n", b"x\n", b'{"seq":1,"type":"session",\n'])
def test_a_file_that_is_not_the_beginning_of_a_log_is_never_taken_over(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="File exists"):
        logs.create(path)
    assert path.read_bytes() == content


def test_a_log_that_is_just_being_begun_is_busy(path: Path) -> None:
    log = logs.create(path)
    with pytest.raises(SessionBusy):
        logs.create(path)
    log.close()


def _deleted(path: Path) -> None:
    path.unlink()


def _replaced(path: Path) -> None:
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def _without_its_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def _emptied(path: Path) -> None:
    os.truncate(path, 0)


def _written_to(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x\n")


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (_deleted, "No such file"),
        (_without_its_folder, "No such file"),
        (_replaced, "another file has taken its place"),
        (_emptied, "somebody else changed it"),
        (_written_to, "somebody else changed it"),
    ],
)
def test_nothing_relies_on_a_log_that_is_not_there_any_more(path: Path, happens: Callable[[Path], None], words: str) -> None:
    log = logs.create(path)
    log.append(note("a"))
    log.sync()
    happens(path)
    log.append(note("b"))
    for _ in range(2):
        with pytest.raises(StorageError, match=f"s.jsonl: .*{words}"):
            log.sync()
    log.close()


def test_a_note_of_the_owner_that_cannot_be_written_stops_nothing(path: Path) -> None:
    path.with_suffix(".lock").mkdir(parents=True)
    write(path, note("a"))
    with reopened(path) as (_, _, found):
        assert found == [note("a")]


def test_no_byte_is_ever_rewritten(path: Path) -> None:
    log = logs.create(path)
    before = b""
    for n in range(5):
        log.append(note("x" * n))
        log.sync()
        now = path.read_bytes()
        assert now.startswith(before)
        assert (log.start, log.size) == (len(before), len(now))
        before = now
    log.close()
    with reopened(path) as (again, _, _):
        again.append(note("later"))
    assert path.read_bytes().startswith(before)


def test_odd_texts_come_back_exactly_each_on_one_line(path: Path) -> None:
    odd = list(texts("SESS-04"))
    said = [Said("tool", text, "tool", tool_call_id="c") for text in odd]
    write(path, *said)
    assert read(path) == said
    assert path.read_bytes().count(b"\n") == len(odd)


@settings(max_examples=50)
@given(st.lists(st.text(st.characters()), min_size=1, max_size=5))
def test_any_text_is_one_line_and_comes_back_well_formed(some: list[str]) -> None:
    encoded: list[bytes] = []
    with open(os.devnull, "wb", buffering=0) as sink:
        log = Log(sink, Path("s.jsonl"), seq=0, prev=GENESIS, clock=Clock())
        for text in some:
            record = log.append(note(text))
            assert record.event == note(well_formed(text))
            encoded.append(log.prev.encode())
    assert len(set(encoded)) == len(some)


def test_time_never_goes_back(path: Path) -> None:
    write(path, note("a"))
    with reopened(path) as (_, reader, _):
        pass
    with open(os.devnull, "wb", buffering=0) as sink:
        future = Log(sink, path, seq=reader.seq, prev=reader.prev, clock=Clock(floor=4e9))
        assert future.append(note("b")).timestamp >= 4e9


def test_numbers_too_large_for_64_bits_stay_exact(path: Path) -> None:
    event = Ended("finished", 0, "done", output={"n": 2**200, "x": 0.1})
    write(path, event)
    assert read(path) == [event]


def test_secrets_are_masked_in_the_file_and_in_what_is_folded(path: Path) -> None:
    log = logs.create(path, Masker({"TOKEN": 'se"cret-value'}))
    record = log.append(note('the token is se"cret-value.'))
    log.close()
    assert record.event == note("the token is [secret TOKEN].") == read(path)[0]
    assert b"cret-value" not in path.read_bytes()


def test_half_a_character_is_replaced_when_written_and_when_read(path: Path, tmp_path: Path) -> None:
    log = logs.create(path)
    assert log.append(note("half \ud83d")).event == note("half \N{REPLACEMENT CHARACTER}")
    log.close()
    found = [r.event for r in records(convert("UNI-01", tmp_path))]
    assert isinstance(found[-1], Said)
    assert found[-1].content == "ready \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("left", range(1, 90, 8))
def test_a_torn_last_line_is_dropped_and_sealed(path: Path, left: int) -> None:
    *whole, last, _ = write(path, note("a"), note("b"), note("torn " * 10))
    path.write_bytes(b"\n".join([*whole, last[:left]]))
    assert read(path) == [note("a"), note("b")]
    with reopened(path) as (log, reader, found):
        assert (found, reader.torn) == ([note("a"), note("b")], last[:left])
        log.append(note("c"))
    assert read(path) == [note("a"), note("b"), note("c")]


def test_zeros_that_a_power_loss_left_are_torn_too(path: Path) -> None:
    write(path, note("a"))
    with path.open("ab") as file:
        file.write(bytes(4096))
    with reopened(path) as (log, reader, _):
        assert len(reader.torn) == 4096
        log.append(note("b"))
    assert read(path) == [note("a"), note("b")]


def _zeros(line: bytes) -> bytes:
    return bytes(len(line) - 20) + line[-20:]


REQUEST = Requested("d", 1, 1, 1, "a")


@pytest.mark.parametrize(
    "behind", [[], [note("c")], [note("c"), REQUEST]], ids=["nothing", "a note", "what was about to be sent"]
)
def test_pages_that_a_power_loss_did_not_write_are_torn_with_all_behind_them(path: Path, behind: list[Event]) -> None:
    a, b, *rest = write(path, note("a"), note("b" * 50), *behind)
    path.write_bytes(b"\n".join([a, _zeros(b), *rest]))
    with reopened(path) as (log, reader, found):
        assert found == [note("a")]
        assert reader.torn == b"\n".join([_zeros(b), *rest])
        log.append(note("d"))
    assert read(path) == [note("a"), note("d")]


def test_zeros_before_what_was_synced_are_damage(path: Path) -> None:
    a, b, *rest = write(path, note("a"), note("b" * 50), REQUEST, note("c"))
    path.write_bytes(b"\n".join([a, _zeros(b), *rest]))
    with pytest.raises(SessionDamaged, match="line 2"), reopened(path):
        pass


def test_a_whole_record_without_its_newline_is_kept(path: Path) -> None:
    write(path, note("a"), note("b"))
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    with reopened(path) as (log, reader, found):
        assert found == [note("a"), note("b")]
        assert reader.torn == b""
        log.append(note("c"))
    assert read(path) == [note("a"), note("b"), note("c")]


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (lambda a, b, c: [a, b[:20], c], 2, "not a record"),
        (lambda a, b, c: [a, b"", b, c], 2, "not a record"),
        (lambda a, b, c: [a, b"[]", c], 2, "not a record"),
        (lambda a, b, c: [a, b"[" * 100_000, c], 2, "not a record"),
        (lambda a, b, c: [a, b'{"seq":2,"type":"note"}', c], 2, "not a record"),
        (lambda a, b, c: [a, b.replace(b"beta", b"BETA"), c], 3, "line 2 was altered"),
        (lambda a, b, c: [a, b, b, c], 3, "missing or doubled"),
        (lambda a, b, c: [a, c], 2, "missing or doubled"),
        (lambda a, b, c: [b, c], 1, "missing or doubled"),
        (lambda a, b, c: [a, c, b], 2, "missing or doubled"),
    ],
    ids=["torn", "blank", "other", "deep", "half", "altered", "doubled", "missing", "beheaded", "swapped"],
)
def test_a_bad_line_elsewhere_is_named_and_nothing_changes(path: Path, change: object, line: int, words: str) -> None:
    a, b, c, _ = write(path, note("alpha"), note("beta"), note("gamma"))
    path.write_bytes(b"\n".join([*change(a, b, c), b""]))  # type: ignore[operator]
    before = path.read_bytes()
    with pytest.raises(SessionDamaged, match=words) as caught, reopened(path):
        pass
    assert (caught.value.line, caught.value.exit_code) == (line, 5)
    assert f"line {line}" in str(caught.value)
    assert path.read_bytes() == before


def test_a_directory_a_dangling_link_and_a_pipe_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, why in (("folder", "Is a directory"), ("dangling", "No such file"), ("pipe", "not a regular file")):
        with pytest.raises(SessionDamaged, match=f"{name}.jsonl: .*{why}"):
            logs.open_locked(tmp_path / f"{name}.jsonl")


def test_a_folder_that_cannot_hold_a_log_is_named_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file/s.jsonl: .*--session-dir"):
        logs.create(tmp_path / "file" / "s.jsonl")


def test_a_reader_may_begin_in_the_middle(path: Path) -> None:
    a, b, _ = write(path, note("a"), note("b"))
    with path.open("rb") as file:
        tail = Reader(file, path, offset=len(a) + 1, seq=1, prev=line_digest(a))
        assert [(r.seq, r.event) for r in tail] == [(2, note("b"))]
        assert (tail.offset, tail.prev) == (len(a) + len(b) + 2, line_digest(b))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_after_a_failed_write_nothing_more_is_written(tmp_path: Path) -> None:
    with Path("/dev/full").open("ab", buffering=0) as full:
        log = Log(full, tmp_path / "s.jsonl", seq=0, prev=GENESIS, clock=Clock())
        with pytest.raises(StorageError, match=r"s.jsonl: No space left.*then resume"):
            log.append(note("a"))
        for again in (lambda: log.append(note("b")), log.sync):
            with pytest.raises(StorageError, match="No space left"):
                again()
        assert (log.size, log.prev) == (0, GENESIS)


LIMITED = """
import resource, signal, sys
from pathlib import Path
from planrun.core.events import Noted
from planrun.errors import StorageError
from planrun.session import log as logs
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
log = logs.create(Path(sys.argv[1]))
try:
    for n in range(1000):
        log.append(Noted("notice", str(n)))
except StorageError as error:
    print(n, error.exit_code, error)
log.close()
"""


def test_a_disk_that_fills_up_in_the_middle_of_a_line_stops_the_writer(path: Path) -> None:
    done = run(LIMITED, path)
    count, code, message = done.stdout.split(" ", 2)
    assert (code, done.stderr) == ("5", "")
    assert "cannot write the session log" in message
    assert path.stat().st_size == 5000
    assert [e.text for e in read(path) if isinstance(e, Noted)] == [str(n) for n in range(int(count))]
    with reopened(path) as (log, reader, found):
        assert reader.torn
        log.append(note("mended"))
    assert len(read(path)) == len(found) + 1


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


RESUMING = """
import sys
from pathlib import Path
from planrun.core.events import Noted
from planrun.errors import SessionBusy
from planrun.session import log as logs
from planrun.session.reader import Reader
path = Path(sys.argv[1])
try:
    file = logs.open_locked(path)
except SessionBusy as error:
    print(error.exit_code, error, flush=True)
    sys.exit()
reader = Reader(file, path)
list(reader)
log = logs.continue_at(file, path, reader, 0.0)
log.append(Noted("notice", sys.argv[2]))
print("runs", flush=True)
sys.stdin.read()
log.close()
"""


def start(path: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RESUMING, str(path), name]
    return subprocess.Popen(command, cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_two_processes_one_runs_and_the_other_adds_no_byte(path: Path, tmp_path: Path) -> None:
    write(path, Session(1, "s", "/w", "/w/p.yaml", "", "", {}, "m", {}))
    link = tmp_path / "link"
    link.symlink_to(path.parent, target_is_directory=True)
    both = [start(path, "first"), start(link / "s.jsonl", "second")]
    with both[0] as one, both[1] as two:
        said = [(p.stdout.readline() if p.stdout else "") for p in (one, two)]
        winner = said.index("runs\n")
        assert said[1 - winner] == (
            f"5 session s is being run by pid {both[winner].pid} on {socket.gethostname()}; wait for it or stop it first\n"
        )
        with pytest.raises(SessionBusy, match=f"pid {both[winner].pid} on"):
            logs.open_locked(link / "s.jsonl")
    assert [e.text for e in read(path)[1:] if isinstance(e, Noted)] == [("first", "second")[winner]]
    assert not path.with_suffix(".lock").exists()


def test_a_killed_writer_holds_nothing(path: Path) -> None:
    write(path, note("a"))
    with start(path, "killed") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        process.kill()
        process.wait()
    with reopened(path) as (log, _, found):
        assert found == [note("a"), note("killed")]
        log.append(note("b"))
    assert read(path)[-1] == note("b")
