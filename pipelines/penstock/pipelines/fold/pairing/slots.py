"""What the state keeps of a record that waits for partners."""

from collections.abc import Iterable

import pyarrow as pa

from penstock.pipelines.fold.rows import Slot
from penstock.pipelines.plan.pairing import AsOf
from penstock.pipelines.plan.windows import PairWindow, Window

LEFT, TIME, MATCHED, ENDS = "of_left", "time", "matched", "ends"


def pair_slots(window: PairWindow, fields: Iterable[pa.Field]) -> list[Slot]:
    """The columns: its input, its event time, whether it met a partner or ends those before it, and its fields."""
    return [
        Slot(LEFT, pa.bool_(), initial=False),
        Slot(TIME, pa.int64(), 0),
        Slot(MATCHED, pa.bool_(), initial=False),
        *([Slot(ENDS, pa.bool_(), initial=False)] if tells_ends(window) else []),
        *(Slot(held_name(field.name), field.type, None) for field in fields),
    ]


def tells_ends(window: Window) -> bool:
    """Whether a record may say that there is none from its time on."""
    return isinstance(window, AsOf) and window.ends is not None


def held_name(field: str) -> str:
    """The column that keeps a field, whatever the field is called."""
    return f"held_{field}"
