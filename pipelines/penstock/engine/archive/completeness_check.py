"""Checks that an archive has every offset once, or the reason for its absence."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.engine.archive.archive_names import ledger_path, records_path
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table


def find_disagreements(warehouse: StoragePath, topic: str) -> list[str]:
    """Return a sentence for each partition whose records differ from its ledger; none if all agree.

    Reads the addresses of the whole archive.
    """
    ledger = open_delta_table(warehouse / ledger_path(topic)).to_pyarrow_table()
    records = _records_up_to(
        pc.max(ledger.column("batch_id")), open_delta_table(warehouse / records_path(topic))
    )
    partitions = np.asarray(records.column("partition"))
    offsets = np.asarray(records.column("offset"))
    known_partitions = sorted(
        set(ledger.column("partition").to_pylist()) | set(np.unique(partitions).tolist())
    )
    return [
        f"partition {partition}: {disagreement}"
        for partition in known_partitions
        for disagreement in _compare_partition(
            np.sort(offsets[partitions == partition]), _select_partition_rows(ledger, partition)
        )
    ]


def _records_up_to(batch: pa.Scalar, table: DeltaTable) -> pa.Table:
    """Return the addresses up to a batch: a running archive commits records first, and its ledger after them."""
    records = table.to_pyarrow_table(columns=["partition", "offset", "batch_id"])
    return records.filter(pc.less_equal(records.column("batch_id"), batch))


def _compare_partition(offsets: np.ndarray, ledger_entries: list[dict[str, object]]) -> Iterator[str]:
    expected_runs, end = [], 0
    for row in ledger_entries:
        start, next_offset = _as_int(row["start"]), _as_int(row["end"])
        if start != end:
            yield (
                f"offsets {end} to {start - 1} were never read"
                if start > end
                else f"offset {start} was archived twice"
            )
        expected_runs.append(_expected_offsets(start, next_offset, row["gaps"]))
        end = next_offset
    expected = np.concatenate([np.empty(0, np.int64), *expected_runs])
    if (missing := np.setdiff1d(expected, offsets)).size:
        yield f"{missing.size} records are missing, the first at offset {missing[0]}"
    if (unexpected := np.setdiff1d(offsets, expected)).size:
        yield f"{unexpected.size} records are in no batch, the first at offset {unexpected[0]}"
    if repeated_count := offsets.size - np.unique(offsets).size:
        yield f"{repeated_count} records are archived more than once"


def _select_partition_rows(ledger: pa.Table, partition: int) -> list[dict[str, object]]:
    rows = [row for row in ledger.to_pylist() if row["partition"] == partition]
    return sorted(rows, key=lambda row: row["start"])


def _expected_offsets(start: int, end: int, gaps: object) -> np.ndarray:
    offsets = np.arange(start, end, dtype=np.int64)
    assert isinstance(gaps, list)
    for gap in gaps:
        offsets = offsets[(offsets < gap["first"]) | (offsets > gap["last"])]
    return offsets


def _as_int(value: object) -> int:
    assert isinstance(value, int)
    return value
