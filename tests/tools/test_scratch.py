"""Files of a moment: gone when they are done with, and found where a kill left them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planrun.tools import scratch


def dead() -> int:
    """The number of a process that is no more."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_directory_is_there_for_a_moment(tmp_path: Path) -> None:
    with scratch.directory(tmp_path / "spill", "run") as folder:
        (folder / "output").write_text("x=1\n")
        assert folder.parent == tmp_path / "spill" and folder.stat().st_mode & 0o777 == 0o700
    assert os.listdir(tmp_path / "spill") == []


def test_where_the_folder_cannot_be_used_the_system_has_one(tmp_path: Path) -> None:
    (tmp_path / "spill").write_text("a file")
    with scratch.directory(tmp_path / "spill", "run") as folder:
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.parametrize("pid", [dead(), 2**70], ids=["dead", "absurd"])
def test_what_the_dead_left_is_swept(tmp_path: Path, pid: int) -> None:
    (tmp_path / f".bash-{pid}-140.part").write_text("half")
    (tmp_path / f".run-{pid}-140.part.err").write_text("half")
    (tmp_path / f".run-{pid}-ab_c.part").mkdir()
    (tmp_path / f".run-{pid}-ab_c.part" / "output").write_text("x=1")
    scratch.sweep(tmp_path)
    assert os.listdir(tmp_path) == []


def test_what_others_have_stays(tmp_path: Path) -> None:
    kept = [f".bash-{os.getpid()}-1.part", ".bash-1-1.part", f"bash-{dead()}-1.part", ".part", "bash-5bc81dbc42fe.txt"]
    for name in kept:
        (tmp_path / name).write_text("x")
    (tmp_path / f".run-{dead()}-1.part").symlink_to(tmp_path.parent, target_is_directory=True)
    scratch.sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(kept) and tmp_path.exists()
    scratch.sweep(tmp_path / "nowhere")
