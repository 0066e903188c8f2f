"""The law that no value ever becomes shell code, tried on real shells, and the commands that are refused for it."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.core.expressions import ExpressionError, Scope, for_shell, shell_fault

SCOPE = Scope({"x": "text", "n": 3}, {}, {})

SAFE_COMMANDS = [
    ("printf %s ${{ params.v }}", "{}"),
    ("printf %s a${{ params.v }}b", "a{}b"),
    ('printf %s "${{ params.v }}"', "{}"),
    ('printf %s "a${{ params.v }}_b"', "a{}_b"),
    ("printf %s '${{ params.v }}'", "{}"),
    ("printf %s 'it'\\''s <${{ params.v }}>'", "it's <{}>"),
    ("printf %s \"'${{ params.v }}'\"", "'{}'"),
    ("printf %s '\"${{ params.v }}\"'", '"{}"'),
    ('printf %s \\"${{ params.v }}', '"{}'),
    ('printf %s "\\"${{ params.v }}"', '"{}'),
    ('X=$(printf %sx ${{ params.v }}); printf %s "${X%x}"', "{}"),
    ("printf %s \"$(printf '%s.' '${{ params.v }}')\"", "{}."),
    ('printf %s "$(printf %s. "${{ params.v }}")"', "{}."),
    ("(printf %s ${{ params.v }})", "{}"),
    ('X=${{ params.v }}; printf %s "$X"', "{}"),
    ('for x in ${{ params.v }}; do printf %s "$x"; done', "{}"),
    ("true # it's \"${{ params.v }}\nprintf %s ${{ params.v }}", "{}"),
    ("cat <<EOF\n${{ params.v }}\nEOF\n", "{}\n"),
    ("cat <<-'A' <<B\n\t$x\n\tA\n'${{ params.v }}'\nB\n", "'{}'\n"),
    ('cat <<EOF\n$(printf %s. "${{ params.v }}")\nEOF', "{}.\n"),
    ("if [ -n x ] && test x = x; then printf %s ${{ params.v }}; fi", "{}"),
    ("sh -c 'printf %s \"$1\"' _ ${{ params.v }}", "{}"),
    ("printf %s $((1+2))${{ params.v }}${HOME:+}", "3{}"),
    ('f() { printf %s "$1"; }\nf ${{ params.v }}', "{}"),
    ("printf %s \\\n ${{ params.v }}", "{}"),
    ("printf -- %s ${{ params.v }}", "{}"),
    ('X=${{ params.v }}; N=1; [ "$N" -eq 1 ] && : "$((N+1))"; printf %s "$X"', "{}"),
    ('X=${{ params.v }}; : "${X=a}"; printf %s "$X"', "{}"),
    ('export X=${{ params.v }}; printf %s "$X"', "{}"),
]
NASTY = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60),
    st.text(alphabet="'\"`$(){};&|<>\\ \n\t#*?~!=-xEOFAB", max_size=60),
    st.sampled_from(
        [
            "'; touch pwned; '",
            '"; touch pwned; "',
            "$(touch pwned)",
            "`touch pwned`",
            "EOF\ntouch pwned\n",
            "-e",
            "x'",
            "\\",
            "\n",
            "${IFS}",
        ]
    ),
)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(("command", "expected"), SAFE_COMMANDS)
@given(value=NASTY)
@settings(max_examples=12)
def test_no_value_becomes_shell_code(shell: str, command: str, expected: str, value: str) -> None:
    assert shell_fault(command) is None
    text, variables = for_shell(command, Scope({"v": value}, {}, {}))
    done = subprocess.run(
        [shell, "-c", text], env={"PATH": "/usr/bin:/bin", **variables}, capture_output=True, timeout=20, check=False, cwd="/"
    )
    assert done.stderr == b""
    assert done.stdout == expected.replace("{}", value).encode()


REFUSED_COMMANDS = [
    "${{ params.v }}",
    "$(echo ${{ params.v }})",
    "sudo ${{ params.v }}",
    "eval ${{ params.v }}",
    'X=${{ params.v }}; eval "$X"',
    "command eval 'echo ${{ params.v }}'",
    "sh -c 'echo ${{ params.v }}'",
    "sh -c \"echo '${{ params.v }}'\"",
    "bash -euo pipefail -c 'echo ${{ params.v }}'",
    "/bin/sh -c ${{ params.v }}",
    "env A=1 timeout 5 sh -c ${{ params.v }}",
    "sudo -u git sh -c 'echo ${{ params.v }}'",
    "$SHELL -c 'echo ${{ params.v }}'",
    's"h" -c ${{ params.v }}',
    "sh ${{ params.v }} x",
    'sh -c "$(echo ${{ params.v }})"',
    "echo ${{ params.v }} | sh",
    "echo ${{ params.v }} | sudo bash -s",
    "{ echo ${{ params.v }}; } | sh -x",
    "echo ${{ params.v }} > >(sh)",
    "echo ${{ params.v }} | $SHELL",
    "echo ${{ params.v }} | xargs -I{} sh -c 'echo {}'",
    "bash <<EOF\n${{ params.v }}\nEOF",
    "python3 - <<EOF\nprint('${{ params.v }}')\nEOF",
    "bash <<< ${{ params.v }}",
    "ssh host ls ${{ params.v }}",
    "python3 -c 'print(\"${{ params.v }}\")'",
    "perl -pe 's/a/${{ params.v }}/' f",
    'sed -i "s/a/${{ params.v }}/" f',
    "sed -n 1p ${{ params.v }}",
    "awk '{print \"${{ params.v }}\"}' f",
    "find . -exec sh -c 'echo ${{ params.v }}' \\;",
    "trap 'echo ${{ params.v }}' EXIT",
    "source <(echo ${{ params.v }})",
    "cat <<'EOF'\n${{ params.v }}\nEOF",
    "cat <<\\EOF\n${{ params.v }}\nEOF",
    "cat <<${{ params.v }}\nx\n",
    "cat <<EOF\n${{ params.v }}\n",
    "echo `echo ${{ params.v }}`",
    "echo $'${{ params.v }}'",
    "echo $((${{ params.v }} + 1))",
    "((x = ${{ params.v }}))",
    "[[ ${{ params.v }} -eq 1 ]]",
    "[[ a && 1 -eq ${{ params.v }} ]]",
    "[ -v ${{ params.v }} ]",
    "printf -v ${{ params.v }} x",
    "printf ${{ params.v }} x",
    'printf "${{ params.v }}" x',
    "declare ${{ params.v }}",
    "declare -i x=${{ params.v }}",
    "declare -i x; x=${{ params.v }}",
    "declare -rn x=${{ params.v }}",
    "X=${{ params.v }}; let Y=X",
    "compgen -W ${{ params.v }}",
    "X=${{ params.v }}; echo $((X + 1))",
    'X="a ${{ params.v }}"; echo $(( $X ))',
    "X=${{ params.v }}; [[ $X -eq 1 ]]",
    "X=${{ params.v }}; echo ${A[X]}",
    "X=${{ params.v }}; A[$X]=1",
    "X=${{ params.v }}; echo ${Y:X}",
    "X=${{ params.v }}; echo ${!X} ${X@P}",
    'X=${{ params.v }}; sh -c "$X"',
    'X=${{ params.v }}; trap "$X" EXIT',
    "for X in ${{ params.v }}; do echo $((X)); done",
    "read X <<< ${{ params.v }}; echo $((X))",
    "let x=${{ params.v }}",
    "read ${{ params.v }}",
    "a[${{ params.v }}]=1",
    "echo ${X:-${{ params.v }}}",
    "echo $${{ params.v }}",
    "echo \\${{ params.v }}",
    "echo 'open ${{ params.v }}",
    'echo "open ${{ params.v }}',
    "echo $(echo ${{ params.v }}",
    "x=$(case a in a) echo ${{ params.v }};; esac)",
    "BASH_ENV=${{ params.v }} bash script.sh",
    "make VERSION=${{ params.v }}",
]


@pytest.mark.parametrize("command", REFUSED_COMMANDS)
def test_what_cannot_be_shown_safe_is_refused_before_anything_runs(command: str) -> None:
    assert shell_fault(command) is not None
    with pytest.raises(ExpressionError, match="cannot be put into this command safely"):
        for_shell(command, Scope({"v": "1"}, {}, {}))


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q -k ${{ params.v }} || exit 1",
        "git commit -m '${{ params.v }}' >${{ params.v }} 2>&1",
        "git -c user.name=${{ params.v }} log",
        "python3 x.py --n=${{ params.v }} -r ${{ params.v }}",
        "python -m pytest ${{ params.v }}",
        "sed -n 1p -- ${{ params.v }}",
        "while read x; do :; done <<EOF\n${{ params.v }}\nEOF",
        "test -e ${{ params.v }}",
        "export X=${{ params.v }} && env Y=${{ params.v }} ls",
        "grep -c bash ${{ params.v }}",
        "command -v python3 && echo ${{ params.v }}",
        "docker run --rm img ls ${{ params.v }}",
        "case ${{ params.v }} in a) echo 1;; esac",
    ],
)
def test_ordinary_commands_pass(command: str) -> None:
    assert shell_fault(command) is None


def test_commands_without_values_are_not_judged() -> None:
    assert for_shell("sh -c 'echo \"$X\"' | eval $((1", SCOPE) == ("sh -c 'echo \"$X\"' | eval $((1", {})


def test_same_value_same_variable() -> None:
    text, variables = for_shell("echo ${{ params.x }} ${{ params.n }} '${{ params.x }}'", SCOPE)
    assert text == """echo "${PLANRUN_VALUE_1}" "${PLANRUN_VALUE_2}" ''"${PLANRUN_VALUE_1}"''"""
    assert variables == {"PLANRUN_VALUE_1": "text", "PLANRUN_VALUE_2": "3"}


def test_values_that_no_environment_takes() -> None:
    with pytest.raises(ExpressionError, match="NUL"):
        for_shell("echo ${{ params.v }}", Scope({"v": "a\0b"}, {}, {}))
    with pytest.raises(ExpressionError, match="as a file"):
        for_shell("echo ${{ params.v }}", Scope({"v": "a" * 131_001}, {}, {}))
    text, variables = for_shell("printf %s ${{ params.v }}", Scope({"v": "é" * 32_768}, {}, {}))
    assert subprocess.run(["sh", "-c", text], env=variables, capture_output=True, check=True).stdout.decode() == "é" * 32_768
