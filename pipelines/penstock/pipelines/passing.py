"""Each record as a row of the result: what a stage without windows does, in the words of functions with a memory.

It remembers nothing, so nothing of it is kept between batches, and its rows do not depend on how batches are cut.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.pipelines.vectorised import Answers, Calls


@dataclass(frozen=True)
class Nothing:
    """What is remembered: a state needs a field, and this one is never there."""

    there: bool | None = None


def each_record(calls: "Calls") -> "Answers":
    """A row for each record, at its event time."""
    import numpy as np  # a definition names this function, and needs no Arrow
    import pyarrow as pa

    from penstock.pipelines.vectorised import AT, KNOWN, TIME, Answers

    keys = calls.keys.column_names
    rows = calls.records.drop_columns(keys).rename_columns(
        [AT if name == TIME else name for name in calls.records.column_names if name not in keys]
    )
    count = calls.states.num_rows
    forgotten = {KNOWN: np.zeros(count, bool), "there": pa.nulls(count, pa.bool_())}
    return Answers(pa.table(forgotten), rows)
