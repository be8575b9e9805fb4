"""What the state keeps of a key in order windows, and what Spark sends of each of its records."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from penstock.pipelines.fold.rows import Slot
from penstock.pipelines.plan.aggregates import aggregate_fields
from penstock.pipelines.plan.pairing import AsOf
from penstock.pipelines.plan.policies import DeltaPolicy, PunctuationPolicy
from penstock.pipelines.plan.predicates import Predicate
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.plan.windows import OrderWindow, SlidingOrder, Tumbling, Window

HEAD = (
    Slot("number", pa.int64(), 0),
    Slot("since", pa.int64(), 0),
    Slot("unshown", pa.int64(), 0),
)
"""What is known of a key: the number of its next window, the clock at which the open one began or since when
something was not shown, and how many records were not. It stands in each row of the key."""

HELD = (
    Slot("records", pa.int64(), 0),
    Slot("position", pa.int64(), 0),
    Slot("came", pa.int64(), 0),
)
"""What is known of held records beside their aggregates: how many are in the row, none in that of a key that
holds nothing; their place among the key's rows; the clock at which they came."""

BASE = "base"
"""The value that caused the last showing, where a distance causes it."""

ELEMENT = (pa.field("_time", pa.int64()), pa.field("_offset", pa.int64()))
MATCHED = pa.field("_matched", pa.bool_())
NUMBER = pa.field("window_number", pa.int64())
"""Which of a key's order windows a pane is about, from 0."""


def distances(window: Window) -> tuple[str, ...]:
    """The fields whose distances matter, each once."""
    match window:
        case Tumbling(DeltaPolicy(field)):
            return (field,)
        case SlidingOrder(evict, show):
            return tuple(dict.fromkeys(p.field for p in (evict, show) if isinstance(p, DeltaPolicy)))
        case _:
            return ()


def punctuation(window: Window) -> Predicate | None:
    """The condition that closes a window, or that ends what a record says, where there is one."""
    match window:
        case Tumbling(PunctuationPolicy(predicate)):
            return predicate
        case AsOf(ends=predicate):
            return predicate
        case _:
            return None


def element_fields(stage: Stage, types: Mapping[str, pa.DataType]) -> tuple[pa.Field, ...]:
    """The fields of a record that are needed beside its key, one by one."""
    if isinstance(stage.window, Remembering | Relayed):
        return tuple(pa.field(n, t) for n, t in types.items() if n not in stage.key and not n.startswith("_"))
    used = [name for output in stage.aggregates for name in aggregate_fields(output.of)]
    wanted = dict.fromkeys([*used, *distances(stage.window)])
    return tuple(pa.field(name, types[name]) for name in wanted if name not in stage.key)


def order_slots(window: OrderWindow, types: Mapping[str, pa.DataType]) -> Iterable[Slot]:
    """The columns that the state keeps of a key and of what it holds, beside the aggregates."""
    yield from HEAD
    yield from HELD
    for field in distances(window):
        yield Slot(distance_slot(field), types[field], None)
    match window:
        case SlidingOrder(show=DeltaPolicy(field)):
            yield Slot(BASE, types[field], None)


def distance_slot(field: str) -> str:
    """The column that keeps a field whose distances matter: the first value, where a row is of several records."""
    return f"distance_{field}"
