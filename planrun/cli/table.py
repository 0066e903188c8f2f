"""Every command, which is the module of its name, and what it does in one line. Help is made from this without importing any."""

from __future__ import annotations

COMMANDS = {
    "run": "Validate a plan, start a session and run it.",
    "resume": "Go on with a session that stopped.",
    "validate": "Check plan files; nothing is run.",
    "schema": "Print the JSON Schema of plan files, for editors.",
    "init": "Write a starter plan and settings.",
    "list": "List the sessions.",
    "show": "Show a session: steps, outputs, what was spent.",
    "logs": "Print the records of a session as text.",
    "output": "Print a value that a session left.",
    "context": "Print what the model saw at a request, or would see next.",
    "compact": "Make the context of a stopped session smaller.",
    "fork": "Start a new session from a summary of another.",
    "search": "Search all that was said, also what the context has lost.",
    "expand": "Print originals: records by number, range or step.",
    "doctor": "Check logs line by line; repair one into a copy.",
    "config": "Show the settings in force and where each comes from.",
}
