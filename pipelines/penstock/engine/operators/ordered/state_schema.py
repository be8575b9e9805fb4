"""What the state keeps of a key in order windows, and what Spark sends of each of its records."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from penstock.engine.columnar import StateColumn
from penstock.engine.plan.aggregates import aggregate_fields
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.join_windows import AsOf
from penstock.engine.plan.policies import DeltaPolicy, PunctuationPolicy
from penstock.engine.plan.predicates import Predicate
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.windows import OrderWindow, SlidingOrder, Tumbling, Window

KEY_HEADER_COLUMNS = (
    StateColumn("number", pa.int64(), 0),
    StateColumn("since", pa.int64(), 0),
    StateColumn("unshown", pa.int64(), 0),
)
"""What is known of a key: the number of its next window, the clock at which the open one began or since when
something was not shown, and how many records were not. It stands in each row of the key."""

BUFFERED_COLUMNS = (
    StateColumn("records", pa.int64(), 0),
    StateColumn("position", pa.int64(), 0),
    StateColumn("came", pa.int64(), 0),
)
"""What is known of held records beside their aggregates: how many are in the row, none in that of a key that
holds nothing; their place among the key's rows; the clock at which they came."""

DELTA_BASE_COLUMN = "base"
"""The value that caused the last showing, where a distance causes it."""

ELEMENT_FIELDS = (pa.field("_time", pa.int64()), pa.field("_offset", pa.int64()))
MATCHED_FIELD = pa.field("_matched", pa.bool_())
WINDOW_NUMBER_FIELD = pa.field("window_number", pa.int64())
"""Which of a key's order windows a pane is about, from 0."""


def list_delta_fields(window: Window) -> tuple[str, ...]:
    """The fields whose distances matter, each once."""
    match window:
        case Tumbling(DeltaPolicy(field)):
            return (field,)
        case SlidingOrder(evict, trigger):
            return tuple(
                dict.fromkeys(policy.field for policy in (evict, trigger) if isinstance(policy, DeltaPolicy))
            )
        case _:
            return ()


def find_punctuation(window: Window) -> Predicate | None:
    """The condition that closes a window, or that ends what a record says, where there is one."""
    match window:
        case Tumbling(PunctuationPolicy(predicate)):
            return predicate
        case AsOf(ends=predicate):
            return predicate
        case _:
            return None


def list_record_fields(stage: Stage, field_types: Mapping[str, pa.DataType]) -> tuple[pa.Field, ...]:
    """The fields of a record that are needed beside its key, one by one."""
    if isinstance(stage.window, StatefulFunction | ChangelogWindows):
        return tuple(
            pa.field(field_name, field_type)
            for field_name, field_type in field_types.items()
            if field_name not in stage.key and not field_name.startswith("_")
        )
    aggregate_names = [name for output in stage.aggregates for name in aggregate_fields(output.aggregate)]
    wanted_names = dict.fromkeys([*aggregate_names, *list_delta_fields(stage.window)])
    return tuple(pa.field(name, field_types[name]) for name in wanted_names if name not in stage.key)


def list_ordered_columns(
    window: OrderWindow, field_types: Mapping[str, pa.DataType]
) -> Iterable[StateColumn]:
    """The columns that the state keeps of a key and of what it holds, beside the aggregates."""
    yield from KEY_HEADER_COLUMNS
    yield from BUFFERED_COLUMNS
    for field in list_delta_fields(window):
        yield StateColumn(delta_column(field), field_types[field], None)
    match window:
        case SlidingOrder(trigger=DeltaPolicy(field)):
            yield StateColumn(DELTA_BASE_COLUMN, field_types[field], None)


def delta_column(field: str) -> str:
    """The column that keeps a field whose distances matter: the first value, where a row is of several records."""
    return f"distance_{field}"
