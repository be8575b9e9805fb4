"""Whether an archive holds every offset once, or says why there is none."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from penstock.pipelines.archive.names import ledger_path, records_path
from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table


def disagreements(warehouse: Place, topic: str) -> list[str]:
    """Return a sentence for each partition whose records are not what its ledger says; none where all is right.

    Reads the addresses of the whole archive.
    """
    ledger = delta_table(warehouse / ledger_path(topic)).to_pyarrow_table()
    records = _up_to(pc.max(ledger.column("batch_id")), delta_table(warehouse / records_path(topic)))
    partitions = np.asarray(records.column("partition"))
    offsets = np.asarray(records.column("offset"))
    known = sorted(set(ledger.column("partition").to_pylist()) | set(np.unique(partitions).tolist()))
    return [
        f"partition {partition}: {what}"
        for partition in known
        for what in _wrong(np.sort(offsets[partitions == partition]), _rows_of(ledger, partition))
    ]


def _up_to(batch: pa.Scalar, table: DeltaTable) -> pa.Table:
    """The addresses up to a batch: an archive at work brings in records first, and its ledger after them."""
    records = table.to_pyarrow_table(columns=["partition", "offset", "batch_id"])
    return records.filter(pc.less_equal(records.column("batch_id"), batch))


def _wrong(found: np.ndarray, rows: list[dict[str, object]]) -> Iterator[str]:
    told, end = [], 0
    for row in rows:
        start, following = _number(row["start"]), _number(row["end"])
        if start != end:
            yield (
                f"offsets {end} to {start - 1} were never looked at"
                if start > end
                else f"{start} was taken twice"
            )
        told.append(_expected(start, following, row["gaps"]))
        end = following
    expected = np.concatenate([np.empty(0, np.int64), *told])
    if (missing := np.setdiff1d(expected, found)).size:
        yield f"{missing.size} records are missing, the first at offset {missing[0]}"
    if (strange := np.setdiff1d(found, expected)).size:
        yield f"{strange.size} records are in no batch, the first at offset {strange[0]}"
    if repeated := found.size - np.unique(found).size:
        yield f"{repeated} records are there more than once"


def _rows_of(ledger: pa.Table, partition: int) -> list[dict[str, object]]:
    rows = [row for row in ledger.to_pylist() if row["partition"] == partition]
    return sorted(rows, key=lambda row: row["start"])


def _expected(start: int, end: int, gaps: object) -> np.ndarray:
    offsets = np.arange(start, end, dtype=np.int64)
    assert isinstance(gaps, list)
    for gap in gaps:
        offsets = offsets[(offsets < gap["first"]) | (offsets > gap["last"])]
    return offsets


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value
