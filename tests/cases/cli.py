"""Cases through the real command line: planrun as a process, an endpoint on 127.0.0.1, every request checked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from time import monotonic
from typing import Any

from planrun.session.reader import GENESIS, line_digest
from planrun.testing.server import LoopbackServer, Script, script_from
from tests.cases_support import CASES, convert
from tests.cli.processes import COMMAND, environ, finished, interruptible
from tests.pairs import problems

KEY = "planrun-test-KEY-123456"
PLAN = "name: case\nmodel: test-model\nsteps:\n  - {id: one, prompt: Do it.}\n"
PATIENCE = 60.0


@dataclass
class Ran:
    """A finished process, the object that it printed, and the endpoint it talked to."""

    code: int
    out: str
    err: str
    server: LoopbackServer
    folder: Path

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def ended(self) -> tuple[str, int]:
        assert self.result["exit_code"] == self.code
        return self.result["outcome"], self.code

    @property
    def steps(self) -> list[str]:
        return [s["status"] for s in self.result["steps"]]

    def messages(self, request: int = -1) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.server.bodies[request]["messages"]
        return found

    def results(self, request: int = -1) -> list[str]:
        """The tool results in a request."""
        return [m["content"] for m in self.messages(request) if m["role"] == "tool"]

    def users(self, request: int = -1) -> list[str]:
        return [m["content"] for m in self.messages(request) if m["role"] == "user"]


def case(name: str) -> Path:
    return CASES / name


def log_of(folder: Path, session: str = "s") -> Path:
    return folder / ".thclaws" / "sessions" / f"{session}.jsonl"


def records(folder: Path, session: str = "s") -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_of(folder, session).read_bytes().split(b"\n") if line]


def endpoint(server: LoopbackServer, **more: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, **more}


@contextmanager
def serving(script: Any) -> Iterator[LoopbackServer]:
    """An endpoint that gives these answers: a case's file by its name, a Script, a list, or a function of the body."""
    with LoopbackServer(script_from(case(script)) if isinstance(script, str) else script) as server:
        yield server
        for body in server.bodies:
            assert problems(body["messages"], alternate=True) == []


def planrun(folder: Path, server: LoopbackServer, *args: str, env: Mapping[str, str] | None = None) -> Ran:
    done = finished(folder, *args, env=endpoint(server, **(env or {})))
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert "Traceback" not in err and "internal error" not in err, err
    return Ran(done.returncode, out, err, server, folder)


def run(folder: Path, script: Any, *args: str, plan: str | Path = PLAN, env: Mapping[str, str] | None = None) -> Ran:
    """`planrun run` on a plan (its text, or the file of a case) against an endpoint with this script."""
    write(folder, plan)
    with serving(script) as server:
        return planrun(folder, server, "run", "plan.yaml", "--session", "s", "--format", "json", *args, env=env)


def resume(folder: Path, script: Any, *args: str, session: str = "s", env: Mapping[str, str] | None = None) -> Ran:
    with serving(script) as server:
        return planrun(folder, server, "resume", session, "--format", "json", *args, env=env)


def write(folder: Path, plan: str | Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = plan.read_bytes() if isinstance(plan, Path) else plan.encode()
    (folder / "plan.yaml").write_bytes(data)


def repeated(*names: str) -> Script:
    """The answers of these files, the last one for ever."""
    return Script([a for n in names for a in script_from(case(n)).answers], repeat_last=True)


def install(name: str, folder: Path, plan: str, *, closed: bool = False) -> Path:
    """A case's session file as a log in the project `folder` (where its plan lies too). A line that is cut off stays so.
    `closed`: its first call becomes a closing line, as our steps have one, in place of the call and its result."""
    log = log_of(folder, name)
    log.parent.mkdir(parents=True, exist_ok=True)
    write(folder, plan)
    convert(name, log.parent, plan)
    prev, out = GENESIS, []
    for line in log.read_bytes().split(b"\n"):
        try:
            body = json.loads(line)
        except ValueError:
            out.append(line)
            prev = line_digest(line)
            continue
        if body["type"] == "session":
            body |= {"cwd": str(folder.resolve()), "plan_path": str(folder.resolve() / "plan.yaml")}
        if closed and body.pop("tool_calls", None):
            body["content"] = "Step one is done."
        elif closed and body.get("role") == "tool":
            body = {k: body[k] for k in ("seq", "timestamp")} | {"type": "note", "kind": "notice"}
        line = json.dumps(body | {"prev": prev}, separators=(",", ":")).encode("ascii")
        prev = line_digest(line)
        out.append(line)
    log.write_bytes(b"\n".join(out))
    return log


# --- processes that are still running -----------------------------------------------------------------------------------


@contextmanager
def running(folder: Path, server: LoopbackServer, *args: str, env: Mapping[str, str] | None = None) -> Iterator[Any]:
    process = subprocess.Popen(
        [*COMMAND, *args], cwd=folder, env=environ(folder, **endpoint(server, **(env or {}))),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible,  # noqa: PLW1509
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def until(process: subprocess.Popen[bytes], holds: Callable[[], bool], what: str, says: bytes = b"") -> None:
    """Wait for something that the process brings about (and for it to say `says`), looking whenever it says something and
    every 50 ms."""
    limit, said = monotonic() + PATIENCE, b""
    while says not in said or not holds():
        assert process.poll() is None and monotonic() < limit, f"{what} did not come"
        assert process.stderr is not None
        select([process.stderr], [], [], 0.05)
        if select([process.stderr], [], [], 0)[0]:
            said += os.read(process.stderr.fileno(), 1 << 16)


def alive(word: str) -> list[str]:
    """Command lines of living processes that hold this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if word in text:
            found.append(text)
    return found
