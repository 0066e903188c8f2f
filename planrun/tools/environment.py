"""The environment that commands get: nobody to ask, no credentials that the plan did not declare."""

from __future__ import annotations

from collections.abc import Mapping

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


def child_environment(environ: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """`environ` for children: without the endpoint's key and what repeats it, without names that look like a credential or
    values that hold a token, and without planrun's own variables, unless `secrets` declares them; plus what keeps programs from
    asking. `secrets` win."""
    key = "" if ENDPOINT_KEY in secrets else environ.get(ENDPOINT_KEY, "")
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("PLANRUN_")
        and name != ENDPOINT_KEY
        and not looks_secret(name)
        and (name.lower().endswith(_PROXY) or NOTHING(value) is value)
        and not (len(key) >= _TELLING and key in value)
    }
    return {**kept, **UNATTENDED, **secrets}
