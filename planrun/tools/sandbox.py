"""Running commands under bubblewrap (Linux): they can write into the workspace and a private /tmp, and nowhere else."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from planrun.tools.process import run_command

_PATIENCE = 20.0  # seconds for the trial
_USED_BELOW_RUN = ("/run/systemd/resolve", "/run/current-system")  # where names are looked up; where NixOS has its programs


class NoSandbox(Exception):
    """It was asked for and cannot be had; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """`program` is the path of bwrap, `workspace` a real path; what is at the paths in `protected`, inside it or not, can be
    read only."""

    program: str
    workspace: Path
    protected: tuple[Path, ...]
    network: bool = False

    def prefix(self, *writable: Path) -> tuple[str, ...]:
        """The argv before a command that may write into the folders `writable` too. Processes, IPC and (without `network`) the
        network are its own. A new session is not needed: there is no terminal, and the process group must stay. TERM ends
        bwrap, and everything inside with it, so that a command has no time to clean up after a timeout."""
        run = ("--tmpfs", "/run", *_each("--ro-bind-try", *_USED_BELOW_RUN)) if os.path.isdir("/run") else ()
        return (
            *(self.program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
            *run,  # its sockets lead to daemons outside
            *_each("--bind", self.workspace),
            *_each("--ro-bind-try", *self.protected),
            *_each("--bind", *writable),  # they may lie inside of what is protected
            *("--unshare-pid", "--unshare-ipc", *(() if self.network else ("--unshare-net",))),
            *("--cap-drop", "ALL", "--die-with-parent", "--setenv", "TMPDIR", "/tmp"),
            *("--chdir", str(self.workspace), "--"),
        )


def bubblewrap(workspace: Path, protected: tuple[Path, ...], search: str, *, network: bool) -> Bubblewrap:
    """The bwrap that is found in the folders of `search` (a PATH), once it has run a command. Raises NoSandbox."""
    program = shutil.which("bwrap", path=search)
    if program is None:
        raise NoSandbox(
            "bwrap is not on the PATH: install bubblewrap (Linux), or take `sandbox` out of the plan and the settings"
        )
    found = Bubblewrap(program, workspace, protected, network)
    trial = run_command("true", cwd=workspace, env={"PATH": search}, timeout=_PATIENCE, prefix=found.prefix())
    if trial.exit_code != 0:
        said = trial.fault or trial.stdout.text(300).strip() or "it did not end"
        raise NoSandbox(f"{program} does not work here ({said}): user namespaces may be forbidden on this machine")
    return found


def _each(option: str, *paths: str | Path) -> tuple[str, ...]:
    return tuple(word for path in paths for word in (option, str(path), str(path)))
