"""What the state keeps of a record that waits for partners."""

from collections.abc import Iterable

import pyarrow as pa

from penstock.pipelines.fold.rows import Slot

LEFT, TIME, MATCHED = "of_left", "time", "matched"


def pair_slots(fields: Iterable[pa.Field]) -> list[Slot]:
    """The columns: its input, its event time, whether it met a partner, and its fields."""
    return [
        Slot(LEFT, pa.bool_(), initial=False),
        Slot(TIME, pa.int64(), 0),
        Slot(MATCHED, pa.bool_(), initial=False),
        *(Slot(held_name(field.name), field.type, None) for field in fields),
    ]


def held_name(field: str) -> str:
    """The column that keeps a field, whatever the field is called."""
    return f"held_{field}"
