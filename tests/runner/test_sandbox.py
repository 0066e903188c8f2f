"""Commands in a sandbox: what is asked of bwrap (a stub that takes its place), and what it comes to where there is one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import ConfigError, PlanrunError
from planrun.testing.model import call, done
from planrun.tools.sandbox import NoSandbox, bubblewrap
from tests.runner.driving import Project, ask, last_result, project, reason, shell, statuses, step

STUB = """#!/bin/sh
printf '%s\\n' "$@" >> "$0.args"; echo >> "$0.args"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


def stubbed(run: Project, text: str = STUB) -> Path:
    """The project with a bwrap first on its PATH; the file where that one writes down its arguments."""
    program = run.folder.parent / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)
    run.environ["PATH"] = f"{program.parent}:{run.environ['PATH']}"
    return program.with_name("bwrap.args")


def starts(path: Path) -> list[list[str]]:
    """The argument lists of bwrap, in order."""
    return [block.split("\n") for block in path.read_text().strip("\n").split("\n\n")]


def pairs(arguments: list[str], option: str) -> list[str]:
    return [arguments[i + 1] for i, each in enumerate(arguments) if each == option]


def test_every_command_of_the_plan_and_the_model_goes_through_it(tmp_path: Path) -> None:
    hook = tmp_path / "hooked"
    run = project(
        tmp_path / "ws", shell("a", "echo run", verify="echo check"), step("b"), sandbox={"type": "bwrap"}, recheck="off"
    )
    run.settings(hooks={"step_end": f"echo x >> {hook}"})
    found = stubbed(run)
    result = run.run([call("Bash", command="echo bash"), done()])
    assert statuses(result) == ["done", "done"]
    assert [each[-1] for each in starts(found)] == ["true", "echo run", "echo check", "echo bash"]
    assert hook.read_text() == "x\nx\n"  # hooks are the user's own: outside
    for arguments in starts(found):
        assert arguments[:3] == ["--ro-bind", "/", "/"]
        assert pairs(arguments, "--bind")[0] == str(run.folder.resolve())
        assert str(run.folder.resolve() / ".thclaws") in pairs(arguments, "--ro-bind-try")
        assert {"--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent"} <= set(arguments)
        assert "--new-session" not in arguments
    assert run.of("session")[0]["settings"]["sandbox"] == {"type": "bwrap", "network": False}


@pytest.mark.parametrize("where", ["plan", "settings"])
@pytest.mark.parametrize("asked", ["bwrap", {"type": "bwrap", "network": True}])
def test_who_asks_for_it(tmp_path: Path, where: str, asked: Any) -> None:
    run = project(tmp_path / "ws", shell("a", "true"), **({"sandbox": asked} if where == "plan" else {}))
    if where == "settings":
        run.settings(sandbox=asked)
    found = stubbed(run)
    run.run([])
    assert [("--unshare-net" in arguments) for arguments in starts(found)] == [asked == "bwrap"] * 2


def test_a_resume_stays_in_it(tmp_path: Path) -> None:
    run = project(tmp_path / "ws", step("a"), shell("b", "true"))
    run.settings(sandbox="bwrap")
    found = stubbed(run)
    run.run([done()], ask(until="a"))
    run.settings()
    found.unlink()
    assert statuses(run.resume([])) == ["done", "done"]
    assert [each[-1] for each in starts(found)] == ["true", "true"]


@pytest.mark.parametrize(
    ("stub", "said"),
    [
        (None, "bwrap is not on the PATH: install bubblewrap"),
        ("#!/bin/sh\necho no namespaces >&2; exit 1\n", "(no namespaces)"),
    ],
)
def test_without_a_bwrap_that_works_nothing_runs(tmp_path: Path, stub: str | None, said: str) -> None:
    run = project(tmp_path / "ws", shell("a", "touch ran"), sandbox="bwrap")
    if stub is None:
        run.environ["PATH"] = str(tmp_path)
    else:
        stubbed(run, stub)
    with pytest.raises(ConfigError, match="sandbox ") as caught:
        run.run([])
    assert said in str(caught.value)
    assert caught.value.exit_code == 2
    assert not run.log.exists()
    assert not (run.folder / "ran").exists()


@pytest.mark.parametrize("asked", ["docker", {"type": "bwrap", "net": True}, {"network": "perhaps"}, 7])
@pytest.mark.parametrize("where", ["plan", "settings"])
def test_what_is_no_sandbox_is_refused(tmp_path: Path, where: str, asked: Any) -> None:
    run = project(tmp_path, shell("a", "true"), **({"sandbox": asked} if where == "plan" else {}))
    if where == "settings":
        run.settings(sandbox=asked)
    with pytest.raises(PlanrunError, match="sandbox") as caught:
        run.run([])
    assert caught.value.exit_code == 2


def real() -> str:
    """Why there is no bwrap to try; empty where there is one."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    try:
        bubblewrap(Path.cwd(), (), os.environ["PATH"], network=False)
    except NoSandbox as error:
        return str(error)
    return ""


needs_bwrap = pytest.mark.skipif(bool(real()), reason=real() or "-")
TRIED = {
    "the workspace": ("echo x > made && cat made", "x"),
    "a private /tmp": ("echo x > /tmp/planrun-private && cat $TMPDIR/planrun-private", "x"),
    "the rest": ("touch /etc/planrun-made /usr/planrun-made 2>&1 | grep -c 'Read-only file system'", "2"),
    "own records": (
        "touch .thclaws/x 2>&1 | grep -c 'Read-only'; rm -rf .thclaws; ls -d .thclaws/sessions",
        "1\n.thclaws/sessions",
    ),
    "processes": (f"test -e /proc/{os.getpid()}/status; echo $?; kill -9 {os.getpid()} 2>/dev/null; echo $?", "1\n1"),
    "network": ("tail -n +3 /proc/net/dev | grep -v lo: | wc -l", "0"),
    "mounts": ("mount -o remount,rw / 2>/dev/null; touch /etc/planrun-made 2>/dev/null; echo $?", "1"),
    "output": ("echo v=kept > $PLANRUN_OUTPUT", "kept"),
}


@needs_bwrap
@pytest.mark.parametrize("what", TRIED)
def test_what_a_command_can_do(tmp_path: Path, what: str) -> None:
    command, expected = TRIED[what]
    run = project(tmp_path, shell("a", command, output={"v": "string"}), sandbox="bwrap")
    run.environ["PATH"] = os.environ["PATH"]
    assert run.run([]).state.steps[0].output == {"v": expected}
    assert not Path("/tmp/planrun-private").exists()


@needs_bwrap
def test_nothing_survives_a_timeout(tmp_path: Path) -> None:
    run = project(tmp_path, step("a"), sandbox="bwrap")
    run.environ["PATH"] = os.environ["PATH"]
    stay = "trap '' TERM; setsid sh -c 'while sleep 0.1; do date > beat; done' & sleep 60"
    result = run.run([call("Bash", command=stay, timeout=0.5), done()])
    assert "[timed out after 0.5 s" in last_result(run.messages()), reason(result)
    beat = (tmp_path / "beat").stat().st_mtime_ns
    assert run.of("tool_end")[0]["seconds"] < 5
    os.sync()
    assert (tmp_path / "beat").stat().st_mtime_ns == beat


def test_the_session_folder_is_protected_where_it_lies_inside(tmp_path: Path) -> None:
    run = project(tmp_path / "ws", shell("a", "true"), sandbox="bwrap")
    found = stubbed(run)
    run.environ["PLANRUN_SESSION_DIR"] = "logs"
    run.run([])
    assert str(run.folder.resolve() / "logs") in pairs(starts(found)[1], "--ro-bind-try")
    assert json.loads((run.folder / "logs" / "s.jsonl").read_text().split("\n")[0])["type"] == "session"
