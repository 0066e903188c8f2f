"""Names that stand in many places: of planrun's own folder, relative to the working directory, and of the built-in tools."""

from __future__ import annotations

FOLDER = ".thclaws"
SETTINGS, SESSIONS, SPILL = f"{FOLDER}/settings.json", f"{FOLDER}/sessions", f"{FOLDER}/tool-output"

PATH_TOOLS = ("Read", "Write", "Edit", "Glob", "Grep", "Ls")
HISTORY_TOOLS = ("SearchHistory", "ExpandHistory")
PLAN_TOOL = "UpdatePlanStep"
TOOLS = (*PATH_TOOLS, "Bash", *HISTORY_TOOLS, PLAN_TOOL)  # in the order in which models are offered them
