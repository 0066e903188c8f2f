"""The environment that commands get: nobody to ask, no credentials that the plan did not declare."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from planrun.masking.masker import NOTHING
from planrun.masking.names import looks_secret

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
_PROXY = "_proxy"  # without it no command reaches the network, so it passes with its password
_TELLING = 8  # characters; a shorter value is found inside ordinary ones


def child_environment(
    environ: Mapping[str, str], secrets: Mapping[str, str], extra: Mapping[str, str], withheld: Collection[str] = ()
) -> dict[str, str]:
    """`environ` for children: without the endpoint's key, without names that look like a credential or values that hold
    a token, and without planrun's own variables, unless `secrets` declares them; plus what keeps programs from asking; `secrets` and then
    `extra` win. Names in `withheld` never pass, declared or not, and no variable passes that repeats the value of a
    withheld one."""
    hidden = {environ[name] for name in {ENDPOINT_KEY, *withheld} - secrets.keys() if len(environ.get(name, "")) >= _TELLING}
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("PLANRUN_")
        and name != ENDPOINT_KEY
        and not looks_secret(name)
        and (name.lower().endswith(_PROXY) or NOTHING(value) is value)
        and not any(secret in value for secret in hidden)
    }
    merged = {**kept, **UNATTENDED, **secrets, **extra}
    return {name: value for name, value in merged.items() if name not in withheld}
