"""A function's state in bytes: equal values give equal bytes, in whatever order they were filled."""

from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

_SORTING = msgspec.msgpack.Encoder(order="deterministic").encode
_AS_IT_STANDS = msgspec.msgpack.Encoder().encode


def packed(state: Any) -> bytes:
    """Return a value in bytes. Raises TypeError for one that has no form in them."""
    try:
        return _SORTING(state)
    except TypeError:  # the encoder sorts dictionaries of texts alone
        return _AS_IT_STANDS(in_order(state))


def in_order(value: Any) -> Any:
    """Return a value whose dictionaries and sets, at any depth, go by the bytes of their members."""
    match value:
        case dict():
            pairs = ((key, in_order(member)) for key, member in value.items())
            return dict(sorted(pairs, key=lambda pair: packed(pair[0])))
        case set() | frozenset():
            return sorted(value, key=packed)
        case list() | tuple():
            return [in_order(member) for member in value]
        case msgspec.Struct():
            names = value.__struct_fields__
            ordered = {name: in_order(getattr(value, name)) for name in names}
            return _with(copy(value), ordered, msgspec.structs.force_setattr)
        case _ if is_dataclass(value) and not isinstance(value, type):
            ordered = {each.name: in_order(getattr(value, each.name)) for each in fields(value)}
            return _with(copy(value), ordered, object.__setattr__)
        case _:
            return value


def _with(value: Any, members: dict[str, Any], put: Any) -> Any:
    """Put members into a copy, past whatever a frozen class would say to it."""
    for name, member in members.items():
        put(value, name, member)
    return value
