from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.tools.paths import Refused, open_regular, resolve, shown
from planrun.writing import atomic_write


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    workspace = tmp_path.resolve() / "ws"
    (workspace / "dir").mkdir(parents=True)
    (workspace / "file").write_text("x")
    (tmp_path / "outside").mkdir()
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / "inner").symlink_to("dir")
    (workspace / "dangling").symlink_to(tmp_path / "outside" / "new.txt")
    (workspace / "nowhere").symlink_to("missing")
    (workspace / "loop").symlink_to("loop")
    os.mkfifo(workspace / "pipe")
    return workspace


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("file", "file"),
        ("./dir/../file", "file"),
        ("new/deep/name", "new/deep/name"),
        ("inner/new", "dir/new"),
        ("...", "..."),
        ("été", "été"),
    ],
)
def test_inside(ws: Path, text: str, expected: str) -> None:
    assert resolve(ws, text, write=True) == ws / expected
    assert resolve(ws, str(ws / text), write=False) == ws / expected
    assert shown(ws, ws / expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "../x",
        "/etc/passwd",
        "/",
        "dir/../../x",
        "link/x",
        "link",
        "dangling",
        "nowhere",
        "nowhere/x",
        "loop",
        "loop/x",
        "~",
        "~/x",
        "",
        "a\0b",
        "link/../x",
    ],
)
@pytest.mark.parametrize("write", [True, False])
def test_refused(ws: Path, text: str, write: bool) -> None:
    with pytest.raises(Refused):
        resolve(ws, text, write=write)


@pytest.mark.parametrize(
    "text", [".", "dir", "pipe", ".thclaws/x", ".thclaws/sessions/a.jsonl", ".THclaws/x", "dir/.thclaws/x"]
)
def test_refused_for_writing_only(ws: Path, text: str) -> None:
    resolve(ws, text, write=False)
    with pytest.raises(Refused):
        resolve(ws, text, write=True)


def test_protection_can_be_lifted(ws: Path) -> None:
    assert resolve(ws, ".thclaws/x", write=True, protected=()) == ws / ".thclaws/x"


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(["..", ".", "a", "link", "inner", "dangling", "/", "/etc", "~", "", "dir", "x\ud800"]), max_size=6)
)
def test_nothing_leaves_the_workspace(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.getbasetemp().resolve() / "confined"
    if not root.exists():
        (root / "ws" / "dir").mkdir(parents=True)
        (root / "ws" / "link").symlink_to(root)
        (root / "ws" / "inner").symlink_to("dir")
        (root / "ws" / "dangling").symlink_to("../away")
    try:
        found = resolve(root / "ws", "/".join(parts), write=False)
    except Refused:
        return
    assert found == Path(os.path.realpath(found))
    assert found == root / "ws" or root / "ws" in found.parents


def test_write_keeps_the_mode_and_makes_parents(ws: Path) -> None:
    script = ws / "script"
    script.write_text("old")
    script.chmod(0o751)
    atomic_write(script, b"new")
    assert (script.read_bytes(), stat.S_IMODE(script.stat().st_mode)) == (b"new", 0o751)
    umask = os.umask(0o027)
    try:
        atomic_write(ws / "a/b/c", b"deep")
        atomic_write(ws / "private", b"", mode=0o600)
    finally:
        os.umask(umask)
    assert (ws / "a/b/c").read_bytes() == b"deep"
    assert stat.S_IMODE((ws / "a/b/c").stat().st_mode) == 0o640
    assert stat.S_IMODE((ws / "private").stat().st_mode) == 0o600
    assert not [name for name in os.listdir(ws) if name.startswith(".planrun")]


@pytest.mark.skipif(sys.platform != "linux", reason="extended attributes by way of Linux")
def test_write_keeps_owner_and_attributes(ws: Path) -> None:
    try:
        os.setxattr(ws / "file", "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    if os.geteuid() == 0:
        os.chown(ws / "file", 1, 2)
    before = (ws / "file").stat()
    atomic_write(ws / "file", b"new")
    after = (ws / "file").stat()
    assert os.getxattr(ws / "file", "user.note") == b"kept"
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


def test_a_hard_link_outside_keeps_its_content(ws: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "linked"
    outside.write_text("theirs")
    os.link(outside, ws / "linked")
    atomic_write(resolve(ws, "linked", write=True), b"ours")
    assert (outside.read_text(), (ws / "linked").read_text()) == ("theirs", "ours")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(ws: Path) -> None:
    (ws / "file").write_text("old")
    before = sorted(os.listdir(ws))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError):
            atomic_write(ws / "file", b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert (ws / "file").read_text() == "old"
    assert sorted(os.listdir(ws)) == before


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")
def test_a_kill_in_the_middle_of_a_write_leaves_the_old_file_and_nothing_else(ws: Path) -> None:
    (ws / "file").write_text("old")
    before = sorted(os.listdir(ws))
    script = f"""
import resource, signal
from pathlib import Path
from planrun.writing import atomic_write
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # kills at the first byte over the limit
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
atomic_write(Path({str(ws / "file")!r}), b"x" * 5000)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -signal.SIGXFSZ
    assert (ws / "file").read_text() == "old"
    assert sorted(os.listdir(ws)) == before


def test_write_goes_through_a_link_inside(ws: Path) -> None:
    (ws / "alias").symlink_to("file")
    atomic_write(resolve(ws, "alias", write=True), b"via")
    assert (ws / "alias").is_symlink()
    assert (ws / "file").read_bytes() == b"via"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_read_only_file_is_not_replaced(ws: Path) -> None:
    (ws / "file").chmod(0o444)
    with pytest.raises(PermissionError):
        atomic_write(ws / "file", b"new")


def test_folder_that_became_a_link_is_refused(ws: Path, tmp_path: Path) -> None:
    target = resolve(ws, "dir/new", write=True)
    deep = resolve(ws, "dir/more/new", write=True)
    readable = resolve(ws, "dir/new", write=False)
    (ws / "dir").rmdir()
    (ws / "dir").symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / "new").write_text("secret")
    for path in (target, deep):
        with pytest.raises((Refused, OSError)):
            atomic_write(path, b"x")
    with pytest.raises((Refused, OSError)), open_regular(readable):
        pass
    assert (tmp_path / "outside" / "new").read_text() == "secret"
    assert os.listdir(tmp_path / "outside") == ["new"]


def test_race_of_links_never_escapes(ws: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    (ws / "real").mkdir()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):
                os.rename(ws / "real", ws / "away")
                os.symlink(tmp_path / "outside", ws / "real")
                os.unlink(ws / "real")
                os.rename(ws / "away", ws / "real")
            shutil.rmtree(ws / "away", ignore_errors=True)  # left where the writer made the folder anew meanwhile

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(300):
            try:
                atomic_write(resolve(ws, "real/sub/f", write=True), b"x")
            except (Refused, OSError):
                continue
    finally:
        stop.set()
        thread.join()
    assert os.listdir(tmp_path / "outside") == []


def test_open_regular_refuses_what_is_no_file(ws: Path) -> None:
    for name in ("dir", "pipe", "dangling"):
        with pytest.raises(Refused), open_regular(ws / name):
            pass
    with pytest.raises(FileNotFoundError), open_regular(ws / "nothing"):
        pass
