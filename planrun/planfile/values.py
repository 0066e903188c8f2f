"""Scalars of a plan file: the text that was written, read by the type that the field has."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from planrun.core.plan import FieldType, Json
from planrun.core.rules import rule
from planrun.core.units import duration, integer, number, shown, words
from planrun.planfile.nodes import Nothing, Plain


def boolean(value: object) -> bool:
    if value in ("true", "false"):
        return value == "true"
    raise ValueError(f"write true or false, found {shown(value)}")


def plain(value: object) -> Json:
    """A value whose type no field declares: the core types of YAML 1.2 where it stands without quotes."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Plain):
        if value in ("null", "~"):
            return None
        for read in (boolean, integer, number):
            try:
                return read(value)
            except ValueError:
                continue
    return None if isinstance(value, Nothing) else str(value)


def typed(value: object, kind: FieldType, items: FieldType | None = None) -> Json:
    """`value` as the declared type; ValueError says what was expected."""
    match kind:
        case "integer":
            return integer(value)
        case "number":
            return number(value)
        case "boolean":
            return boolean(value)
        case "array":
            if isinstance(value, list):
                return [typed(item, items) if items else plain(item) for item in value]
            raise ValueError(f"expected a list, found {shown(value)}")
        case "object":
            if isinstance(value, dict):
                return plain(value)
            raise ValueError(f"expected a mapping, found {shown(value)}")
    if isinstance(value, str):
        return str(value)
    raise ValueError(f"expected text, found {shown(value)}")


def _schema(kind: str, pattern: str, **more: Any) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [{"type": kind, **more}, {"type": "string", "pattern": pattern}]})


Positive = Annotated[int, BeforeValidator(integer), Field(ge=1), _schema("integer", "^[0-9][0-9_]*$", minimum=1)]
Count = Annotated[int, BeforeValidator(integer), Field(ge=0), _schema("integer", "^[0-9][0-9_]*$", minimum=0)]
Words = Annotated[str, AfterValidator(words)]
Amount = Annotated[float, BeforeValidator(number), Field(gt=0), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})]
Rule = Annotated[str, AfterValidator(rule)]
Boolean = Annotated[bool, BeforeValidator(boolean), WithJsonSchema({"type": "boolean"})]
Seconds = Annotated[float, BeforeValidator(duration), _schema("number", "^([0-9.]+[dhms])+$", exclusiveMinimum=0)]
