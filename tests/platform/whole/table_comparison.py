"""Panes, ledger and archive of sensor_minute, compared with the topic in another way than by the audit.

The latest table hides a wrong value that was replaced. Panes and ledger are append-only: they have the whole
history of a stream until a replay replaces them.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping

import duckdb
import pyarrow as pa
from tests.patience import PATIENCE_S
from tests.platform.whole.expected_windows import Windows, compute_windows, find_differences
from tests.platform.whole.scratch_stack import ScratchStack

STREAM = "sensor_minute"
AUDIT_TIMEOUT_S = 900.0
"""The audit compares every record with archive, batches and results, possibly on a busy machine."""
PANES = """
    SELECT device, epoch_ms(window_start), max_by(readings, pane), max_by(temperature, pane),
           count(*) = max(pane) + 1 AND count(DISTINCT pane) = count(*)
    FROM panes WHERE kind = 'insert' GROUP BY ALL
"""
LEDGER = """
    SELECT partition, sum(read), max("end"),
           bool_and(read = "end" - start AND read = accepted + late + quarantined + duplicate + filtered),
           bool_and(follows)
    FROM (
        SELECT *, start = lag("end", 1, 0) OVER (PARTITION BY partition ORDER BY batch_id) AS follows FROM ledger
    )
    GROUP BY partition ORDER BY partition
"""


def wait_for_balance(stack: ScratchStack) -> None:
    """Wait until panes and ledger account for every record of the topic once; the feed must be stopped."""
    records = stack.records("sensors")
    windows = compute_windows(value for _, _, _, value in records)
    sizes = Counter(partition for partition, _, _, _ in records)
    deadline = time.monotonic() + PATIENCE_S
    while errors := [
        *find_pane_errors(stack.table("panes", STREAM), windows),
        *find_ledger_errors(stack.table("ledger", STREAM), sizes),
    ]:
        assert time.monotonic() < deadline, f"{len(errors)} places differ: {errors[:5]}"
        time.sleep(0.5)


def wait_for_archive(stack: ScratchStack) -> None:
    """Wait until the archive has every record of the topic once."""
    expected = stack.records("sensors")
    deadline = time.monotonic() + PATIENCE_S
    while (archived := read_archive(stack.table("raw", "sensors"))) != expected:
        assert time.monotonic() < deadline, (
            f"{len(archived)} of {len(expected)} records are archived, or they differ"
        )
        time.sleep(0.5)


def read_archive(table: pa.Table) -> list[tuple[int, int, bytes, bytes]]:
    """Return every record of an archive: partition, offset, key, value."""
    columns = (table.column(name).to_pylist() for name in ("partition", "offset", "key", "value"))
    return sorted(zip(*columns, strict=True))


def check_audit(stack: ScratchStack) -> None:
    """Audit the stream: no check may fail, and only results of open windows may be unproven."""
    result = stack.run("audit", STREAM, "--json", seconds=AUDIT_TIMEOUT_S)
    assert result.returncode == 0, result.stdout + result.stderr
    states = {verdict["check"]: verdict["state"] for verdict in json.loads(result.stdout)["verdicts"]}
    assert states.pop("results") in ("passed", "unproven")
    assert set(states.values()) == {"passed"}, states


def find_pane_errors(panes: pa.Table, expected: Windows) -> Iterator[str]:
    """Yield windows whose panes are not numbered consecutively, or whose last pane is not as expected."""
    rows = duckdb.from_arrow(panes).query("panes", PANES).fetchall()
    yield from (
        f"panes of {device} at {start} are not 0, 1, 2 …"
        for device, start, *_, all_once in rows
        if not all_once
    )
    last = {(device, start): (readings, mean) for device, start, readings, mean, _ in rows}
    yield from (str(difference) for difference in find_differences(expected, last))


def find_ledger_errors(ledger: pa.Table, records: Mapping[int, int]) -> Iterator[str]:
    """Yield partitions whose batches have gaps, do not add up, or do not cover all records."""
    rows = duckdb.from_arrow(ledger).query("ledger", LEDGER).fetchall()
    if {partition for partition, *_ in rows} != set(records):
        yield f"the ledger has {[partition for partition, *_ in rows]}, and the topic has {sorted(records)}"
    for partition, read, end, adds_up, follow in rows:
        if not (read == end == records.get(partition) and adds_up and follow):
            present = records.get(partition)
            yield f"partition {partition}: {read} read up to {end} of {present}, {adds_up=}, {follow=}"
