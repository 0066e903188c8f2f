"""The form of rules that name tool calls: `*`, `Read`, `Bash(git status*)`, `Write(src/**)`."""

from __future__ import annotations

import difflib
import re

from planrun.core.names import TOOLS

FORM = re.compile(r"(\*|[A-Za-z_][\w.*-]*)(?:\((.+)\))?", re.DOTALL)


def rule(text: str) -> str:
    """`text` where it is a rule. Raises ValueError."""
    found = FORM.fullmatch(text)
    if not found:
        raise ValueError("expected a rule such as Bash(git status*) or Write(src/**)")
    if name := meant(found[1]):
        raise ValueError(f"expected the name of a tool (did you mean {name}{text[found.end(1) :]}?)")
    return text


def meant(tool: str) -> str | None:
    """The tool that somebody must have meant who wrote another name; tools of servers have names of their own."""
    near = difflib.get_close_matches(tool.lower(), [name.lower() for name in TOOLS], 1, 0.8)
    return next((name for name in TOOLS if near and name.lower() == near[0] and name != tool and "*" not in tool), None)
