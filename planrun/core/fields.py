"""One field: a value or a text against its declaration, and the declaration in words and as JSON Schema.

A value has exactly the declared type; 3.0 counts as the integer 3, and nothing else does. Faults are for a model to act on.
"""

from __future__ import annotations

import json
import math

from planrun.core import patterns
from planrun.core.messages import well_formed
from planrun.core.plan import Field, Json

_DEEPEST = 64
_SHOWN = 80


def check(field: Field, value: object, where: str) -> tuple[Json, list[str]]:
    """One value against its field; `where` names it in faults."""
    try:
        clean = _json(value, 0)
    except ValueError as error:
        return None, [f"{where}: {error}"]
    if field.type == "integer" and isinstance(clean, float) and clean.is_integer():
        clean = int(clean)
    if not _is(field, clean):
        return None, [f"{where}: expected {wanted_words(field)}, found {found_words(clean)}"]
    faults = []
    if field.enum and not any(clean == allowed and type(clean) is type(allowed) for allowed in field.enum):
        faults.append(f"{where}: expected one of {_choices(field)}, found {found_words(clean)}")
    if isinstance(clean, str):
        faults += _text_faults(field, clean, where)
    elif isinstance(clean, list):
        faults += _list_faults(field, clean, where)
    return clean, faults


def _text_faults(field: Field, text: str, where: str) -> list[str]:
    faults = []
    if field.pattern is not None and not patterns.found(field.pattern, text):
        faults.append(f"{where}: expected text that matches the pattern {field.pattern}, found {found_words(text)}")
    if field.min_length is not None and len(text) < field.min_length:
        faults.append(f"{where}: expected at least {field.min_length:,} characters, found {len(text):,}")
    if field.max_length is not None and len(text) > field.max_length:
        faults.append(f"{where}: expected at most {field.max_length:,} characters, found {len(text):,}: shorten it")
    return faults


def _list_faults(field: Field, items: list[Json], where: str) -> list[str]:
    faults = []
    if field.max_items is not None and len(items) > field.max_items:
        faults.append(f"{where}: expected at most {field.max_items:,} elements, found {len(items):,}")
    if field.items is not None:
        for position, item in enumerate(items):
            items[position], found = check(field.items, item, f"{where}[{position}]")
            faults += found
    return faults[:5]


def _json(value: object, depth: int) -> Json:
    """A copy that is plain JSON with well-formed text; ValueError where there is none."""
    if depth > _DEEPEST:
        raise ValueError(f"nested more than {_DEEPEST} deep")
    match value:
        case None | bool() | int():
            return value
        case float():
            if not math.isfinite(value):
                raise ValueError("expected a finite number, found NaN or infinity")
            return value
        case str():
            return well_formed(value)
        case list() | tuple():
            return [_json(item, depth + 1) for item in value]
        case dict():
            return {well_formed(str(key)): _json(item, depth + 1) for key, item in value.items()}
    raise ValueError(f"expected JSON, found {type(value).__name__}")


def _is(field: Field, value: Json) -> bool:
    match field.type:
        case "string" | "file":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
    return isinstance(value, dict)


def parse(field: Field, text: str) -> tuple[Json, list[str]]:
    """The text as a value of the field's type: as it is for strings, as JSON for everything else."""
    if field.type in ("string", "file"):
        return text, []
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None, [f"{field.name}: expected {wanted_words(field)}, found the text {text[:80]!r}"]
    return value, []


def _choices(field: Field) -> str:
    return ", ".join(_spelled(choice) for choice in field.enum)


def _spelled(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def found_words(value: object) -> str:
    kinds = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array", dict: "an object"}
    if value is None:
        return "null"
    text = value if isinstance(value, str) else _spelled(value)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text):,} characters)"
    return f"{kinds.get(type(value), type(value).__name__)}: {_spelled(shown) if isinstance(value, str) else shown}"


def wanted_words(field: Field) -> str:
    kind = f"array of {field.items.type}" if field.items else field.type
    return f"{'an' if kind[0] in 'aio' else 'a'} {kind}" + (f" (one of {_choices(field)})" if field.enum else "")


def describe(field: Field) -> str:
    """One short line for a prompt: what to give, without what is the default."""
    kind = f"array of {field.items.type}" if field.items else field.type
    parts = [f"{field.name}: {kind}"]
    if field.type == "file":
        parts.append(f"taken from {field.path}")
    elif not field.required:
        parts.append("optional")
    if field.enum:
        parts.append(f"one of {_choices(field)}")
    if field.pattern is not None:
        parts.append(f"pattern {field.pattern}")
    if field.min_length is not None:
        parts.append(f"at least {field.min_length:,} characters")
    if field.max_length is not None:
        parts.append(f"at most {field.max_length:,} characters")
    if field.max_items is not None:
        parts.append(f"at most {field.max_items:,} elements")
    about = " ".join(field.description.split())
    return ", ".join(parts) + (f" - {about}" if about else "")


def schema(fields: tuple[Field, ...]) -> dict[str, object]:
    """A small JSON Schema of an output object."""
    required = [field.name for field in fields if field.required and field.type != "file"]
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _property(field: Field) -> dict[str, object]:
    found: dict[str, object] = {"type": "string" if field.type == "file" else field.type}
    if field.items is not None:
        found["items"] = _property(field.items)
    if field.enum:
        found["enum"] = list(field.enum)
    bounds = {"description": field.description or None, "pattern": field.pattern, "minLength": field.min_length}
    bounds |= {"maxLength": field.max_length, "maxItems": field.max_items}
    return found | {key: value for key, value in bounds.items() if value is not None}
