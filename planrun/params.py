"""Parameters of a plan: what was given on the command line or in a file, checked and typed."""

from __future__ import annotations

from collections.abc import Mapping

from planrun import jsontext
from planrun.core.fields import check
from planrun.core.hints import nearest
from planrun.core.messages import compact_json
from planrun.core.outputs import LIMIT
from planrun.core.plan import Field, Json, Plan
from planrun.core.units import shown
from planrun.errors import UsageError


def typed(plan: Plan, given: Mapping[str, Json]) -> dict[str, Json]:
    """Every parameter's value: the given one (text is read by the parameter's type) or its default. Raises UsageError for all faults."""
    known = {f.name: f for f in plan.params}
    faults = [_unknown(name, known) for name in given if name not in known]
    values: dict[str, Json] = {}
    for name, field in known.items():
        if name in given:
            values[name], found = _read(field, given[name])
            faults += found
        elif field.has_default:
            values[name] = field.default
        elif field.required:
            faults.append(f"parameter {name} is required ({field.description or field.type}): give it with -p {name}=…")
    if not faults and (size := len(compact_json(values).encode())) > LIMIT:
        faults.append(
            f"the parameters are {size:,} bytes of JSON, over the limit of {LIMIT:,}: put long texts into files and give their paths"
        )
    if faults:
        raise UsageError("\n".join(faults))
    return values


def _unknown(name: str, known: Mapping[str, Field]) -> str:
    hint = nearest(name, known) or f"it has: {', '.join(known) or 'none'}"
    return f"the plan has no parameter {shown(name)}; {hint}"


def _read(field: Field, value: Json) -> tuple[Json, list[str]]:
    """A value in the parameter's type, and what is wrong with it. Text is JSON where the type is not text itself."""
    if isinstance(value, str) and field.type != "string":
        text = value.replace("_", "") if field.type in ("integer", "number") else value
        try:
            value, _ = jsontext.parse(text, LIMIT)
        except jsontext.JsonFault as fault:
            why = f": {fault} (at character {fault.column})" if field.type in ("array", "object") else ""
            return None, [f"parameter {field.name} must be of type {field.type}, found {shown(value)}{why}"]
    if value is None:
        return None, [f"parameter {field.name} must be of type {field.type}, found null: leave it out for its default"]
    return check(field, value, f"parameter {field.name}")
