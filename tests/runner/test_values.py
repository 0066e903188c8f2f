"""Values: parameters, outputs of commands, files, the environment and secrets."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from planrun.errors import ConfigError, PlanrunError, UsageError
from planrun.testing.model import call, done
from planrun.views import result as views
from tests.runner.driving import again, ask, contents, ended, project, reason, shell, statuses, step

OK, INVALID = ("finished", 0), ("output_invalid", 1)
SECRET = "hunter2-hunter2"


def text(**more: Any) -> dict[str, Any]:
    return {"type": "string", **more}


RUN_OUTPUTS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "a single string is stdout": ({"v": "string"}, "printf 'a\\n b\\n\\n'; echo e >&2", {"v": "a\n b"}),
    "stdout typed": ({"n": {"type": "integer", "from": "stdout"}}, "echo 42", {"n": 42}),
    "json": (
        {"a": {"type": "integer", "from": "json"}, "b": text()},
        'echo log; echo \'{"a": 1, "b": "x"}\'',
        {"a": 1, "b": "x"},
    ),
    "the file": (
        {"a": "integer", "b": "string"},
        "echo a=1 >> $PLANRUN_OUTPUT; echo b=x=y >> $PLANRUN_OUTPUT",
        {"a": 1, "b": "x=y"},
    ),
    "a block": (
        {"b": "string", "a": "string"},
        "printf 'b<<END\\n1\\n2\\nEND\\na=\\n' > $PLANRUN_OUTPUT",
        {"b": "1\n2", "a": ""},
    ),
    "unicode": ({"v": "string"}, "printf 'é中😀'", {"v": "é中😀"}),
    "nothing printed": ({"v": "string"}, "true", {"v": ""}),
    "optional": ({"a": text(required=False), "b": text(required=False)}, "true", {}),
    "none declared": ({}, "echo ignored", {}),
    "the file is gone": ({"v": "string"}, "rm -r ${PLANRUN_OUTPUT%/*}; printf x", {"v": "x"}),
    "no option of the shell": ({"v": "string"}, "-c() { echo called; }; -c", {"v": "called"}),
}


@pytest.mark.parametrize("name", RUN_OUTPUTS)
def test_outputs_of_commands(tmp_path: Path, name: str) -> None:
    fields, command, expected = RUN_OUTPUTS[name]
    run = project(tmp_path, shell("a", command, output=fields))
    result = run.run([])
    assert (ended(result), result.state.steps[0].output) == (OK, expected)


BAD_OUTPUTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no number": ({"n": {"type": "integer", "from": "stdout"}}, "echo many", "n"),
    "no json": ({"n": {"type": "integer", "from": "json"}}, "echo many", "JSON object on the last line"),
    "missing": ({"a": "string", "b": "string"}, "echo a=1 > $PLANRUN_OUTPUT", "b: missing"),
    "too long": ({"v": text(max_length=3)}, "echo four", "v"),
    "pattern": ({"v": text(pattern="^x$")}, "echo y", "v"),
    "enum": ({"v": text(enum=["x", "z"])}, "echo y", "v"),
    "over 64 KiB": ({"v": "string"}, "head -c 3000000 /dev/zero | tr '\\0' x", "65,536"),
    "not a pair": ({"v": "string", "w": "string"}, "echo oops > $PLANRUN_OUTPUT", "oops"),
    "no pair at all": ({"v": "string", "w": "string"}, "yes oops | head -c 99999 > $PLANRUN_OUTPUT", "oops"),
    "names that nobody asked for": ({"v": "string"}, "seq -f a%.0f=1 9999 > $PLANRUN_OUTPUT", "a1"),
    "endless file": ({"v": "string"}, "head -c 9999999 /dev/zero > $PLANRUN_OUTPUT", "at most 262,144 bytes"),
    "a pipe": ({"v": "string"}, "rm $PLANRUN_OUTPUT; mkfifo $PLANRUN_OUTPUT", "not a regular file"),
    "a link": ({"v": "string"}, "ln -sf /etc/passwd $PLANRUN_OUTPUT", "PLANRUN_OUTPUT"),
    "a folder": ({"v": "string"}, "rm $PLANRUN_OUTPUT; mkdir $PLANRUN_OUTPUT", "is a directory"),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_an_output_that_does_not_fit_fails_loudly(tmp_path: Path, name: str) -> None:
    fields, command, words = BAD_OUTPUTS[name]
    run = project(tmp_path, shell("a", command, output=fields), shell("b", "touch b"))
    result = run.run([])
    assert (ended(result), statuses(result)) == (INVALID, ["failed", "todo"])
    assert words in reason(result)
    assert len(run.log.read_bytes()) < 60_000


def test_the_plans_output_keeps_types(tmp_path: Path) -> None:
    run = project(
        tmp_path,
        step("a", output={"n": "integer", "l": "array"}),
        output={"n": "${{ steps.a.output.n }}", "text": "n is ${{ steps.a.output.n }}", "all": "${{ steps.a.output.l }}"},
    )
    result = run.run([done(n=3, l=[1, "x"])])
    assert result.state.ended is not None
    assert result.state.ended.output == {"n": 3, "text": "n is 3", "all": [1, "x"]}
    assert run.of("end")[-1]["output"] == result.state.ended.output


FILES = [shell("a", "printf data > r.txt", output={"r": {"type": "file", "path": "r.txt"}})]


def test_a_file_output_leaves_path_size_and_digest(tmp_path: Path) -> None:
    run = project(tmp_path, *FILES, step("b", "Read ${{ steps.a.output.r }}."))
    result = run.run([done()])
    assert ended(result) == OK
    assert result.state.steps[0].output == {"r": "r.txt"}
    assert run.of("step")[1]["files"] == {"r": {"path": "r.txt", "size": 4, "sha256": hashlib.sha256(b"data").hexdigest()}}
    assert "Read r.txt." in contents(run.messages(), "user")[-1]


USERS = {
    "prompt": step("b", "Read ${{ steps.a.output.r }}."),
    "run": shell("b", "cat ${{ steps.a.output.r }}"),
    "verify": shell("b", "true", verify="cat ${{ steps.a.output.r }}"),
    "env": shell("b", "cat $F", env={"F": "${{ steps.a.output.r }}"}),
}


@pytest.mark.parametrize("change", ["echo other > r.txt", "rm r.txt", "rm r.txt; mkdir r.txt"])
@pytest.mark.parametrize("use", USERS)
def test_a_file_output_is_checked_when_it_is_used(tmp_path: Path, use: str, change: str) -> None:
    run = project(tmp_path, *FILES, shell("spoil", change), USERS[use])
    result = run.run([done()])
    assert ended(result) == INVALID
    assert "r.txt" in reason(result) and "step a" in reason(result)


def test_a_file_that_nobody_uses_may_go(tmp_path: Path) -> None:
    run = project(tmp_path, *FILES, shell("spoil", "rm r.txt"))
    assert ended(run.run([])) == OK


def test_a_file_that_is_missing_is_told_to_the_model(tmp_path: Path) -> None:
    run = project(tmp_path, step("a", output={"r": {"type": "file", "path": "out/r.txt"}}, fix=1))
    result = run.run([done(), call("Bash", command="mkdir out; touch out/r.txt"), done()])
    assert ended(result) == OK
    assert "out/r.txt" in contents(run.messages(), "tool")[0]


@pytest.mark.parametrize("command", ["true", "ln -s /etc/passwd r.txt", "mkdir r.txt"])
def test_a_file_output_that_is_no_file_in_the_folder(tmp_path: Path, command: str) -> None:
    run = project(tmp_path, shell("a", command, output={"r": {"type": "file", "path": "r.txt"}}))
    result = run.run([])
    assert ended(result)[1] == 1
    assert "r.txt" in reason(result)


# --- shell and environment --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["x'; touch pwned; '", "$(touch pwned)", "`touch pwned`", 'a"b', "two  words", "é\n中", "-n"])
def test_a_value_never_becomes_shell_code(tmp_path: Path, value: str) -> None:
    run = project(
        tmp_path,
        step("a", output={"v": "string"}, verify="printf %s ${{ steps.a.output.v }} > v"),
        shell("r", 'printf %s ${{ steps.a.output.v }} > r; printf %s "<${{ steps.a.output.v }}>" > q'),
    )
    assert ended(run.run([done(v=value)])) == OK
    assert (run.file("v"), run.file("r"), run.file("q")) == (value, value, f"<{value}>")
    assert not (tmp_path / "pwned").exists()


def test_what_children_see_of_the_environment(tmp_path: Path) -> None:
    run = project(
        tmp_path,
        step("a", env={"EXTRA": "for ${{ params.p }}"}),
        shell("b", "env > b.env; echo ${{ env.PLAIN }} > plain"),
        params={"p": "me"}, secrets=["MY_TOKEN"], env=["PLAIN"],
    )  # fmt: skip
    run.environ |= {
        "OPENAI_API_KEY": "planrun-test-KEY-123456", "MY_TOKEN": SECRET, "OTHER_TOKEN": "other-value", "PLAIN": "plain",
        "AWS_SECRET_ACCESS_KEY": "aws-value",
    }  # fmt: skip
    assert ended(run.run([call("Bash", command="env > a.env"), done()])) == OK
    for name in ("a.env", "b.env"):
        lines = run.file(name).splitlines()
        assert f"MY_TOKEN={SECRET}" in lines and "PLAIN=plain" in lines
        assert not any(hidden in run.file(name) for hidden in ("KEY-123456", "other-value", "aws-value", "PLANRUN_MODEL"))
        assert ("EXTRA=for me" in lines) == (name == "a.env")
    assert run.file("plain") == "plain\n"


def test_secrets_are_masked_wherever_they_come_up(tmp_path: Path) -> None:
    run = project(
        tmp_path,
        step("a", output={"v": "string"}, verify="echo $MY_TOKEN; test -e ok", fix=1),
        shell("b", "echo got $MY_TOKEN", output={"o": "string"}),
        secrets=["MY_TOKEN"], output={"o": "${{ steps.b.output.o }}"},
    )  # fmt: skip
    run.environ |= {"MY_TOKEN": SECRET, "OPENAI_API_KEY": "planrun-test-KEY-123456"}
    (tmp_path / "key").write_text("planrun-test-KEY-123456")
    result = run.run([done(v=f"it is {SECRET}"), call("Bash", command="echo $MY_TOKEN $(cat key); touch ok"), done(v="x")])
    assert ended(result) == OK
    log = run.log.read_text()
    assert SECRET not in log and "KEY-123456" not in log
    assert "[secret MY_TOKEN]" in log and "[secret OPENAI_API_KEY]" in log
    assert result.state.steps[1].output == {"o": "got [secret MY_TOKEN]"}
    assert SECRET not in json.dumps(run.requests)
    found = views.result(result.state, result.path)
    assert found["output"] == {"o": "[withheld: contains secret MY_TOKEN]"} and views.withholds(found)
    assert run.log.stat().st_mode & 0o777 == 0o600


def test_a_secret_that_is_templated_is_refused(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "echo ${{ env.MY_TOKEN }}"), secrets=["MY_TOKEN"])
    with pytest.raises(PlanrunError) as caught:
        run.run([])
    assert caught.value.exit_code == 2


def test_a_declared_variable_without_a_value_stops_before_anything(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "touch ran"), env=["NOT_SET"])
    for value, why in ((None, "is not set"), ("a\udcff", "is not UTF-8")):
        run.environ |= {"NOT_SET": value} if value else {}
        with pytest.raises(PlanrunError, match=f"NOT_SET.* {why}") as caught:
            run.run([])
        assert caught.value.exit_code == 2
    assert not run.log.exists() and not (tmp_path / "ran").exists()


# --- parameters -------------------------------------------------------------------------------------------------------

PARAMS = {
    "s": {"type": "string", "default": "no"}, "i": {"type": "integer", "default": 1}, "f": {"type": "number", "default": 1},
    "b": {"type": "boolean", "default": False}, "l": {"type": "array", "default": []}, "o": {"type": "object", "default": {}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("s", "1.10", "1.10"), ("s", "", ""), ("i", "42", 42), ("i", "-7", -7), ("f", "1e3", 1000.0), ("f", "1.5", 1.5),
        ("b", "true", True), ("l", '["a", 1]', ["a", 1]), ("o", '{"k": null}', {"k": None}),
    ],
)  # fmt: skip
def test_parameters_have_types(tmp_path: Path, name: str, given: str, value: object) -> None:
    run = project(tmp_path, shell("a", "true"), params=PARAMS, output={"v": f"${{{{ params.{name} }}}}"})
    result = run.run([], ask(params={name: given}))
    assert result.state.ended is not None and result.state.ended.output == {"v": value}
    assert run.of("session")[0]["params"][name] == value


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"i": "many"}, "i"),
        ({"b": "maybe"}, "b"),
        ({"l": "x"}, "l"),
        ({"o": "[1]"}, "o"),
        ({"nope": "1"}, "nope"),
        ({}, "must"),
    ],
)
def test_parameters_that_do_not_fit_stop_before_anything(tmp_path: Path, params: dict[str, Any], word: str) -> None:
    wanted = PARAMS | ({"must": {"type": "string", "required": True}} if not params else {})
    run = project(tmp_path, shell("a", "touch ran"), params=wanted)
    with pytest.raises(UsageError, match=word):
        run.run([], ask(params=params))
    assert not run.log.exists() and not (tmp_path / "ran").exists()


def test_parameters_hold_over_a_resume(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "true"), shell("b", "echo ${{ params.s }}", output={"v": "string"}), params=PARAMS)
    run.run([], ask(params={"s": "mine"}, until="a"))
    result = run.resume([], again())
    assert result.state.steps[1].output == {"v": "mine"}


def test_the_environment_names_hold_over_a_resume(tmp_path: Path) -> None:
    run = project(tmp_path, shell("a", "true"), shell("b", "echo ${{ env.WHO }}", output={"v": "string"}), env=["WHO"])
    run.environ["WHO"] = "first"
    run.run([], ask(until="a"))
    del run.environ["WHO"]
    assert run.resume([]).state.steps[1].output == {"v": "first"}


def test_a_secret_in_what_a_run_is_given_is_refused_and_a_short_one_is_named(tmp_path: Path) -> None:
    token = "ghp_" + "aB3d" * 9
    run = project(tmp_path / "a", shell("a", f"echo {token}"))
    with pytest.raises(ConfigError, match="github-token"):
        run.run([])
    assert not run.log.exists()
    short = project(tmp_path / "b", shell("a", "true"), secrets=["PIN"])
    short.environ |= {"PIN": "1234", "OPENAI_API_KEY": "x"}
    assert ended(short.run([])) == OK
    assert any("PIN is too short" in notice for notice in short.notices)
    assert [notice for notice in short.notices if "OPENAI_API_KEY" in notice] == []  # `x` for a local endpoint is no secret
