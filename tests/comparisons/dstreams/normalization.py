"""Normalizes the batches of both systems for the comparison."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from tests.comparisons.dstreams.input_batches import IDLE_BATCH_COUNT, INPUT_BATCHES
from tests.comparisons.dstreams.on_dstreams import ElementCounts

UPDATE_STATE_VERB, MAP_STATE_VERB = "updateStateByKey", "mapWithState"


def normalize_panes(verb: str, panes: pa.Table) -> list[ElementCounts]:
    """Return the elements of each batch from an operation's panes; for updateStateByKey, the accumulated state."""
    if verb == UPDATE_STATE_VERB:
        return accumulate_state(rows_to_elements(panes, batch_second))
    return rows_to_elements(panes, batch_second if verb == MAP_STATE_VERB else window_second)


def normalize_dstream_batches(verb: str, batches: list[ElementCounts]) -> list[ElementCounts]:
    """Return the elements of each DStream batch without counts of zero, which give no row in Penstock."""
    if verb in (UPDATE_STATE_VERB, MAP_STATE_VERB):
        return batches
    return [
        Counter({element: count for element, count in batch.items() if element != (0,)}) for batch in batches
    ]


def rows_to_elements(panes: pa.Table, second_of: Callable[[Mapping[str, Any]], int]) -> list[ElementCounts]:
    """Return the elements of rows by second: key and values, or the elements of a list."""
    elements_by_second = [Counter[tuple[Any, ...]]() for _ in range(len(INPUT_BATCHES) + IDLE_BATCH_COUNT)]
    names = panes.column_names[: panes.column_names.index("window_start")]
    for row in panes.to_pylist():
        row_second = second_of(row)
        if row_second >= len(elements_by_second):
            continue
        if names == ["elements"]:
            elements_by_second[row_second].update((element,) for element in row["elements"])
        else:
            elements_by_second[row_second][
                tuple(normalize_value(row[name], panes.schema.field(name).type) for name in names)
            ] += 1
    return elements_by_second


def normalize_value(value: Any, data_type: pa.DataType) -> Any:
    """Return a value unchanged; a list sorted, and null as an empty list."""
    return tuple(sorted(value or ())) if pa.types.is_list(data_type) else value


def window_second(row: Mapping[str, Any]) -> int:
    """Return the second in which a row's window ends."""
    end: datetime = row["window_end"]
    return round(end.timestamp()) - 1


def batch_second(row: Mapping[str, Any]) -> int:
    """Return the second of a row's batch time."""
    clock: datetime = row["batch_clock"]
    return int(clock.timestamp())


def accumulate_state(changes: list[ElementCounts]) -> list[ElementCounts]:
    """Return the latest value of every key after each batch."""
    state: dict[Any, Any] = {}
    states = []
    for batch in changes:
        state |= {element[0]: element[1] for element in batch.elements()}
        states.append(Counter(state.items()))
    return states
