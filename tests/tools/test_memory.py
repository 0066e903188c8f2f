"""Floods and huge files: what planrun itself takes for them, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planrun.masking.formats import REACH
from planrun.tools.capture import CAPTURE_LIMIT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak")
MOST = 100 << 10  # KiB, of the whole process
SCRIPT = """
import json, re, sys
from pathlib import Path
from planrun import api  # all of planrun, as a run has it
from planrun.tools.base import ToolContext
from planrun.tools.registry import builtin_tools, parse_arguments
calls, folder = json.loads(sys.argv[1])
workspace = Path(folder)
ctx = ToolContext(workspace, workspace / ".thclaws" / "tool-output", env={"PATH": "/usr/bin:/bin"})
for name, arguments in calls:
    tool = next(tool for tool in builtin_tools() if tool.name == name)
    result = tool.run(parse_arguments(tool, json.dumps(arguments)), ctx)
    # Not ru_maxrss: that counts what the parent had before it.
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
    print(json.dumps([result.status, result.text, peak]))
"""
NOISE = "import random, sys; r = random.Random(1); [sys.stdout.buffer.write(r.randbytes(1 << 20)) for _ in range(67)]"
FLOODS = {
    "lines": "yes | head -c 70000000",
    "one line": "head -c 70000000 /dev/zero | tr '\\0' x",
    "zeros": "head -c 70000000 /dev/zero",
    "noise": f"{sys.executable} -c '{NOISE}'",  # always the same: what looks like a secret in it is masked
    "progress": "yes \"$(printf '\\r50%%')\" | tr -d '\\n' | head -c 70000000",
    "colours": "yes \"$(printf '\\033[31m')\" | tr -d '\\n' | head -c 70000000",
    "emoji": "yes 😀 | tr -d '\\n' | head -c 70000000",
    "on stderr": "yes | head -c 70000000 >&2",
}


Spent = tuple[str, str, int]


def spent(calls: list[tuple[str, dict[str, Any]]], folder: Path) -> list[Spent]:
    """Of each call, one after another in a fresh process: status, text, and the most memory that it has had, in KiB."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([calls, str(folder.resolve())])],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_floods(tmp_path: Path) -> None:
    results = spent([("Bash", {"command": command}) for command in FLOODS.values()], tmp_path)
    for kind, (status, text, peak) in zip(FLOODS, results, strict=True):
        assert (status, len(text) <= 50_000, peak < MOST) == ("ok", True, True), (kind, text[:200], peak)
    saved = [each.stat().st_size for each in (tmp_path / ".thclaws" / "tool-output").iterdir()]
    assert len(saved) >= len(FLOODS) - 1  # zeros are no text
    held = 4 * REACH  # bytes at the end that may be the beginning of a secret: they are never saved
    assert all(CAPTURE_LIMIT - held <= size <= CAPTURE_LIMIT for size in saved), saved


CALLS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "one line": ("Read", {"file_path": "line"}, "ok", "characters of this line left out"),
    "zeros": ("Read", {"file_path": "zeros"}, "error", "is a binary file of 100,000,007 bytes"),
    "a page": ("Read", {"file_path": "lines", "offset": 3_999_990}, "ok", "0123456789abcde\n0123456789abcde"),
    "far behind": ("Read", {"file_path": "lines", "offset": 10**18}, "error", "the file has 4,000,000 lines"),
    "grep": ("Grep", {"pattern": "needle", "glob": "line"}, "ok", "searched only in their first 10,000 characters"),
    "edit one line": ("Edit", {"file_path": "line", "old": "needle", "new": "x"}, "error", "larger than 4 MiB"),
    "explode": ("Edit", {"file_path": "edited", "old": "\n", "new": "y" * 9999, "all": True}, "error", "would be larger"),
    "edit all": ("Edit", {"file_path": "edited", "old": "x", "new": "yz", "all": True}, "ok", "800000 replacements"),
    "list": ("Ls", {}, "ok", "line  100,000,007 bytes"),
}


def test_huge_files(tmp_path: Path) -> None:
    with open(tmp_path / "zeros", "wb") as file:
        file.seek(100_000_000)
        file.write(b"needle\n")
    with open(tmp_path / "line", "wb") as file:
        file.writelines(b"x" * 1_000_000 for _ in range(100))
        file.write(b"needle\n")
    (tmp_path / "lines").write_bytes(b"0123456789abcde\n" * 4_000_000)
    (tmp_path / "edited").write_bytes(b"x\r\n" * 800_000)
    results = spent([(name, arguments) for name, arguments, _, _ in CALLS.values()], tmp_path)
    for (what, (_, _, expected, said)), (status, text, peak) in zip(CALLS.items(), results, strict=True):
        assert (status, said in text, peak < MOST) == (expected, True, True), (what, text[:300], peak)
