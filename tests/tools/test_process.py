from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from planrun.masking.masker import NOTHING
from planrun.tools.process import Finished, kill_all, run_command

ENV = {"PATH": os.environ["PATH"]}

BEGUN = 3.0  # seconds in which a shell has surely done its first lines, before it is stopped


def run(command: str, cwd: Path, timeout: float = 60, **more: Any) -> Finished:
    return run_command(command, cwd=cwd, env=ENV, timeout=timeout, **more)


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], check=False, capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def gone(pid: int, within: float = 30.0) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.01)
    return False


def pid_in(path: Path, within: float = 30.0) -> int:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text().strip()):
            return int(text)
        time.sleep(0.01)
    raise AssertionError("the command did not start")


def test_merged_in_order_and_apart(tmp_path: Path) -> None:
    merged = run("echo a; echo b >&2; echo c; exit 3", tmp_path)
    assert (merged.exit_code, merged.signal, merged.timed_out) == (3, None, False)
    assert merged.stdout.head == b"a\nb\nc\n"
    apart = run("echo a; echo b >&2; echo c", tmp_path, merge=False)
    assert (apart.stdout.head, apart.stderr.head) == (b"a\nc\n", b"b\n")


def test_killed_by_a_signal(tmp_path: Path) -> None:
    finished = run("kill -9 $$", tmp_path)
    assert (finished.exit_code, finished.signal) == (None, 9)


def test_no_input_no_terminal_and_no_unknown_child(tmp_path: Path) -> None:
    assert run("cat; read x; echo got:$x", tmp_path).stdout.head == b"got:\n"
    assert run("exec 3</dev/tty", tmp_path).exit_code != 0
    waits = f"exec {sys.executable} -c 'import os; os.wait()'"
    assert b"ChildProcessError" in run(waits, tmp_path).stdout.head


def test_keeps_head_and_tail_and_saves_all(tmp_path: Path) -> None:
    finished = run("seq 1 100000", tmp_path, head=100, tail=100, capture=tmp_path / "all")
    whole = "".join(f"{i}\n" for i in range(1, 100_001)).encode()
    output = finished.stdout
    assert (output.head, output.tail, output.total) == (whole[:100], whole[-100:], len(whole))
    assert output.saved == tmp_path / "all"
    assert (tmp_path / "all").read_bytes() == whole
    assert (tmp_path / "all").stat().st_mode & 0o777 == 0o600
    assert not run("echo short", tmp_path, capture=tmp_path / "none").stdout.saved
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 21, 65536])
def test_ring_boundaries(tmp_path: Path, length: int) -> None:
    whole = b"0123456789" * 6554
    (tmp_path / "in").write_bytes(whole[:length])
    output = run("cat in", tmp_path, head=10, tail=10).stdout
    assert output.total == length
    assert output.head == whole[:length][:10]
    assert output.tail == whole[:length][10:][-10:]
    assert output.omitted == max(0, length - 20)


def test_a_gigabyte_does_not_stay_in_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    finished = run("head -c 1000000000 /dev/zero | tr '\\0' x", tmp_path, timeout=300, capture=tmp_path / "all")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert finished.stdout.total == 1_000_000_000
    assert (tmp_path / "all").stat().st_size == finished.stdout.saved_bytes == (64 << 20) - NOTHING.reach
    assert (after - before) * (1 if sys.platform == "darwin" else 1024) < 50 << 20


def test_endless_output_ends_with_the_timeout(tmp_path: Path) -> None:
    finished = run("yes", tmp_path, timeout=BEGUN)
    assert finished.timed_out
    assert finished.exit_code is None
    assert finished.seconds < 30
    assert finished.stdout.total > 1 << 20


def test_timeout_kills_what_ignores_term(tmp_path: Path) -> None:
    command = "trap '' TERM; (trap '' TERM; echo $BASHPID > grandchild; exec sleep 60) & echo $$ > child; sleep 60; sleep 60"
    finished = run(command, tmp_path, timeout=BEGUN, term_grace=0.2)
    assert finished.timed_out
    assert finished.seconds < 30
    assert gone(pid_in(tmp_path / "child"))
    assert gone(pid_in(tmp_path / "grandchild"))


def test_term_lets_a_command_clean_up(tmp_path: Path) -> None:
    finished = run("trap 'echo bye; exit 0' TERM; sleep 60 & wait", tmp_path, timeout=BEGUN)
    assert finished.timed_out
    assert finished.stdout.head == b"bye\n"
    assert finished.seconds < 30


@pytest.mark.parametrize("streams", ["", ">/dev/null 2>&1"])
def test_background_jobs_end_with_the_command(tmp_path: Path, streams: str) -> None:
    finished = run(f"sleep 60 {streams} & echo $! > job; echo done", tmp_path)
    assert finished.exit_code == 0
    assert finished.stdout.head == b"done\n"
    assert finished.seconds < 30
    assert gone(pid_in(tmp_path / "job"))


LEAVE = {
    "setsid": "setsid sleep 60 & echo $! > job; sleep 0.1",
    "daemon": f"{sys.executable} -c 'import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    'print(os.getpid(), file=open("job", "w"), flush=True); import time; time.sleep(60)\'; until [ -s job ]; do sleep 0.01; done',
    "silent": "setsid nohup sleep 60 </dev/null >/dev/null 2>&1 & echo $! > job; sleep 0.1",
    "of a subshell": "(setsid sh -c 'echo $$ > job; sleep 60; sleep 60' &) ; until [ -s job ]; do sleep 0.01; done",
}
linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="strays are found by /proc")


@linux
@pytest.mark.parametrize("kind", LEAVE)
@pytest.mark.parametrize("timeout", [60, BEGUN])
def test_what_left_the_group_ends_with_the_command(tmp_path: Path, kind: str, timeout: float) -> None:
    finished = run(LEAVE[kind] + ("; sleep 60" if timeout == BEGUN else ""), tmp_path, timeout=timeout, term_grace=0.2)
    assert finished.timed_out is (timeout == BEGUN)
    assert finished.seconds < 30
    assert gone(pid_in(tmp_path / "job"))


@linux
def test_a_service_that_drops_the_mark_stays(tmp_path: Path) -> None:
    finished = run(
        "env -u PLANRUN_COMMAND setsid sh -c 'echo $$ > job; exec sleep 60' >/dev/null 2>&1 & until [ -s job ]; do sleep 0.01; done",
        tmp_path,
    )
    assert finished.exit_code == 0
    service = pid_in(tmp_path / "job")
    assert alive(service)
    os.kill(service, signal.SIGKILL)


READS = """
import ctypes, os, sys
from pathlib import Path
from planrun.tools.process import run_command

if os.geteuid() == 0:
    os.setuid(65534)  # root may read everything
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as if it had been this user's from the beginning
assert os.environ["KEY"].encode() in Path("/proc/self/environ").read_bytes()
command = "cat /proc/$PPID/environ; readlink /proc/$PPID/exe; grep -ao OWN=mine /proc/self/environ; cat <&0"
done = run_command(command, cwd=Path("/"), env={"PATH": os.environ["PATH"], "OWN": "mine"}, timeout=60, stdin=b"given")
print(done.stdout.text(10_000), end="")
assert os.readlink(f"/proc/self/fd/{os.open('/dev/null', 0)}") == "/dev/null"
"""


@linux
def test_no_command_reads_the_environment_of_planrun() -> None:
    environ = {"PATH": os.environ["PATH"], "KEY": "a-key-of-the-endpoint"}
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", READS], env=environ, cwd=root, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert re.fullmatch(r"cat: /proc/\d+/environ: Permission denied\nOWN=mine\ngiven", ran.stdout), ran.stdout


def test_closed_pipes_do_not_end_the_command(tmp_path: Path) -> None:
    finished = run("exec >/dev/null 2>&1; sleep 0.2; exit 7", tmp_path)
    assert finished.exit_code == 7


def test_fork_storm(tmp_path: Path) -> None:
    finished = run("for i in $(seq 200); do sleep 60 & done; jobs -p > pids; echo ok", tmp_path)
    assert finished.stdout.head == b"ok\n"
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 200
    listed = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(pids)], check=False, capture_output=True, text=True).stdout
    assert all(state.startswith("Z") for state in listed.split())


def test_prefix_goes_before_the_shell(tmp_path: Path) -> None:
    assert run("echo $MARK", tmp_path, prefix=("/usr/bin/env", "MARK=boxed")).stdout.head == b"boxed\n"


def test_text_beyond_ascii_in_any_locale(tmp_path: Path) -> None:
    finished = run_command("echo 'é' $X", cwd=tmp_path, env={**ENV, "X": "日本\udcff", "LC_ALL": "C"}, timeout=60)
    assert finished.stdout.head == "é 日本".encode() + b"\xff\n"


def test_an_exception_of_a_signal_handler_kills_and_propagates(tmp_path: Path) -> None:
    script = f"""
import signal, sys
from pathlib import Path
from planrun.errors import Interrupted
from planrun.masking.masker import NOTHING
from planrun.tools.process import run_command
def stop(signum, frame):
    raise Interrupted(signum)
signal.signal(signal.SIGTERM, stop)
try:
    run_command("echo $$ > pid; sleep 60", cwd=Path({str(tmp_path)!r}), env={{"PATH": "/usr/bin:/bin"}}, timeout=60)
except Interrupted as error:
    sys.exit(error.exit_code)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    child = pid_in(tmp_path / "pid")
    parent.terminate()
    assert parent.wait(30) == 143
    assert gone(child)


def test_sigkill_of_the_parent_leaves_no_orphan(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from planrun.masking.masker import NOTHING
from planrun.tools.process import run_command
command = "trap '' TERM HUP; (trap '' TERM HUP; echo $BASHPID > grand; sleep 60) & setsid sleep 60 & " \\
    "echo $! > stray; echo $$ > pid; sleep 60; true"
run_command(command, cwd=Path({str(tmp_path)!r}), env={{"PATH": "/usr/bin:/bin"}}, timeout=60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    child, grandchild = pid_in(tmp_path / "pid"), pid_in(tmp_path / "grand")
    parent.kill()
    parent.wait(30)
    assert gone(child)
    assert gone(grandchild)
    if sys.platform == "linux":
        assert gone(pid_in(tmp_path / "stray"))


def test_kill_all(tmp_path: Path) -> None:
    results: list[Finished] = []
    thread = threading.Thread(target=lambda: results.append(run("echo $$ > pid; sleep 60", tmp_path)))
    thread.start()
    child = pid_in(tmp_path / "pid")
    end = time.monotonic() + 60
    while thread.is_alive() and time.monotonic() < end:  # the command is running a moment before it is known
        kill_all()
        thread.join(0.05)
    assert gone(child)
    assert results[0].signal == 9
    kill_all()


def test_many_side_by_side(tmp_path: Path) -> None:
    results: dict[int, bytes] = {}

    def work(i: int) -> None:
        results[i] = run(f"echo {i}", tmp_path).stdout.head

    threads = [threading.Thread(target=work, args=(i,)) for i in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert results == {i: f"{i}\n".encode() for i in range(30)}
    assert len(os.listdir("/dev/fd")) < 60


def test_what_cannot_start(tmp_path: Path) -> None:
    assert "is not there any more" in run("true", tmp_path / "missing").fault
    assert "NUL" in run("a\0b", tmp_path).fault
    assert "too long for the system" in run("x" * 300_000, tmp_path).fault
    assert run("false", tmp_path).fault == ""


STARVED = {
    "processes": ("RLIMIT_NPROC", 0, "no more processes can be started"),
    "files": ("RLIMIT_NOFILE", 4, "too many files are open"),
}


@linux
@pytest.mark.parametrize("what", STARVED)
def test_a_limit_of_the_system_is_told(tmp_path: Path, what: str) -> None:
    limit, value, said = STARVED[what]
    script = f"""
import os, resource
from pathlib import Path
from planrun.masking.masker import NOTHING
from planrun.tools.process import run_command
if os.geteuid() == 0:
    os.setuid(65534)  # root has no limit of processes
before = resource.getrlimit(resource.{limit})
resource.setrlimit(resource.{limit}, ({value}, before[1]))
fault = run_command("true", cwd=Path("/"), env={{}}, timeout=60).fault
resource.setrlimit(resource.{limit}, before)
again = run_command("true", cwd=Path("/"), env={{}}, timeout=60)
print(fault, again.exit_code, sep="|")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert said in done.stdout, done.stderr
    assert done.stdout.endswith("|0\n")
