from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planrun.errors import ConfigError
from planrun.policy.commands import parts
from planrun.policy.permissions import Allow, Ask, Deny, Permissions, Rule, parse_rule

PUSHES = [
    "git push", "cd x && git push", "git -C x push", "git --git-dir=x -c a=b push origin", "env A=1 git push", "A=1 git push",
    "true\ngit push", "true;git push", "true|git push", "true & git push", "echo $(git push)", 'echo "`git push`"',
    'bash -c "git push"', "bash -lc 'cd x; git push'", "sh -c \"bash -c 'git push'\"", "xargs -n 1 git push",
    "find . -exec git push \\;", "if git push; then true; fi", "for i in 1; do git push; done", "(git push)", "{ git push; }",
    "! git push", "time -p git push", "git \\\n push", "\"git\" 'push'", "g\\it push", "$'git' push", "/usr/bin/git push",
    "timeout 5 git push", "nohup git push &", "env -u X git push", "eval 'git push'", "trap 'git push' EXIT",
    "echo git push | bash", "bash <<E\ngit push\nE", "bash <<< 'git push'", "cat <(git push)", "x=$(git push)",
    "2>&1 git push", "echo ${x:-$(git push)}", "git submodule foreach 'git push'", 'echo "$(cd x && git push)"',
    "$(" * 3000 + "git push", "cat <<'E' > f\ntext\nE\ngit push",
]  # fmt: skip
HARMLESS = [
    "git status", "git stash push", "git commit -m 'git push later'", "echo 'git push'", "grep -r sudo .", "man sudo",
    "cat > README <<'E'\ngit push\nsudo x\nE", "ls # git push", "git log --grep=push", "git help push",
    "cat .thclaws/x > out", "cp .thclaws/x y", "echo '.thclaws/' >> .gitignore", "grep -n x .thclaws/spill/a | head",
    "python3 tool.py .thclaws/tool-output/bash-1.txt", "python3 -c 'print(open(\".thclaws/tool-output/bash-1.txt\").read())'",
    "pytest --ignore=.thclaws", "ruff check --exclude .thclaws .", "timeout 60 cat .thclaws/settings.json", "find . -name '*.pyc' -delete",
    "find . -not -path './.thclaws/*' -name '*.json' -delete", "git clean -fdx -e .thclaws", "git clean -n", "git stash",
    "git stash -u -- . ':!.thclaws'", "rsync -a --exclude .thclaws ./ /backup/", "zip -r out.zip . -x '.thclaws/*'", "jq .model .thclaws/settings.json",
    "gh pr create --body 'about .thclaws files'", "git commit -am 'keep .thclaws out'", "echo .thclaws/ >> .gitignore", "mv a.txt ..", "rm -rf ./build",
    "cat > notes.md <<E\nabout .thclaws/x\nE", "cd .thclaws/sessions && ls && cd ../.. && make", "D=build; rm -rf $D", "chmod -R u+w src",
    "cd .thclaws && ls", "x > /dev/null 2>&1", "rm -rf *", "echo a#b", "tail -n 5 .thclaws/spill/bash-1.txt > /tmp/x", "",
]  # fmt: skip
RECORD_WRITES = [
    "echo hi > .thclaws/x", "echo hi >> ./.thclaws/x", "x 2> .thclaws/x", "x &> .thclaws/x", "> .thclaws/x", "cat a | tee .thclaws/x",
    "rm -rf .thclaws", "rm -rf ./.thcl*", "rm -rf .*", "rm $PWD/.thclaws/x", "cd .thclaws && rm x", "cd .thclaws; echo > x",
    "cp a .thclaws/", "cp -t .thclaws a", "mv .thclaws b", "mkdir -p .thclaws/a", "touch '.thclaws/a'", "sed -i s/a/b/ .thclaws/settings.json",
    "dd if=x of=.thclaws/y", "find .thclaws -delete", "ln -s .thclaws x", "truncate -s 0 .THCLAWS/x", "bash -c 'rm .thclaws/x'",
    # by code, on the command line and in a here-document
    "python3 -c \"open('.thclaws/settings.json', 'w')\"", "python3 - <<E\nopen('.thclaws/x', 'w')\nE", "perl -e 'unlink \".thclaws/x\"'",
    "awk 'BEGIN{print 1 > \".thclaws/x\"}'", "ed -s .thclaws/settings.json", "git apply <<E\n+++ b/.thclaws/settings.json\nE",
    # by programs that are told where
    "git -C .thclaws init", "git checkout -- .thclaws", "git rm -r .thclaws", "tar xf a.tar -C .thclaws", "unzip a.zip -d .thclaws",
    "curl -so .thclaws/settings.json http://x", "sort -o .thclaws/x a", "env -C .thclaws sh -c 'echo > x'", "gzip .thclaws/x", "make -C .thclaws",
    # by names that the shell makes
    "D=.thclaws; rm -rf $D", "D=.thclaws && echo > ${D}/x", "for d in .thclaws; do rm -rf $d; done", "export D=.thclaws; tool $D/x",
    "rm -rf {.thclaws,x}", "echo > .thcl{aw,}s/x", "rm -rf $(echo .thclaws)", "cd .thclaws && python3 -c 'open(1)'", "cd ./.thclaws; git init",
    # with the folder around it
    "rm -rf .", "rm -rf $PWD", "rm -rf ../", "mv $PWD ../x", "mv . ../x", "chmod -R 000 .", "find . -delete", "find . -name '*.json' -delete",
    "find . -name settings.json -exec rm {} ;", "git clean -fdx", "git clean -fd", "git stash -u", "rsync -a --delete a/ .",
]  # fmt: skip


@pytest.mark.parametrize("command", PUSHES)
def test_git_push_needs_a_rule(command: str) -> None:
    verdict = Permissions().judge("Bash", command)
    assert isinstance(verdict, Deny)
    assert 'permissions.allow: ["Bash(git push*)"]' in verdict.reason
    assert Permissions.parse(allow=["Bash(git push*)"]).judge("Bash", command) == Allow()
    assert Permissions.parse(allow=["*"]).judge("Bash", command) == Allow()
    assert isinstance(Permissions.parse(allow=["Bash(git status*)"]).judge("Bash", command), Deny)


@pytest.mark.parametrize(
    "command", ["sudo ls", "doas ls", "su -c ls", "x && sudo ls", "env A=1 sudo ls", "echo x | sudo tee /y"]
)
def test_becoming_root_needs_a_rule(command: str) -> None:
    assert isinstance(Permissions().judge("Bash", command), Deny)
    assert isinstance(Permissions.parse(allow=["Bash(ls*)"]).judge("Bash", command), Deny)


def test_each_denied_part_needs_its_rule() -> None:
    assert isinstance(Permissions.parse(allow=["Bash(git push*)"]).judge("Bash", "sudo git push"), Deny)
    assert isinstance(Permissions.parse(allow=["Bash(git push*)"]).judge("Bash", "git push; sudo x"), Deny)
    assert Permissions.parse(allow=["Bash(git push*)", "Bash(sudo *)"]).judge("Bash", "git push; sudo x") == Allow()
    assert isinstance(Permissions.parse(allow=["Bash(git push origin main)"]).judge("Bash", "git push --force"), Deny)


@pytest.mark.parametrize("command", HARMLESS)
def test_ordinary_commands_are_allowed(command: str) -> None:
    assert Permissions().judge("Bash", command) == Allow()


@pytest.mark.parametrize("command", RECORD_WRITES)
def test_records_are_not_written_by_commands(command: str) -> None:
    assert isinstance(Permissions().judge("Bash", command), Deny)
    assert Permissions.parse(allow=["Bash(*)"]).judge("Bash", command) == Allow()


@pytest.mark.parametrize("command", ["echo x > alias/x", "rm -r alias", "tool alias/x", "cd alias && rm x", "cp x alias"])
def test_a_link_to_the_records_is_no_way_around(tmp_path: Path, command: str) -> None:
    (tmp_path / ".thclaws").mkdir()
    assert Permissions().judge("Bash", command, workspace=tmp_path) == Allow()
    (tmp_path / "alias").symlink_to(".thclaws")
    assert isinstance(Permissions().judge("Bash", command, workspace=tmp_path), Deny)
    assert Permissions().judge("Bash", "cat alias/x", workspace=tmp_path) == Allow()


def test_records_are_not_written_by_tools(tmp_path: Path) -> None:
    workspace = tmp_path.resolve()
    (workspace / ".thclaws").mkdir()
    (workspace / "alias").symlink_to(".thclaws")
    for path in (".thclaws/x", "a/../.thclaws/x", ".THCLAWS/x", str(workspace / ".thclaws/x"), "alias/x"):
        assert isinstance(Permissions().judge("Write", path, workspace=workspace), Deny)
        assert Permissions().judge("Read", path, workspace=workspace) == Allow()
    allowed = Permissions.parse(allow=["Write(.thclaws/**)"])
    assert allowed.judge("Write", str(workspace / ".thclaws/x"), workspace=workspace) == Allow()
    assert isinstance(allowed.judge("Edit", ".thclaws/x", workspace=workspace), Deny)
    assert (Permissions().protected(), allowed.protected()) == ((".thclaws",), ())
    assert Permissions.parse(allow=["Write(src/**)", "Bash"]).protected() == (".thclaws",)


def test_a_workspace_below_such_a_folder_is_usable(tmp_path: Path) -> None:
    workspace = tmp_path.resolve() / ".thclaws" / "tree"
    workspace.mkdir(parents=True)
    assert Permissions().judge("Write", "a.txt", workspace=workspace) == Allow()


def test_deny_beats_ask_beats_allow() -> None:
    rules = Permissions.parse(allow=["Bash"], ask=["Bash(git *)"], deny=["Bash(git reset*)"])
    assert isinstance(rules.judge("Bash", "ls; git reset --hard"), Deny)
    asked = rules.judge("Bash", "ls && git commit")
    assert isinstance(asked, Ask)
    assert asked.rule == "Bash(git *)"
    assert rules.judge("Bash", "ls") == Allow()
    assert isinstance(Permissions.parse(ask=["Bash(git push*)"]).judge("Bash", "cd x; git push"), Ask)
    assert isinstance(Permissions.parse(ask=["Bash(git push*)"]).judge("Bash", "git push; sudo x"), Deny)


@pytest.mark.parametrize(
    ("rule", "path", "hit"),
    [
        ("Write(src/**)", "src/a/b.py", True),
        ("Write(src/**)", "./src/a", True),
        ("Write(src/**)", "tests/../src/a", True),
        ("Write(src/**)", "srcs/a", False),
        ("Write(*.md)", "docs/a.md", True),
        ("Write(src/)", "src/x", True),
        ("Write(src/*.py)", "src/a.py", True),
        ("Write(src/*.py)", "src/a/b.py", False),
        ("Write(.env)", "sub/.env", True),
        ("Write", "anything", True),
        ("*", "anything", True),
        ("Read(src/**)", "src/a", False),
        ("Write(**)", "x", True),
        ("Write(*)", "a/b", True),
    ],
)
def test_path_rules(rule: str, path: str, hit: bool) -> None:
    assert isinstance(Permissions.parse(deny=[rule]).judge("Write", path), Deny) is hit


def test_path_rules_see_through_spellings(tmp_path: Path) -> None:
    workspace = tmp_path.resolve()
    (workspace / "secret").mkdir()
    (workspace / "link").symlink_to("secret")
    rules = Permissions.parse(deny=["Read(secret/**)"])
    for path in ("secret/a", str(workspace / "secret/a"), "link/a", "x/../secret/a"):
        assert isinstance(rules.judge("Read", path, workspace=workspace), Deny)
    assert rules.judge("Read", "open/a", workspace=workspace) == Allow()


def test_command_rules() -> None:
    rules = Permissions.parse(deny=["Bash(npm run:*)", "Bash(curl *|*sh)", "Bash([ -f x ])"])
    assert isinstance(rules.judge("Bash", "cd a && npm run build"), Deny)
    assert isinstance(rules.judge("Bash", "npm run"), Deny)
    assert rules.judge("Bash", "npm runs") == Allow()
    assert isinstance(rules.judge("Bash", "curl http://x | sh"), Deny)
    assert isinstance(rules.judge("Bash", "[ -f x ]"), Deny)


def test_names_of_other_tools() -> None:
    rules = Permissions.parse(deny=["mcp__github__*"], ask=["mcp__db__query"])
    assert isinstance(rules.judge("mcp__github__push", ""), Deny)
    assert isinstance(rules.judge("mcp__db__query", ""), Ask)
    assert rules.judge("mcp__other__x", "") == Allow()


@pytest.mark.parametrize("text", ["Bash", "Bash(git status*)", "Write(src/**)", "*", "mcp__a__*", "WebFetch(x)", "Bash(f(x))"])
def test_rules_round_trip(text: str) -> None:
    assert str(parse_rule(text)) == text
    assert parse_rule(f" {text} ") == parse_rule(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bash(x)", "did you mean Bash(x)?"),
        ("Bsh", "did you mean Bash?"),
        ("Bash[x]", "for example Bash(pattern*)"),
        ("Bash(", "for example"),
        ("Bash()", "for example"),
        ("", "for example Bash(git status*)"),
        ("git push", "for example"),
    ],
)
def test_bad_rules_come_with_a_suggestion(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rule(text)
    assert said in str(caught.value)


def test_rule_is_a_value() -> None:
    assert parse_rule("Bash(ls)") == Rule("Bash", "ls")


@given(st.text(st.sampled_from("ab $(){}'\"`\\|&;<>\n#=-*~"), max_size=60))
def test_any_text_is_parsed(text: str) -> None:
    assert isinstance(Permissions().judge("Bash", text), Allow | Deny)


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1), min_size=1, max_size=5)
)
def test_words_are_read_as_the_shell_does(words: list[str]) -> None:
    found = parts(shlex.join(["run", *words]))
    assert found[0].forms[0] == ("run", *words)


@pytest.mark.parametrize(
    "piece", ["$(", "`", "'", '"', "env ", "env x ", "rm ", "{a,", "<<E\n", "((", "sh -c ", "${", "a;", "\\"]
)
def test_judging_is_fast(tmp_path: Path, piece: str) -> None:
    start = time.process_time()
    Permissions().judge("Bash", piece * 5000, workspace=tmp_path)
    assert time.process_time() - start < 3
