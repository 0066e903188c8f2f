"""Parameters of a plan: what was given on the command line or in a file, checked and typed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from planrun.core import outputs
from planrun.core.hints import nearest
from planrun.core.plan import Field, Json, Plan
from planrun.errors import UsageError


def typed(plan: Plan, given: Mapping[str, Json]) -> dict[str, Json]:
    """Every parameter's value: the given one (text is read by the parameter's type) or its default. Raises UsageError for all faults."""
    known = {f.name: f for f in plan.params}
    faults = [_unknown(name, known) for name in given if name not in known]
    values: dict[str, Json] = {}
    for name, field in known.items():
        if name in given:
            value, fault = _read(field, given[name])
            values[name] = value
            faults += [fault] if fault else []
        elif field.has_default:
            values[name] = field.default
        elif field.required:
            faults.append(f"parameter {name} is required ({field.description or field.type}): give it with -p {name}=…")
    if faults:
        raise UsageError("\n".join(faults))
    _, wrong = outputs.validate(tuple(f for f in plan.params if f.name in values), values)
    if wrong:
        raise UsageError("\n".join(f"parameter {w}" for w in wrong))
    return values


def _unknown(name: str, known: Mapping[str, Field]) -> str:
    hint = nearest(name, known) or f"it has: {', '.join(known) or 'none'}"
    return f"the plan has no parameter {name!r}; {hint}"


def _read(field: Field, value: Json) -> tuple[Json, str | None]:
    """Text from the command line in the parameter's type; values from a file are typed already."""
    if not isinstance(value, str) or field.type in ("string", "file"):
        return value, None
    try:
        read: Json = json.loads(value.replace("_", "") if field.type in ("integer", "number") else value)
    except ValueError:
        return None, f"parameter {field.name} must be of type {field.type}, found {value[:80]!r}"
    return read, None
