"""Regular expressions of plans, against values that models and commands give: matched in time linear in the text.

The engine is Rust's regex, which pydantic brings along. It has no look-around and no backreferences: what they would need is
what makes others take for ever. `$` and `\\Z` are the very end of the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_LONGEST = 1_000  # characters of a pattern


class PatternError(ValueError):
    """A pattern that cannot be used; `str(error)` is for the author of the plan."""


def check(pattern: str) -> None:
    """Raises PatternError."""
    _compiled(pattern)


def found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in a text that is well-formed. Raises PatternError."""
    return bool(_compiled(pattern).isinstance_python(text))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    from pydantic_core import SchemaError, SchemaValidator, core_schema  # as late as the engine of expressions

    if len(pattern) > _LONGEST:
        raise PatternError(f"it is longer than {_LONGEST:,} characters")
    rust = re.sub(r"\\(.)", lambda m: r"\z" if m[1] == "Z" else m[0], pattern, flags=re.DOTALL)
    try:
        return SchemaValidator(core_schema.str_schema(pattern=rust, regex_engine="rust-regex"))
    except SchemaError as error:
        raise PatternError(
            str(error).strip().rpartition("rror: ")[2].replace("Compiled regex exceeds", "it exceeds the")
        ) from None
