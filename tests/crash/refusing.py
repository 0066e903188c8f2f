"""A file system that refuses: what a real one would answer to the n-th operation of this process in a folder, and to some after it.

Python tells its audit hooks of each open, rename, lock and start of a process before it is done (PEP 578), and an error that a
hook raises comes out of the operation like one of the system's. Reads and writes of what is open are not among them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "os.utime"}
_LOOKS = {"os.scandir", "os.listdir", "open"}
_NAMELESS = {"fcntl.flock", "subprocess.Popen"}

Kind = Callable[[str, tuple[Any, ...]], bool]


def changes(name: str, args: tuple[Any, ...]) -> bool:
    """What a full or a read-only disk refuses."""
    return name in _CHANGES or (name == "open" and bool(args[2] & _WRITES))


def anything(name: str, args: tuple[Any, ...]) -> bool:
    """What a broken disk refuses."""
    return name in _CHANGES or name in _LOOKS


def locks(name: str, args: tuple[Any, ...]) -> bool:
    """What a network file system may refuse."""
    return name == "fcntl.flock"


def starts(name: str, args: tuple[Any, ...]) -> bool:
    """What a machine without room for more processes refuses."""
    return name == "subprocess.Popen"


@dataclass
class Refusal:
    """From the `at`-th operation (1, 2, …) of a `kind` below `folder` on, `times` of them fail with `error`. `seen` are all of
    them, as `open /p/plan.yaml`."""

    folder: Path
    kind: Kind
    at: int
    error: int
    times: int = 1
    seen: list[str] = field(default_factory=list)

    @property
    def met(self) -> bool:
        return len(self.seen) >= self.at

    @property
    def operation(self) -> str:
        return self.seen[self.at - 1].replace(str(self.folder), "")

    def __call__(self, name: str, args: tuple[Any, ...]) -> None:
        if not self.kind(name, args):
            return
        path = None
        if name not in _NAMELESS:
            if not isinstance(args[0], str | bytes | os.PathLike):
                return
            path = os.fsdecode(args[0])
            if os.path.isabs(path) and not path.startswith(str(self.folder)):
                return
        self.seen.append(f"{name} {path or ''}".rstrip())
        if self.at <= len(self.seen) < self.at + self.times:
            raise OSError(self.error, os.strerror(self.error), path)


_in_force: list[Refusal] = []  # a hook cannot be taken away again: one is added, and it mostly does nothing


def _hook(name: str, args: tuple[Any, ...]) -> None:
    for refusal in _in_force:
        refusal(name, args)


sys.addaudithook(_hook)


@contextmanager
def in_force(refusal: Refusal) -> Iterator[Refusal]:
    _in_force.append(refusal)
    try:
        yield refusal
    finally:
        _in_force.remove(refusal)
