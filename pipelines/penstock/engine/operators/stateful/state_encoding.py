"""Encode a function's state to bytes. Equal values give equal bytes, whatever the insertion order."""

from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

_ENCODE_SORTED = msgspec.msgpack.Encoder(order="deterministic").encode
_ENCODE_UNSORTED = msgspec.msgpack.Encoder().encode


def encode_state(state: Any) -> bytes:
    """Return the encoded value. Raise TypeError for a value that cannot be encoded."""
    try:
        return _ENCODE_SORTED(state)
    except TypeError:  # the encoder only sorts dictionaries with text keys
        return _ENCODE_UNSORTED(sort_members(state))


def sort_members(value: Any) -> Any:
    """Return the value with dictionaries and sets, at any depth, sorted by their encoded members."""
    match value:
        case dict():
            pairs = ((key, sort_members(member)) for key, member in value.items())
            return dict(sorted(pairs, key=lambda pair: encode_state(pair[0])))
        case set() | frozenset():
            return sorted(value, key=encode_state)
        case list() | tuple():
            return [sort_members(member) for member in value]
        case msgspec.Struct():
            names = value.__struct_fields__
            sorted_members = {name: sort_members(getattr(value, name)) for name in names}
            return _set_members(copy(value), sorted_members, msgspec.structs.force_setattr)
        case _ if is_dataclass(value) and not isinstance(value, type):
            sorted_members = {field.name: sort_members(getattr(value, field.name)) for field in fields(value)}
            return _set_members(copy(value), sorted_members, object.__setattr__)
        case _:
            return value


def _set_members(value: Any, members: dict[str, Any], set_member: Any) -> Any:
    """Set members of a copy, even if its class is frozen."""
    for name, member in members.items():
        set_member(value, name, member)
    return value
