from __future__ import annotations

import pytest

from planrun.masking.names import looks_secret
from planrun.tools.environment import child_environment


def test_credentials_stay_behind() -> None:
    environ = {
        "PATH": "/bin", "HOME": "/h", "OPENAI_API_KEY": "sk-123456789", "GITHUB_TOKEN": "t", "MY_PASSWORD_FILE": "p",
        "PLANRUN_MODEL": "m", "COPY": "Bearer sk-123456789", "OTHER_KEY": "k", "DECLARED_TOKEN": "d",
    }  # fmt: skip
    env = child_environment(environ, {"DECLARED_TOKEN": "d"})
    kept = {name for name in env if name in environ}
    assert kept == {"PATH", "HOME", "DECLARED_TOKEN"}
    assert (env["PAGER"], env["TERM"], env["GIT_TERMINAL_PROMPT"]) == ("cat", "dumb", "0")


def test_a_declared_key_passes() -> None:
    environ = {"OPENAI_API_KEY": "sk-123456789", "COPY": "Bearer sk-123456789"}
    assert child_environment(environ, {"OPENAI_API_KEY": "sk-123456789"}).keys() >= environ.keys()


def test_what_is_declared_wins() -> None:
    env = child_environment({"PAGER": "less", "A": "a"}, {"TERM": "xterm", "A": "b"})
    assert (env["PAGER"], env["TERM"], env["A"]) == ("cat", "xterm", "b")


@pytest.mark.parametrize(
    "name", ["X_API_KEY", "X_TOKEN", "APP_SECRET", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "npm_token", "MYSQL_PWD", "TOKEN"]
)
def test_names_of_credentials(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name", ["PATH", "PWD", "OLDPWD", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK", "KEYBOARD", "AUTHOR"]
)
def test_other_names(name: str) -> None:
    assert not looks_secret(name)
