"""What a run is given may hold no secret: it goes on record, and where it were masked there it would not be what was given."""

from __future__ import annotations

from planrun.core.events import Session
from planrun.errors import ConfigError
from planrun.masking.masker import Masker

_ADVICE = "name an environment variable under `secrets:`, and let commands read it from there ($NAME)"


def check(header: Session, mask: Masker) -> None:
    """Raises ConfigError where the plan, a prompt file, a parameter or a variable under `env:` holds a secret."""
    for path, text in ((header.plan_path, header.plan), *header.files.items()):
        for number, line in enumerate(text.splitlines(), 1) if mask(text) != text else ():
            if names := _inside(line, mask):
                raise ConfigError(f"{path}:{number}: there is a secret in it ({names}), which would go on record: {_ADVICE}")
        if names := _inside(text, mask):
            raise ConfigError(f"{path}: there is a secret in it ({names}), which would go on record: {_ADVICE}")
    for name, value in header.params.items():
        if mask.json(value) != value:
            raise ConfigError(f"the parameter {name} holds a secret, which would go on record: {_ADVICE}")
    for name, value in header.env.items():
        if names := _inside(value, mask):
            raise ConfigError(
                f"the environment variable {name} holds a secret ({names}), which would go on record: take it from `env:` "
                f"and name it under `secrets:`; commands read it as ${name}"
            )


def _inside(text: str, mask: Masker) -> str:
    safe = mask(text)
    return ", ".join(mask.named(safe)) if safe != text else ""
