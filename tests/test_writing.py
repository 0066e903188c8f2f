"""Files are whole or not there, whatever cuts off their making."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planrun.writing import creating, try_write

# A signal kills it at the first byte over the limit.
KILLED = """
import resource, signal, sys
from pathlib import Path
from planrun import writing
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
with writing.creating(Path(sys.argv[1])) as file:
    file.write(b"x" * 500_000)
"""


def test_what_is_created_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "deep" / "file"
    with creating(path, mode=0o600) as file:
        file.write(b"half")
        file.flush()
        assert not path.exists()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"half", 0o600)
    with pytest.raises(KeyError), creating(path.with_name("other")) as file:
        raise KeyError
    assert os.listdir(path.parent) == ["file"]


def test_what_is_created_takes_no_files_place(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "file"
    with pytest.raises(FileExistsError), creating(path):
        path.write_bytes(b"theirs")
    with pytest.raises(FileExistsError), creating(path):
        pass
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"theirs", ["file"])


def test_a_try_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "file"
    try_write(path)
    assert os.listdir(tmp_path) == []
    path.mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        try_write(path)


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are Linux's")
def test_a_kill_leaves_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED, str(tmp_path.resolve() / "file")]
    done = subprocess.run(argv, cwd=Path(__file__).parents[1], check=False)
    assert done.returncode == -signal.SIGXFSZ
    assert os.listdir(tmp_path) == []
