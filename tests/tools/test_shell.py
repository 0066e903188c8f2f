from __future__ import annotations

import hashlib
import json
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from toolbox import Call, recorded_calls

from planrun.tools import scratch
from planrun.tools.base import ToolContext
from planrun.tools.environment import child_environment
from planrun.tools.registry import builtin_tools, parse_arguments
from planrun.tools.shell import spill


def test_results(call: Call) -> None:
    ok = call("Bash", command="echo out; echo err >&2")
    assert (ok.text, ok.status) == ("out\nerr", "ok")
    failed = call("Bash", command="printf '\\033[31mred\\033[0m\\n'; exit 2")
    assert (failed.text, failed.status) == ("red\n[exit code 2]", "error")
    assert call("Bash", command="true").text == "(no output)"
    assert call("Bash", command="false").text == "(no output)\n[exit code 1]"
    assert call("Bash", command="kill -9 $$").text == "(no output)\n[killed by signal 9]"
    assert call("Bash", cmd="pwd").status == "ok"


def test_timeout(call: Call) -> None:
    result = call("Bash", command="echo begun; sleep 60", timeout=2)
    assert result.status == "timeout"
    assert result.text == (
        "begun\n[timed out after 2 s; the process group was killed]\n[commands get no input and no terminal]"
    )
    result = call("Bash", seconds=0.2, command="sleep 60")
    assert "[timed out with the step's time; the process group was killed]" in result.text
    assert call("Bash", seconds=-1, command="touch never").text == "[not run: the step's time is used up]"


def test_long_output_is_saved_where_read_and_bash_see_it(call: Call, ctx: ToolContext) -> None:
    whole = "".join(f"{i}\n" for i in range(1, 20_001))
    result = call("Bash", command="seq 20000")
    assert result.text.startswith("1\n2\n")
    assert result.text.endswith("\n20000")
    [path] = re.findall(r"whole text: (\S+), page it with Read", result.text)
    assert path == f".thclaws/spill/bash-{hashlib.sha256(whole.encode()).hexdigest()[:12]}.txt"
    assert (ctx.workspace / path).read_text() == whole
    assert (ctx.workspace / path).stat().st_mode & 0o777 == 0o600
    assert call("Bash", command="seq 20000") == result
    assert call("Read", file_path=path, offset=19_999).text == "19999\n20000"
    assert call("Bash", command=f"tail -n 1 {path}").text == "20000"


def test_output_beyond_memory_is_saved_too(call: Call, ctx: ToolContext) -> None:
    result = call("Bash", command="seq 1 1000000")
    [path] = re.findall(r"whole text: (\S+), page it with Read", result.text)
    assert (ctx.workspace / path).stat().st_size == 6_888_896
    assert result.text.endswith("\n1000000")
    assert call("Bash", command="seq 1 1000000") == result
    assert os.listdir(ctx.spill) == [Path(path).name]


def test_recorded_single_line_of_five_million(call: Call) -> None:
    [(_, arguments)] = recorded_calls("OUT-04.response.json")
    result = call("Bash", **json.loads(arguments))
    assert result.status == "ok"
    assert len(result.text) <= 50_000


def test_recorded_prompts_return_at_once(ctx: ToolContext) -> None:
    tool = next(tool for tool in builtin_tools() if tool.name == "Bash")
    texts = []
    for _, arguments in recorded_calls("SIG-03.response.json"):
        parsed = parse_arguments(tool, arguments)
        texts.append(tool.run(parsed, ctx).text)
    assert texts[0] == "(no output)"
    assert texts[1] == "got:"
    assert texts[2].endswith("[exit code 1]\n[commands get no input and no terminal]")


def test_binary_and_progress(call: Call) -> None:
    assert call("Bash", command="head -c 3000 /dev/urandom; printf 'a\\0b'").status == "ok"
    assert call("Bash", command="for i in $(seq 500); do printf '\\r%s%%' $i; done; echo").text == "500%"


def test_spill_folder_that_cannot_be_made(call: Call, ctx: ToolContext) -> None:
    (ctx.workspace / ".thclaws").write_text("a file")
    result = call("Bash", command="seq 20000")
    assert result.status == "ok"
    assert "could not be saved" in result.text
    assert "could not be saved" in call("Bash", command="seq 1 1000000").text


def test_commands_that_cannot_run(call: Call) -> None:
    assert "too long for the system" in call("Bash", command="x" * 300_000).text
    assert "NUL" in call("Bash", command="a\0b").text
    assert call("Bash", command="no-such-command-here").status == "error"


def test_spill(ctx: ToolContext) -> None:
    assert spill("short", ctx, "grep") == "short"
    small = replace(ctx, limit=300)
    text = "é" * 1000
    clipped = spill(text, small, "grep")
    assert len(clipped) <= 300
    [name] = os.listdir(ctx.spill)
    assert f".thclaws/spill/{name}" in clipped
    assert (ctx.spill / name).read_text("utf-8") == text


def test_sandbox_prefix(call: Call, ctx: ToolContext) -> None:
    tool = next(tool for tool in builtin_tools() if tool.name == "Bash")
    parsed = parse_arguments(tool, '{"command": "echo $BOX"}')
    assert tool.run(parsed, replace(ctx, sandbox=("/usr/bin/env", "BOX=in"))).text == "in"


def test_recorded_endless_output(call: Call) -> None:
    [(_, arguments)] = recorded_calls("OUT-01.response.json")
    result = call("Bash", **{**json.loads(arguments), "timeout": 1.5})
    assert result.status == "timeout"
    assert re.search(r"bytes left out here; .*\n\[timed out after 1.5 s; .*\]", "".join(re.findall(r"\[.*\n?", result.text)))


def test_output_is_told_though_the_command_removed_what_was_saved(call: Call) -> None:
    result = call("Bash", command="seq 1 1000000; rm -rf .thclaws")
    assert (result.status, result.text[:4], result.text[-8:]) == ("ok", "1\n2\n", "\n1000000")
    assert "could not be saved" in result.text
    assert call("Bash", command='rm -rf "$PWD"').text == "(no output)"
    assert "is not there any more" in call("Bash", command="true").text


def test_the_oldest_saved_texts_make_room(tmp_path: Path) -> None:
    for age, name in enumerate(("new.txt", "mid.txt", "old.txt")):
        (tmp_path / name).write_bytes(b"x" * 100)
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / ".bash-1-1.part").write_bytes(b"x" * 1000)  # under way
    scratch.prune(tmp_path, 250)
    assert sorted(os.listdir(tmp_path)) == [".bash-1-1.part", "mid.txt", "new.txt"]
    scratch.prune(tmp_path, 250)
    scratch.prune(tmp_path / "none", 250)
    assert len(os.listdir(tmp_path)) == 3


ASKING = {
    "a password": "python3 -c 'import getpass; getpass.getpass()'",
    "the terminal": "exec 3</dev/tty",
    "a line": "read -r line",
    "an editor": "git -c sequence.editor='sleep 60' -c core.editor='sleep 60' -c user.name=a -c user.email=a@b rebase -i HEAD~1; false",
    "a name": "git ls-remote https://127.0.0.1:1/private",
    "a page": "git -c core.pager='sleep 60' log; seq 100 | ${PAGER:-sleep 60}; false",
}


@pytest.mark.parametrize("what", ASKING)
def test_what_asks_somebody_ends_at_once(ctx: ToolContext, what: str) -> None:
    tool = next(tool for tool in builtin_tools() if tool.name == "Bash")
    begin = "git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; "
    env = child_environment(os.environ, {}) | {"HOME": str(ctx.workspace)}
    arguments = tool.arguments(command=begin * 2 + ASKING[what], timeout=50)
    began = time.monotonic()
    result = tool.run(arguments, replace(ctx, env=env))
    assert result.status == "error", result.text
    assert time.monotonic() - began < 40
