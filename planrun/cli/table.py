"""Every command: where it is, and what it does in one line. Help is made from this without importing any of them."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    module: str
    help: str


COMMANDS = {
    "run": Entry("planrun.cli.run", "Validate a plan, start a session and run it."),
    "resume": Entry("planrun.cli.resume", "Go on with a session that stopped."),
    "validate": Entry("planrun.cli.validate", "Check plan files; nothing is run."),
    "schema": Entry("planrun.cli.schema", "Print the JSON Schema of plan files, for editors."),
    "init": Entry("planrun.cli.init", "Write a starter plan and settings."),
    "list": Entry("planrun.cli.list", "List the sessions."),
    "show": Entry("planrun.cli.show", "Show a session: steps, outputs, what was spent."),
    "logs": Entry("planrun.cli.logs", "Print the records of a session as text."),
    "output": Entry("planrun.cli.output", "Print a value that a session left."),
    "context": Entry("planrun.cli.context", "Print what the model saw at a request, or would see next."),
    "compact": Entry("planrun.cli.compact", "Make the context of a stopped session smaller."),
    "fork": Entry("planrun.cli.fork", "Start a new session from a summary of another."),
    "search": Entry("planrun.cli.search", "Search all that was said, also what the context has lost."),
    "expand": Entry("planrun.cli.expand", "Print originals: records by number, range or step."),
    "doctor": Entry("planrun.cli.doctor", "Check logs line by line; repair one into a copy."),
    "config": Entry("planrun.cli.config", "Show the settings in force and where each comes from."),
}
