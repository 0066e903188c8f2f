"""Outputs of steps: what is accepted, and where a `run` step takes it from.

Nothing is ever cut or converted in silence. The JSON of all fields of an output is at most 65,536 bytes of UTF-8. `file` fields
are filled in by the runner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from planrun.core.fields import check, describe, found_words, parse, schema, wanted_words
from planrun.core.hints import nearest
from planrun.core.messages import compact_json
from planrun.core.plan import Field, Json

__all__ = ["LIMIT", "describe", "from_run", "read_pairs", "schema", "validate"]

LIMIT = 65_536
_FAULTS = 10  # faults of one kind that are told
_PAIR = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:=(?P<value>.*)|<<(?P<mark>\S+))", re.ASCII)


def validate(fields: tuple[Field, ...], value: object) -> tuple[dict[str, Json], tuple[str, ...]]:
    """The clean output and the faults; with faults the output is what could be read and must not be used."""
    if not isinstance(value, dict):
        return {}, (f"output must be an object with the fields {_names(fields)}, found {found_words(value)}",)
    known = {field.name: field for field in fields}
    clean: dict[str, Json] = {}
    faults = [_unknown(str(name), known) for name in [name for name in value if name not in known][:_FAULTS]]
    for field in fields:
        if field.type == "file":
            faults += _file(field, value.get(field.name))
        elif field.name in value and (field.required or value[field.name] is not None):
            clean[field.name], found = check(field, value[field.name], field.name)
            faults += found
        elif field.required:
            faults.append(f"{field.name}: missing; expected {wanted_words(field)}")
    if not faults and (size := len(compact_json(clean).encode())) > LIMIT:
        faults.append(
            f"the output is {size:,} bytes of JSON, over the limit of {LIMIT:,}: leave out what later steps do not need, or "
            "write it to a file (a field of the type file has no such limit)"
        )
    return clean, tuple(faults)


def from_run(fields: tuple[Field, ...], stdout: str, extra: str) -> tuple[dict[str, Json], tuple[str, ...]]:
    """The output of a `run` step and its faults. `extra` is the text of the file `$PLANRUN_OUTPUT`; it wins over stdout.

    A field with `source` "stdout", and a single string field without one, is the whole of stdout without the newlines at its
    end. Fields with `source` "json", and all fields where one has it, come from the JSON object on the last line of stdout.
    """
    pairs, faults = read_pairs(extra)
    values: dict[str, object] = {}
    wanted = [field for field in fields if field.type != "file"]
    by_name = {field.name: field for field in wanted}
    if any(field.source == "json" for field in wanted):
        found, fault = _last_object(stdout)
        values |= {name: found[name] for name in found if name in by_name and by_name[name].source != "stdout"}
        faults += fault if not set(by_name) <= set(pairs) else []
    for field in wanted:
        alone = len(wanted) == 1 and field.type == "string" and field.source is None
        if field.name not in pairs and (field.source == "stdout" or alone):
            values[field.name], fault = parse(field, stdout.rstrip("\n"))
            faults += fault
    for name, text in pairs.items():
        values[name], fault = parse(by_name[name], text) if name in by_name else (text, [])
        faults += fault
    if faults:
        return {}, tuple(faults)
    return validate(fields, values)


def read_pairs(text: str) -> tuple[dict[str, str], list[str]]:
    """`name=value` lines and `name<<MARK` blocks up to a line that is MARK, and what could not be read. The last one counts."""
    pairs: dict[str, str] = {}
    faults: list[str] = []
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    for line in lines:
        match = _PAIR.fullmatch(line)
        if match is None:
            faults += [f"PLANRUN_OUTPUT: expected name=value or name<<MARK, found {line[:80]!r}"] if line.strip() else []
        elif match["mark"] is None:
            pairs[match["name"]] = match["value"]
        else:
            block = []
            for inner in lines:
                if inner == match["mark"]:
                    break
                block.append(inner)
            else:
                faults.append(f"PLANRUN_OUTPUT: the block of {match['name']} has no line {match['mark']}")
            pairs[match["name"]] = "\n".join(block)
    return pairs, faults[:_FAULTS]


def _last_object(stdout: str) -> tuple[dict[str, Json], list[str]]:
    lines = [line for line in stdout.splitlines() if line.strip()]
    try:
        value = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return value, []
    shown = repr(lines[-1][:80]) if lines else "nothing"
    return {}, [f"expected a JSON object on the last line of stdout, found {shown}"]


def _file(field: Field, value: object) -> list[str]:
    if value is None or value == field.path:
        return []
    return [f"{field.name}: this field is filled in from the file {field.path}; leave it out, found {found_words(value)}"]


def _unknown(name: str, known: Mapping[str, Field]) -> str:
    hint = nearest(name, known) or f"the fields are {_names(tuple(known.values()))}"
    return f"{name[:80]}: not a field of this output; {hint}"


def _names(fields: tuple[Field, ...]) -> str:
    return ", ".join(field.name for field in fields) or "(none)"
