"""Logs as other hands might have left them: altered, with every line naming the one before all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planrun.session.reader import GENESIS, line_digest

Body = dict[str, Any]


def bodies(log: Path) -> list[Body]:
    return [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]]


def rewrite(log: Path, change: Callable[[Body], Body]) -> None:
    """Every record as `change` makes it, in a whole chain."""
    write(log, [change(body) for body in bodies(log)])


def write(log: Path, records: list[Body]) -> None:
    prev, lines = GENESIS, []
    for number, body in enumerate(records, 1):
        line = json.dumps(body | {"seq": number, "prev": prev}, ensure_ascii=False, separators=(",", ":")).encode()
        prev = line_digest(line)
        lines.append(line)
    log.write_bytes(b"".join(line + b"\n" for line in lines))
