"""The parameters that the command line gives: a file's, and over them those of `-p NAME=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planrun.core.plan import Json
from planrun.errors import Fault, PlanInvalid


def given(pairs: Sequence[tuple[str, str]], file: Path | None) -> dict[str, Json]:
    """By name; the plan says which type each has. Raises PlanInvalid for a file that cannot be read."""
    return {**(_of_file(file) if file is not None else {}), **dict(pairs)}


def _of_file(path: Path) -> dict[str, Json]:
    """YAML or JSON. A scalar is the text that was written, so that 1.10 reaches a string parameter as it stands."""
    from planrun.textfile import Unreadable, read_bytes

    try:
        return parsed(read_bytes(path), str(path))
    except Unreadable as error:
        raise PlanInvalid(str(path), error.faults) from None


def parsed(data: bytes, name: str) -> dict[str, Json]:
    """The parameters in the bytes of a file that messages call `name`. Raises PlanInvalid."""
    from planrun.planfile.nodes import Scalar, Table, data_of
    from planrun.planfile.source import check_characters
    from planrun.planfile.values import plain
    from planrun.planfile.yamltext import read
    from planrun.textfile import Unreadable, decode

    try:
        text = decode(data)
        check_characters(text)
    except Unreadable as error:
        raise PlanInvalid(name, error.faults) from None
    node, faults = read(text)
    if faults:
        raise PlanInvalid(name, faults)
    if node is None or (isinstance(node, Scalar) and node.text is None):
        return {}
    if not isinstance(node, Table):
        fault = Fault("a parameters file is made of names with values (package: httpx)", node.line, node.column)
        raise PlanInvalid(name, [fault])
    values: dict[str, Json] = {}
    for key, (_, value) in node.entries.items():
        found = data_of(value)
        values[key] = str(found) if isinstance(found, str) else plain(found)
    return values
