"""The parameters that the command line gives: a file's, and over them those of `-p NAME=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planrun.core.plan import Json
from planrun.errors import PlanInvalid, UsageError


def given(pairs: Sequence[str], file: Path | None) -> dict[str, Json]:
    """By name; the plan says which type each has. Raises UsageError, or PlanInvalid for a file that cannot be read."""
    values = _of_file(file) if file is not None else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"-p takes NAME=VALUE, found {pair!r}")
        values[name] = value
    return values


def _of_file(path: Path) -> dict[str, Json]:
    """YAML or JSON. A scalar is the text that was written, so that 1.10 reaches a string parameter as it stands."""
    from planrun.planfile.nodes import Scalar, Table, data_of
    from planrun.planfile.source import Unreadable, decode, read_bytes
    from planrun.planfile.values import plain
    from planrun.planfile.yamltext import read

    try:
        node, faults = read(decode(read_bytes(path)))
    except Unreadable as error:
        raise PlanInvalid(str(path), error.faults) from None
    if faults:
        raise PlanInvalid(str(path), faults)
    if node is None or (isinstance(node, Scalar) and node.text is None):
        return {}
    if not isinstance(node, Table):
        raise UsageError(f"{path}: a parameters file is made of names with values (package: httpx)")
    values: dict[str, Json] = {}
    for name, (_, value) in node.entries.items():
        found = data_of(value)
        values[name] = str(found) if isinstance(found, str) else plain(found)
    return values
