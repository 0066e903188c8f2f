"""Names of variables that usually hold a credential."""

from __future__ import annotations

import re

_CREDENTIAL = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|KEY|TOKEN|AUTHTOKEN|SECRET|SECRETS|CREDENTIALS?|PASSPHRASE|PASSWD|PAT|AUTH)$"
    r"|PASSWORD|SECRET_|._PWD$",
    re.IGNORECASE,
)


def looks_secret(name: str) -> bool:
    """Whether a variable of this name usually holds a credential."""
    return bool(_CREDENTIAL.search(name))
