"""Plan files: YAML with positions, checked as a whole, to a core Plan. Every fault of a file is reported at once."""

from planrun.planfile.load import LoadedPlan, load, parse, read_plan
from planrun.planfile.schema import json_schema

__all__ = ["LoadedPlan", "json_schema", "load", "parse", "read_plan"]
