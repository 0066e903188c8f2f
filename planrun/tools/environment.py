"""The environment that commands get: nobody to ask, no credentials that the plan did not declare."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

UNATTENDED: Mapping[str, str] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",  # a window would wait for ever
    "DEBIAN_FRONTEND": "noninteractive",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
ENDPOINT_KEY = "OPENAI_API_KEY"
_CREDENTIAL = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|KEY|TOKEN|AUTHTOKEN|SECRET|SECRETS|CREDENTIALS?|PASSPHRASE|PASSWD|PAT|AUTH)$"
    r"|PASSWORD|SECRET_|._PWD$",
    re.IGNORECASE,
)
_TELLING = 8  # characters; a shorter value is found inside ordinary ones


def looks_secret(name: str) -> bool:
    """Whether a variable of this name usually holds a credential."""
    return bool(_CREDENTIAL.search(name))


def child_environment(
    environ: Mapping[str, str], secrets: Mapping[str, str], extra: Mapping[str, str], withheld: Collection[str] = ()
) -> dict[str, str]:
    """`environ` for children: without the endpoint's key, without names that look like a credential and without
    planrun's own variables, unless `secrets` declares them; plus what keeps programs from asking; `secrets` and then
    `extra` win. Names in `withheld` never pass, declared or not, and no variable passes that repeats the value of a
    withheld one."""
    hidden = {environ[name] for name in {ENDPOINT_KEY, *withheld} - secrets.keys() if len(environ.get(name, "")) >= _TELLING}
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("PLANRUN_")
        and name != ENDPOINT_KEY
        and not looks_secret(name)
        and not any(secret in value for secret in hidden)
    }
    merged = {**kept, **UNATTENDED, **secrets, **extra}
    return {name: value for name, value in merged.items() if name not in withheld}
