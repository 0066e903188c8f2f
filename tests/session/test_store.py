"""The folder of sessions: which one is meant, and never another one by guess."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from planrun.core.events import Ended, Event, Noted, Session
from planrun.errors import SessionDamaged, UsageError
from planrun.session import log as logs
from planrun.session.store import Store, new_id, records
from tests.cases_support import convert


def header(name: str, cwd: str = "/w") -> Session:
    return Session(1, name, cwd, f"{cwd}/plan.yaml", "steps: []", "d", {}, "m", {})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "sessions")


def add(store: Store, name: str, *events: Event, cwd: str = "/w") -> Path:
    log = logs.create(store.path(name))
    for event in (header(name, cwd), *events):
        log.append(event)
    log.close()
    return log.path


FINISHED = Ended("finished", 0, "every step is done", {"x": 1})


def test_a_unique_beginning_is_enough(store: Store) -> None:
    for name in ("alpha-1", "alpha-2", "beta"):
        add(store, name)
    assert store.find("b") == store.path("beta")
    assert store.find("alpha-2") == store.path("alpha-2")
    with pytest.raises(UsageError, match="several sessions: alpha-1, alpha-2"):
        store.find("alpha")
    with pytest.raises(UsageError, match="no session 'gamma' in .*there are: alpha-1, alpha-2, beta"):
        store.find("gamma")


def test_a_whole_name_wins_over_a_longer_one(store: Store) -> None:
    add(store, "run")
    add(store, "run-2")
    assert store.find("run") == store.path("run")


def test_without_any_session_the_error_says_so(store: Store) -> None:
    with pytest.raises(UsageError, match="there are none yet"):
        store.find("x")
    with pytest.raises(UsageError, match="no unfinished session of /w"):
        store.newest_unfinished(Path("/w"))


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a..b", "x" * 65, "a b", "a\n", "-x"])
def test_a_name_cannot_lead_out_of_the_folder(store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="expected a session's name"):
        store.path(name)


def test_new_names_are_names(store: Store) -> None:
    assert store.path(new_id()).parent == store.folder


def test_only_unfinished_sessions_of_this_directory_count(store: Store) -> None:
    add(store, "part", Ended("finished", 0, "stopped after step a", partial=True))
    add(store, "done", FINISHED)
    add(store, "elsewhere", cwd="/other")
    assert store.newest_unfinished(Path("/w")) == store.path("part")
    found = {f.id: f.finished for f in store.all()}
    assert found == {"part": False, "done": True, "elsewhere": False}


def test_sessions_of_one_age_are_listed_instead_of_guessed(store: Store) -> None:
    path = add(store, "a")
    shutil.copy(path, store.path("b"))
    with pytest.raises(UsageError, match="equally new, name one: a, b") as caught:
        store.newest_unfinished(Path("/w"))
    assert caught.value.exit_code == 2


def test_one_that_cannot_be_read_may_be_the_newest(store: Store) -> None:
    add(store, "a")
    (store.folder / "b.jsonl").mkdir()
    os.utime(store.folder / "b.jsonl", (4e9, 4e9))
    with pytest.raises(
        UsageError, match=r"b.jsonl: it is a folder, no file; it may be the newest session: name the one to resume"
    ):
        store.newest_unfinished(Path("/w"))
    os.utime(store.folder / "b.jsonl", (1, 1))
    assert store.newest_unfinished(Path("/w")) == store.path("a")


def test_two_directories_that_look_alike_are_two(store: Store) -> None:  # RES-07
    store.folder.mkdir()
    for case, name in (("RES-07a", "s-a"), ("RES-07b", "s-b")):
        convert(case, store.folder).rename(store.path(name))
    add(store, "newest", cwd="/tmp/pr/web-ui")
    assert store.newest_unfinished(Path("/tmp/pr/web/ui")) == store.path("s-a")
    assert store.newest_unfinished(Path("/tmp/pr/web-ui")) == store.path("newest")
    with pytest.raises(UsageError) as caught:
        store.newest_unfinished(Path("/tmp/pr"))
    assert caught.value.exit_code == 2
    assert "s-a (/tmp/pr/web/ui), s-b (/tmp/pr/web-ui)" in str(caught.value)
    assert store.look(store.find("s-a")).header.cwd == "/tmp/pr/web/ui"


def test_a_directory_in_the_place_of_the_log_is_an_error_and_no_fresh_start(store: Store) -> None:  # IO-01
    store.path("d").mkdir(parents=True)
    assert store.find("d") == store.path("d")
    with pytest.raises(SessionDamaged, match="d.jsonl: it is a folder, no file"):
        store.look(store.path("d"))
    with pytest.raises(SessionDamaged, match="d.jsonl: it is a folder, no file"):
        list(records(store.path("d")))
    assert store.all() == []


def test_a_dangling_link_is_not_absent(store: Store) -> None:  # IO-01
    store.folder.mkdir()
    store.path("l").symlink_to(store.folder / "nowhere")
    assert store.find("l") == store.path("l")
    with pytest.raises(SessionDamaged, match="No such file"):
        store.look(store.path("l"))


def test_a_file_that_is_no_session_is_passed_over_but_named_when_meant(store: Store) -> None:
    add(store, "good")
    for name, text in (("junk", "hello\n"), ("empty", ""), ("other", '{"seq":1,"type":"note","kind":"x","timestamp":1}\n')):
        store.path(name).write_text(text)
        with pytest.raises(SessionDamaged, match="line 1: it is not the header") as caught:
            store.look(store.path(name))
        assert caught.value.line == 1
    assert [f.id for f in store.all()] == ["good"]


@pytest.mark.parametrize("size", [10, 70_000, 400_000])
def test_an_end_is_seen_however_long_its_record_is(store: Store, size: int) -> None:
    path = add(store, "s", Noted("notice", "n" * size), Ended("finished", 0, "done", {"x": "y" * size}))
    found = store.look(path)
    assert found.finished
    assert found.ended is not None
    assert found.started <= found.touched


def test_a_torn_last_line_leaves_a_session_unfinished(store: Store) -> None:
    path = add(store, "s", FINISHED)
    with path.open("ab") as file:
        file.write(b'{"seq":3,"type":"no')
    assert not store.look(path).finished
    assert [r.event for r in records(path)] == [header("s"), FINISHED]
