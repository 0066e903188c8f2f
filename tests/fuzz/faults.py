"""What fuzzing found once, each with its smallest input."""

from __future__ import annotations

FAULTS: list[tuple[str, bytes]] = [
    ("settings", b'{"limits": {"ti\\u0000me": 1}}'),  # a name from the file broke the line of its fault
    ("settings", b'{"hooks": {"pre_tool_use": {"c\x7fd": 1}}}'),
    ("parameters", b"a:\n" * 102),  # that there are more faults had no place
]
