"""The form of a plan: data against the models of `schema`, with the faults in words of the plan file."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from planrun.core.hints import nearest
from planrun.core.units import shown
from planrun.planfile.nodes import Nothing
from planrun.planfile.report import Path, Report, spelled
from planrun.planfile.schema import (
    CheckTable,
    LimitsTable,
    OutputTable,
    ParamTable,
    PlanTable,
    RetryTable,
    StepTable,
)

# Below a table: the table under a key, and how many steps of the path stand between them (a position or a name).
_CHILDREN: dict[tuple[type[BaseModel], str], tuple[type[BaseModel], int]] = {
    (PlanTable, "steps"): (StepTable, 1),
    (PlanTable, "finally"): (StepTable, 1),
    (PlanTable, "limits"): (LimitsTable, 0),
    (PlanTable, "params"): (ParamTable, 1),
    (StepTable, "limits"): (LimitsTable, 0),
    (StepTable, "retry"): (RetryTable, 0),
    (StepTable, "verify"): (CheckTable, 1),
    (StepTable, "output"): (OutputTable, 1),
    (ParamTable, "items"): (OutputTable, 0),
    (OutputTable, "items"): (OutputTable, 0),
}
_ROUNDS = 3


def shape(data: dict[str, Any], report: Report) -> PlanTable | None:
    """The plan's tables, without what is faulty (and reported), so that the rest can be checked; None if too little is left."""
    for _ in range(_ROUNDS):
        try:
            return PlanTable.model_validate(data)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                _tell(detail, report)
            if not all(_leave_out(data, detail) for detail in error.errors(include_url=False)):
                return None
    return None


def _tell(detail: ErrorDetails, report: Report) -> None:
    path: Path = detail["loc"]
    report.damaged.add(path[:2] if path[:1] in (("steps",), ("finally",)) else path[:1])
    name = next((str(part) for part in reversed(path) if isinstance(part, str)), "the plan")
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        _unknown_key(path, report)
    elif kind == "missing":
        report.at(path[:-1], f"the key {name} is missing")
    elif isinstance(detail["input"], Nothing):
        report.key(path, f"{name} has no value", "write one, or leave the key out")
    elif kind == "literal_error":
        word = str(detail["input"])
        found = spelled(word) if isinstance(detail["input"], str) else shown(detail["input"])
        choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
        report.at(path, f"{name}: expected {context['expected'].replace(chr(39), '')}, found {found}", nearest(word, choices))
    else:
        report.at(path, f"{name}: {_words(kind, context, detail)}")


def _words(kind: str, context: dict[str, Any], detail: ErrorDetails) -> str:
    found = shown(detail["input"])
    match kind:
        case "string_type":
            return f"expected text, found {found}"
        case "list_type":
            return f"expected a list, found {found}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"expected keys with values, found {found}"
        case "greater_than" | "greater_than_equal":
            least = "at least" if "ge" in context else "more than"
            return f"expected {least} {context.get('ge', context.get('gt'))}, found {found}"
        case "too_short":
            return "the list is empty"
        case "value_error":
            return str(context.get("error", detail["msg"]))
    return detail["msg"]


def _unknown_key(path: Path, report: Report) -> None:
    table: type[BaseModel] = PlanTable
    position = 0
    while position < len(path) and (child := _CHILDREN.get((table, str(path[position])))):
        table, skipped = child
        position += 1 + skipped
    known = [field.alias or key for key, field in table.model_fields.items()]
    word = str(path[-1])
    hint = nearest(word.strip(), known) or f"known keys: {', '.join(known)}"
    if table is PlanTable and not hint.startswith("did"):
        hint += "; a key that begins with x- is free for anchors"
    report.key(path, f"unknown key {spelled(word)}", hint)


def _leave_out(data: dict[str, Any], detail: ErrorDetails) -> bool:
    """Takes the faulty value out of `data` with its key; whether what is left still has steps."""
    path = detail["loc"]
    if detail["type"] == "missing":
        return _stand_in(data, path)
    holder: dict[str, Any] | None = None
    found: str | int = ""
    value: Any = data
    for part in path:
        if isinstance(value, dict) and part in value:
            holder, found, value = value, part, value[part]
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
    if holder is None or (holder is data and found == "steps"):
        return False
    del holder[str(found)]
    return True


def _stand_in(data: dict[str, Any], path: Path) -> bool:
    if len(path) == 3 and path[2] == "id":
        data[str(path[0])][path[1]]["id"] = f"{path[0]}[{path[1]}]"
        return True
    return False
