"""What only a process shows: signals, pipes that close, streams that are ASCII or not there at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import COMMANDS, one_object
from tests.cli.processes import COMMAND, environ, finished, start, until

WIDE = """\
version: 1
name: п中😀
steps:
  - {id: a, run: 'printf "é中😀"', output: {t: string}}
output: {t: '${{ steps.a.output.t }}'}
"""
SLOW = "version: 1\nsteps:\n  - {id: a, run: 'echo begun >&2; touch begun; sleep 60'}\n"
ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_python_m_planrun(tmp_path: Path) -> None:
    assert finished(tmp_path, "--version").stdout.startswith(b"planrun ")


@pytest.mark.parametrize("env", [ASCII, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "ascii:strict"}])
@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_a_stream_that_is_not_unicode_changes_nothing_but_the_spelling(tmp_path: Path, env: dict[str, str], form: str) -> None:
    (tmp_path / "plan.yaml").write_text(WIDE, encoding="utf-8")
    done = finished(tmp_path, "run", "plan.yaml", "--format", form, "--session", "s", env=env)
    assert done.returncode == 0, done.stderr
    assert done.stderr.isascii()
    if form == "json":
        assert one_object(done.stdout.decode("ascii"))["output"] == {"t": "é中😀"}
    elif form == "jsonl":
        assert done.stdout == (tmp_path / ".thclaws" / "sessions" / "s.jsonl").read_bytes()
    else:
        assert done.stdout == rb"t: \xe9\u4e2d\U0001f600" + b"\n"
    assert finished(tmp_path, "output", "s", "a.t", env=env).stdout == "é中😀".encode()
    assert finished(tmp_path, "logs", "s", env=env).returncode == 0
    assert finished(tmp_path, "show", "s", env=env).stdout.isascii()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_resumable(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "plan.yaml").write_text(SLOW, encoding="utf-8")
    with start(tmp_path, "run", "plan.yaml", "--format", "json", "--session", "s", stdout=subprocess.PIPE,
               stderr=subprocess.PIPE) as run:  # fmt: skip
        until(run.stderr, b"running echo begun")
        run.send_signal(number)
        out, err = run.communicate(timeout=30)
    found = one_object(out.decode())
    assert run.returncode == found["exit_code"] == 128 + number
    assert found["outcome"] == "interrupted"
    assert b"resume with: planrun resume s" in err and b"Traceback" not in err


def test_what_a_killed_run_left_is_gone_after_the_next(tmp_path: Path) -> None:
    fatal = 'until [ -s pid ]; do sleep 0.01; done; echo t=one > "$PLANRUN_OUTPUT"; [ -e again ] || { touch again; kill -9 $(cat pid); }'
    plan = {"steps": [{"id": "a", "run": fatal, "output": {"t": "string"}}]}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan), encoding="utf-8")
    temporary = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    with start(tmp_path, "run", "plan.yaml", "--session", "s", env=temporary, stderr=subprocess.DEVNULL) as run:
        (tmp_path / "pid").write_text(str(run.pid), encoding="utf-8")
        assert run.wait(30) == -signal.SIGKILL
    saved = tmp_path / ".thclaws" / "tool-output"
    assert [p.suffix for p in saved.iterdir()] == [".part"]
    assert finished(tmp_path, "resume", "s", env=temporary).returncode == 0
    assert finished(tmp_path, "output", "s", "a.t").stdout == b"one"
    assert [*saved.iterdir(), *(tmp_path / "tmp").iterdir()] == []


def test_interrupted_outside_of_a_run_is_130(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(SLOW, encoding="utf-8")
    with start(tmp_path, "run", "plan.yaml", "--session", "s", stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as run:
        until(run.stderr, b"running echo begun")
        with start(tmp_path, "logs", "-f", "s", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follow:
            until(follow.stdout, b"tool_start")
            follow.send_signal(signal.SIGINT)
            _, err = follow.communicate(timeout=30)
        assert follow.returncode == 130 and b"Traceback" not in err
        run.terminate()
        run.communicate(timeout=30)


def test_following_sees_the_end_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(SLOW, encoding="utf-8")
    with start(tmp_path, "run", "plan.yaml", "--session", "s", stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as run:
        until(run.stderr, b"running echo begun")
        with start(tmp_path, "logs", "-f", "--format", "jsonl", "s", stdout=subprocess.PIPE) as follow:
            assert follow.stdout is not None
            first = follow.stdout.readline()
            run.terminate()
            rest, _ = follow.communicate(timeout=30)
        run.communicate(timeout=30)
    assert follow.returncode == 0
    assert first + rest == (tmp_path / ".thclaws" / "sessions" / "s.jsonl").read_bytes()
    assert json.loads(rest.splitlines()[-1])["type"] == "end"


@pytest.mark.parametrize("form", ["text", "json", "jsonl"])
def test_a_reader_that_goes_away_ends_no_run(tmp_path: Path, form: str) -> None:
    (tmp_path / "plan.yaml").write_text(COMMANDS, encoding="utf-8")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with start(tmp_path, "run", "plan.yaml", "--format", form, "--session", "s", stdout=writing, stderr=writing) as run:
            assert run.wait(60) == 0
    finally:
        os.close(writing)
    assert one_object(finished(tmp_path, "show", "s", "--format", "json").stdout.decode())["outcome"] == "finished"


def test_a_reader_that_goes_away_is_no_error_of_a_listing(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(COMMANDS, encoding="utf-8")
    assert finished(tmp_path, "run", "plan.yaml", "--session", "s").returncode == 0
    for args in (["logs", "s"], ["show", "s"], ["list"], ["output", "s"], ["config"], ["schema"], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        with start(tmp_path, *args, stdout=writing, stderr=subprocess.PIPE) as looking:
            os.close(writing)
            _, err = looking.communicate(timeout=60)
        assert err == b"", args


def test_streams_that_are_closed_do_not_reach_the_log(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(COMMANDS, encoding="utf-8")
    line = " ".join([*COMMAND, "run plan.yaml --session s 0<&- >&- 2>&-"])
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environ(tmp_path), timeout=60, check=False)
    assert done.returncode == 0
    log = (tmp_path / ".thclaws" / "sessions" / "s.jsonl").read_bytes().splitlines()
    assert all(json.loads(line)["seq"] == n for n, line in enumerate(log, 1))


@pytest.mark.parametrize("command", [("run", "../plan.yaml"), ("resume",), ("list",), ("config",)])
def test_a_working_directory_that_is_gone(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "plan.yaml").write_text(COMMANDS, encoding="utf-8")
    gone = tmp_path / "gone"
    gone.mkdir()
    leave = f'rmdir ../gone; exec "{sys.executable}" -m planrun "$@"'
    ran = subprocess.run(["sh", "-c", leave, "sh", *command], cwd=gone, env=environ(tmp_path), capture_output=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.decode().splitlines() == ["planrun: the working directory is not there any more: change to one that is"]


def test_an_internal_error_is_one_line(tmp_path: Path) -> None:
    program = (
        "import sys, types\n"
        "broken = types.ModuleType('planrun.api')\n"
        "sys.modules['planrun.api'] = broken\n"
        "from planrun.cli.main import main\n"
        "main(['run', 'p.yaml'])\n"
    )
    for debug in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environ(tmp_path, PLANRUN_DEBUG=debug),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith("planrun: internal error: ")
        assert ("Traceback" in done.stderr) == bool(debug)


def test_an_output_that_holds_a_secret_reaches_no_channel_of_ci(tmp_path: Path) -> None:
    value = "Zq8kd93jfK2lmnopQrstuv"
    plan = "name: p\nsecrets: [TOK]\nsteps:\n  - {id: a, run: 'echo for $TOK', output: {said: string}}\n"
    (tmp_path / "p.yaml").write_text(plan + "output: {all: '${{ steps.a.output.said }}'}\n")
    page = tmp_path / "page.md"
    env = {"TOK": value, "GITHUB_STEP_SUMMARY": str(page), "CI": "1"}
    for form in ("text", "json", "jsonl"):
        files = {"--summary": tmp_path / f"{form}.json", "--junit": tmp_path / f"{form}.xml"}
        options = [str(word) for pair in files.items() for word in pair]
        ran = finished(tmp_path, "run", "p.yaml", "--session", form, "--format", form, *options, env=env)
        assert ran.returncode == 0
        assert b"withheld" in ran.stderr
        for told in (ran.stdout, ran.stderr, page.read_bytes(), *(p.read_bytes() for p in files.values())):
            assert value.encode() not in told
        for told in (
            files["--summary"].read_bytes(),
            files["--junit"].read_bytes(),
            *([] if form == "jsonl" else [ran.stdout]),
        ):
            assert b"[withheld: contains secret TOK]" in told
    masked = finished(tmp_path, "output", "text", "a.said", env=env).stdout
    assert masked == b"for [secret TOK]"
