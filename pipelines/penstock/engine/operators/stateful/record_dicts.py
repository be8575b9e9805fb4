"""Convert the fields of many records to dictionaries, as user functions receive them."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

FieldDict: TypeAlias = dict[str, Any]


@lru_cache(maxsize=256)
def make_dict_builder(names: tuple[str, ...]) -> Callable[..., list[FieldDict]]:
    """Return a function from columns, one for each name, to one dictionary per row.

    It is generated code for these names, as the standard library generates named tuples. A dict literal with
    constant keys takes less than half the time of a dict built from pairs, and every record needs one.
    """
    values = [f"value_{number}" for number, _ in enumerate(names)]
    pairs = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    source = f"lambda *columns: [{{{pairs}}} for {', '.join(values)}, in zip(*columns, strict=True)]"
    # The names are the only outside input, and `repr` turns any name into a literal.
    function: Callable[..., list[FieldDict]] = eval(source, {"zip": zip, "__builtins__": {}})  # noqa: S307
    return function
