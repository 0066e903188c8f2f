"""Frozen dataclasses as JSON and back, driven by their fields and type hints: a field that is added cannot be forgotten.

A dataclass becomes the list of its values in field order, a tuple a list; JSON values stand as they are. Both ways are
exact: `decode(json.loads(json.dumps(encode(value)))) == value`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin, get_type_hints

_SCALARS = (str, int, float, bool, NoneType)


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Codec:
    """The two ways, and the `shape` of the type in words: where it differs, so does the JSON."""

    shape: str
    encode: Callable[[Any], Any] = _same
    decode: Callable[[Any], Any] = _same

    @property
    def plain(self) -> bool:
        return self.encode is _same and self.decode is _same


def codec_of(hint: Any, without: frozenset[str] = frozenset()) -> Codec:
    """The codec of a type. Fields named in `without` are left out of a dataclass and come back as their defaults.
    Raises TypeError for a type that it has no exact form for."""
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint, without)
    if hint in _SCALARS:
        return Codec(hint.__name__)
    if origin is Literal:
        return Codec(f"one of {arguments}")
    if hint == ForwardRef("Json"):  # where the definition of Json comes round to itself
        return Codec("Json")
    if origin in (Union, UnionType):
        return _union(hint, arguments)
    if origin is tuple:
        return _tuple(arguments)
    if origin in (dict, list):
        return _container(hint, arguments)
    raise TypeError(f"there is no exact JSON form for {hint}")


def _dataclass(cls: Any, without: frozenset[str]) -> Codec:
    hints = get_type_hints(cls)
    inner = tuple((f.name, codec_of(hints[f.name])) for f in dataclasses.fields(cls) if f.name not in without)
    shape = ", ".join(f"{name}: {codec.shape}" for name, codec in inner)

    def encode(value: Any) -> list[Any]:
        return [codec.encode(getattr(value, name)) for name, codec in inner]

    def decode(body: Any) -> Any:
        return cls(**{name: codec.decode(part) for (name, codec), part in zip(inner, body, strict=True)})

    return Codec(f"{cls.__name__}({shape})", encode, decode)


def _union(hint: Any, members: tuple[Any, ...]) -> Codec:
    codecs = [codec_of(m) for m in members]
    shape = " | ".join(c.shape for c in codecs)
    if all(c.plain for c in codecs):
        return Codec(shape)
    some = next(c for c in codecs if not c.plain)
    if len(members) != 2 or NoneType not in members:
        raise TypeError(f"there is no exact JSON form for {hint}: its members could not be told apart")
    return Codec(
        shape,
        lambda value: None if value is None else some.encode(value),
        lambda body: None if body is None else some.decode(body),
    )


def _tuple(members: tuple[Any, ...]) -> Codec:
    if len(members) == 2 and members[1] is Ellipsis:
        each = codec_of(members[0])
        shape = f"({each.shape}, ...)"
        if each.plain:
            return Codec(shape, _same, tuple)
        return Codec(shape, lambda value: [each.encode(v) for v in value], lambda body: tuple([each.decode(b) for b in body]))
    codecs = [codec_of(m) for m in members]
    return Codec(
        f"({', '.join(c.shape for c in codecs)})",
        lambda value: [c.encode(v) for c, v in zip(codecs, value, strict=True)],
        lambda body: tuple([c.decode(b) for c, b in zip(codecs, body, strict=True)]),
    )


def _container(hint: Any, arguments: tuple[Any, ...]) -> Codec:
    codecs = [codec_of(a) for a in arguments]
    if not all(c.plain for c in codecs) or (get_origin(hint) is dict and arguments[0] is not str):
        raise TypeError(f"there is no exact JSON form for {hint}: it must hold JSON values under text keys")
    return Codec(f"{get_origin(hint).__name__}({', '.join(c.shape for c in codecs)})")
