"""Records to JSON and back. The types of the fields decide the form.

A :data:`~.model.Time` is a text in ISO 8601, in UTC and with milliseconds. JSON may have further
fields, which are ignored, and may lack fields that have a default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timezone
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii as _str_text
from math import isfinite
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from .model import Time

T = TypeVar("T")

Converter = Callable[[Any], Any]
TextEncoder = Callable[[Any], str]

_UNIONS = (Union, UnionType)

_YEAR_10000 = datetime(9999, 12, 31, tzinfo=timezone.utc).timestamp() + 86_400
"""The first second that no text in ISO 8601 has. A zone may lead beyond it."""

_MILLISECONDS = [f".{number:03}Z" for number in range(1000)]


class RecordError(ValueError):
    """A JSON value is no such record. The message names the field."""


def to_json(record: Any) -> dict[str, Any]:
    """Return a record as JSON types."""
    encode: Converter = _encoder(type(record))  # type: ignore[arg-type]
    result: dict[str, Any] = encode(record)
    return result


def to_text(record: Any) -> str:
    """Return a record as the text of a JSON object, in the compact form.

    It lacks the fields that have their default, and those that are derived.
    """
    encode: TextEncoder = _text_encoder(type(record))  # type: ignore[arg-type]
    return encode(record)


def from_json(kind: type[T], value: object) -> T:
    """Return the record that JSON types stand for. Raises :class:`RecordError`."""
    result: T = _decoder(kind)(value)  # type: ignore[arg-type]
    return result


def iso(seconds: float) -> str:
    """Return a time in ISO 8601, such as ``2026-11-22T07:00:00.123Z``."""
    milliseconds = int(seconds * 1000)
    return _iso_second(milliseconds // 1000) + _MILLISECONDS[milliseconds % 1000]


@lru_cache(maxsize=64)
def _iso_second(seconds: int) -> str:
    """Return a second in ISO 8601, without a zone. A part file has many times of one second."""
    return datetime.fromtimestamp(seconds, timezone.utc).replace(tzinfo=None).isoformat()


def _time(value: object) -> float:
    if not isinstance(value, str):
        raise RecordError("it must be a time in ISO 8601")
    try:
        seconds = datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        raise RecordError("it must be a time in ISO 8601") from None
    if not 0 <= seconds < _YEAR_10000:
        raise RecordError("it must be a time from 1970 to 9999")
    return seconds


def _unchanged(value: Any) -> Any:
    return value


@cache
def _encoder(kind: Any) -> Converter:
    if kind is Time:
        return iso
    if is_dataclass(kind) and isinstance(kind, type):
        return _record_encoder(kind)
    arguments = get_args(kind)
    if get_origin(kind) in _UNIONS:
        encode = _encoder(_without_none(kind))
        return lambda value: None if value is None else encode(value)
    if get_origin(kind) is list:
        encode = _encoder(arguments[0])
        if encode is _unchanged:
            return list
        return lambda values: [encode(value) for value in values]
    if get_origin(kind) is dict:
        encode = _encoder(arguments[1])
        if arguments[0] is str and encode is _unchanged:
            return dict
        return lambda values: {str(key): encode(value) for key, value in values.items()}
    return _unchanged


def _record_encoder(kind: type) -> Converter:
    hints = get_type_hints(kind)
    found = {each.name: _encoder(hints[each.name]) for each in fields(kind)}
    names = [*found, *getattr(kind, "DERIVED", ())]
    values_of = attrgetter(*names)
    converted = [(name, encode) for name, encode in found.items() if encode is not _unchanged]

    def encode_record(record: object) -> dict[str, Any]:
        # Most values are JSON types already. This is the fastest way to put them into a dict.
        encoded = dict(zip(names, values_of(record), strict=True))
        for name, encode in converted:
            encoded[name] = encode(encoded[name])
        return encoded

    return encode_record


@cache
def _text_encoder(kind: Any) -> TextEncoder:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if is_dataclass(kind) and isinstance(kind, type):
        return _object_encoder(kind)
    arguments = get_args(kind)
    if get_origin(kind) in _UNIONS:
        # None is the default of each field that may be None.
        return _text_encoder(_without_none(kind))
    encode = _text_encoder(arguments[-1])
    if get_origin(kind) is list:
        return lambda values: f"[{','.join([encode(value) for value in values])}]"

    def encode_dict(values: dict[Any, Any]) -> str:
        members = [f"{_str_text(str(key))}:{encode(value)}" for key, value in values.items()]
        return f"{{{','.join(members)}}}"

    return encode_dict


def _object_encoder(kind: type) -> TextEncoder:
    """Return the function that encodes a record for :func:`to_text`.

    It makes the text at once, without dicts for a JSON encoder. Its source is generated, as a
    dataclass generates its methods: a loop over the fields takes half as long again, and a crawl
    writes two records for each new origin.
    """
    hints = get_type_hints(kind)
    names: dict[str, Any] = {}
    lines = ["def encode_object(record):", "    texts = []"]
    for each in fields(kind):
        name, hint, default = each.name, hints[each.name], _default(each)
        names[f"start_{name}"] = f'"{name}":'
        names[f"default_{name}"] = default
        names[f"encode_{name}"] = _text_encoder(hint)
        if is_dataclass(hint) and default is not MISSING:
            # A record without a field that differs is a default, too.
            lines += [
                f"    text = encode_{name}(record.{name})",
                "    if text != '{}':",
                f"        texts.append(start_{name} + text)",
            ]
        else:
            lines += [
                f"    value = record.{name}",
                f"    if value != default_{name}:",
                f"        texts.append(start_{name} + encode_{name}(value))",
            ]
    lines.append("    return '{' + ','.join(texts) + '}'")
    exec("\n".join(lines), names)
    encode: TextEncoder = names["encode_object"]
    return encode


def _time_text(seconds: float) -> str:
    return f'"{iso(seconds)}"'


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def _float_text(value: float) -> str:
    # A whole number may be an int.
    return repr(float(value)) if isfinite(value) else json.dumps(value)


_SCALARS: dict[Any, TextEncoder] = {
    Time: _time_text,
    str: _str_text,
    bool: _bool_text,
    int: int.__repr__,
    float: _float_text,
}


def _default(each: Field[Any]) -> Any:
    """Return the default of a field; MISSING if there is none."""
    return each.default if each.default_factory is MISSING else each.default_factory()


@cache
def _decoder(kind: Any) -> Converter:
    if kind is Time:
        return _time
    if is_dataclass(kind) and isinstance(kind, type):
        return _record_decoder(kind)
    arguments = get_args(kind)
    if get_origin(kind) in _UNIONS:
        decode = _decoder(_without_none(kind))
        return lambda value: None if value is None else decode(value)
    if get_origin(kind) is list:
        decode = _decoder(arguments[0])
        return lambda value: [decode(item) for item in _checked(value, list)]
    if get_origin(kind) is dict:
        key, decode = arguments[0], _decoder(arguments[1])
        return lambda value: {
            _key(key, name): decode(item) for name, item in _checked(value, dict).items()
        }
    return lambda value: _checked(value, kind)


def _record_decoder(kind: type) -> Converter:
    hints = get_type_hints(kind)
    members = [(each, _decoder(hints[each.name])) for each in fields(kind)]

    def decode_record(value: object) -> Any:
        values = {}
        found = _checked(value, dict)
        for each, decode in members:
            if each.name in found:
                try:
                    values[each.name] = decode(found[each.name])
                except RecordError as error:
                    raise RecordError(f"{each.name}: {error}") from None
            elif each.default is MISSING and each.default_factory is MISSING:
                raise RecordError(f"{each.name} is missing")
        return kind(**values)

    return decode_record


def _key(kind: type, name: str) -> Any:
    try:
        return kind(name)
    except ValueError:
        raise RecordError(f"{name[:50]!r} is no {kind.__name__}") from None


def _checked(value: Any, kind: type) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise RecordError(f"it must be of the type {kind.__name__}")
    return value


def _without_none(kind: Any) -> Any:
    (other,) = (each for each in get_args(kind) if each is not NoneType)
    return other
