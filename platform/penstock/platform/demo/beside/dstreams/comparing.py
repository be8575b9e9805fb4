"""What both say of each batch, brought to the same form."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.platform.demo.beside.dstreams.batches import BATCHES, QUIET
from penstock.platform.demo.beside.dstreams.there import Elements

STATE, CALLED = "updateStateByKey", "mapWithState"


def of_ours(verb: str, panes: pa.Table) -> list[Elements]:
    """Return what a verb's panes say of each batch; of a state, what all of it is then."""
    if verb == STATE:
        return whole(said(panes, of_batch))
    return said(panes, of_batch if verb == CALLED else of_window)


def of_theirs(verb: str, batches: list[Elements]) -> list[Elements]:
    """Return what is to be said of each batch: a count of 0 is no row here."""
    if verb in (STATE, CALLED):
        return batches
    return [Counter({said: count for said, count in batch.items() if said != (0,)}) for batch in batches]


def said(panes: pa.Table, second: Callable[[Mapping[str, Any]], int]) -> list[Elements]:
    """Return what rows say, by second: their key and values, or the elements of a list."""
    found = [Counter[tuple[Any, ...]]() for _ in range(len(BATCHES) + QUIET)]
    names = panes.column_names[: panes.column_names.index("window_start")]
    for row in panes.to_pylist():
        at = second(row)
        if at >= len(found):
            continue
        if names == ["elements"]:
            found[at].update((element,) for element in row["elements"])
        else:
            found[at][tuple(in_any_order(row[name], panes.schema.field(name).type) for name in names)] += 1
    return found


def in_any_order(value: Any, kind: pa.DataType) -> Any:
    """Return a value as it is; a list without its order, and empty where nothing was in it."""
    return tuple(sorted(value or ())) if pa.types.is_list(kind) else value


def of_window(row: Mapping[str, Any]) -> int:
    """Return the second in which a row's window ended."""
    end: datetime = row["window_end"]
    return round(end.timestamp()) - 1


def of_batch(row: Mapping[str, Any]) -> int:
    """Return the second in which a row's batch was run."""
    clock: datetime = row["batch_clock"]
    return int(clock.timestamp())


def whole(changes: list[Elements]) -> list[Elements]:
    """Return all newest values after each batch."""
    state: dict[Any, Any] = {}
    found = []
    for batch in changes:
        state |= {element[0]: element[1] for element in batch.elements()}
        found.append(Counter(state.items()))
    return found
