"""The built-in tools, what the model is told of them, and reading what it answers."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from planrun.core.messages import compact_json, well_formed
from planrun.tools.base import Tool
from planrun.tools.files import EDIT, LS, READ, WRITE
from planrun.tools.find import GLOB, GREP
from planrun.tools.shell import BASH
from planrun.tools.text import strip_controls

_FOUND = 200  # characters of refused arguments that are repeated
_KEPT = ("type", "description", "enum", "items", "properties", "required", "anyOf", "additionalProperties")


def builtin_tools() -> tuple[Tool, ...]:
    """The tools for files and the shell, always in this order."""
    return (READ, WRITE, EDIT, GLOB, GREP, LS, BASH)


def schema(tool: Tool) -> dict[str, object]:
    """The tool as the `tools` of a request carry it, without what a model does not need (titles, defaults, ranges)."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": _parameters(tool)},
    }


def parse_arguments(tool: Tool, arguments_json: str) -> BaseModel | str:
    """The validated arguments, well-formed text throughout; or, as a string, the error for the model: what was wrong,
    what the tool takes, what came. Empty text stands for no arguments; null stands for an optional argument that was
    not given."""
    try:
        given = json.loads(arguments_json) if arguments_json.strip() else {}
        given = json.loads(well_formed(compact_json(given)))
    except (ValueError, RecursionError) as error:
        return _error(tool, f"the arguments are not valid JSON ({error})", arguments_json)
    if not isinstance(given, dict):
        return _error(tool, "the arguments are not a JSON object", arguments_json)
    required = set(_required(tool))
    try:
        return tool.arguments.model_validate(
            {key: value for key, value in given.items() if value is not None or key in required}
        )
    except ValidationError as error:
        return _error(tool, "; ".join(_fault(dict(each)) for each in error.errors()[:5]), arguments_json)


def _parameters(tool: Tool) -> dict[str, object]:
    whole = dict(_schema(tool.arguments))
    parameters = _terse(whole, whole.get("$defs", {}))
    parameters.pop("additionalProperties", None)
    parameters.pop("description", None)
    return parameters


def _terse(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, object]:
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]]
    choices = [each for each in node.get("anyOf", ()) if each.get("type") != "null"]
    if len(choices) == 1:  # an optional value
        node = {**{key: value for key, value in node.items() if key != "anyOf"}, **choices[0]}
    kept: dict[str, object] = {key: node[key] for key in _KEPT if key in node}
    if "properties" in node:
        kept["properties"] = {name: _terse(each, definitions) for name, each in node["properties"].items()}
    if isinstance(node.get("items"), dict):
        kept["items"] = _terse(node["items"], definitions)
    if isinstance(kept.get("anyOf"), list):
        kept["anyOf"] = [_terse(each, definitions) for each in choices]
    return kept


@cache
def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Made once: it takes longer than reading the arguments of a call."""
    return arguments.model_json_schema()


def _required(tool: Tool) -> list[str]:
    return list(_schema(tool.arguments).get("required", ()))


def _fault(error: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f"{name} is missing"
        case "extra_forbidden":
            return f"there is no argument {name}"
        case _:
            return f"{name}: {error['msg']}" if name else str(error["msg"])


def _error(tool: Tool, fault: str, found: str) -> str:
    required = _required(tool)
    properties = _schema(tool.arguments).get("properties", {})
    expected = ", ".join(
        f"{name} ({_type(each)}{', required' if name in required else ''})" for name, each in properties.items()
    )
    text = strip_controls(found)
    text = text if len(text) <= _FOUND else text[:_FOUND] + "..."
    return f"{tool.name} was not run: {fault}. It takes: {expected or 'no arguments'}. Found: {text or 'nothing'}"


def _type(node: dict[str, Any]) -> str:
    choices = [each.get("type") for each in node.get("anyOf", ()) if each.get("type") != "null"]
    return str(node.get("type") or "/".join(str(each) for each in choices) or "any")
