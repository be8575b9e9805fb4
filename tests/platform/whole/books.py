"""Panes, ledger and archive of sensor_minute, compared with the topic's own bytes in another way than the audit's.

The table of newest values forgives much: a value that was wrong and then replaced is not to be seen in it. Panes
and ledger are only added to: whatever happened to a stream since it began is in them, until a replay takes over.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping

import duckdb
import pyarrow as pa
from tests.platform.whole.expected import SETTLING_SECONDS, Windows, differences, windows_of_records
from tests.platform.whole.stack import ScratchStack

STREAM = "sensor_minute"
AUDIT_SECONDS = 900.0
"""It compares every record with its archive, its batch and its results, and others may want the same machine."""
PANES = """
    SELECT device, epoch_ms(window_start), max_by(readings, pane), max_by(temperature, pane),
           count(*) = max(pane) + 1 AND count(DISTINCT pane) = count(*)
    FROM panes WHERE kind = 'insert' GROUP BY ALL
"""
LEDGER = """
    SELECT partition, sum(read), max("end"),
           bool_and(read = "end" - start AND read = folded + late + quarantined + duplicate + filtered),
           bool_and(follows)
    FROM (
        SELECT *, start = lag("end", 1, 0) OVER (PARTITION BY partition ORDER BY batch_id) AS follows FROM ledger
    )
    GROUP BY partition ORDER BY partition
"""


def balanced(stack: ScratchStack) -> None:
    """Wait until panes and ledger tell of every record in the topic, each once; nothing may be fed meanwhile."""
    records = stack.records("sensors")
    windows = windows_of_records(value for _, _, _, value in records)
    sizes = Counter(partition for partition, _, _, _ in records)
    deadline = time.monotonic() + SETTLING_SECONDS
    while found := [
        *of_panes(stack.table("panes", STREAM), windows),
        *of_ledger(stack.table("ledger", STREAM), sizes),
    ]:
        assert time.monotonic() < deadline, f"{len(found)} places differ: {found[:5]}"
        time.sleep(0.5)


def archived(stack: ScratchStack) -> None:
    """Wait until the archive holds every record of the topic as the broker has it, each once."""
    expected = stack.records("sensors")
    deadline = time.monotonic() + SETTLING_SECONDS
    while (found := in_archive(stack.table("raw", "sensors"))) != expected:
        assert time.monotonic() < deadline, f"{len(found)} records are archived of {len(expected)}, or others"
        time.sleep(0.5)


def in_archive(table: pa.Table) -> list[tuple[int, int, bytes, bytes]]:
    """Every record of an archive: partition, offset, key, value."""
    columns = (table.column(name).to_pylist() for name in ("partition", "offset", "key", "value"))
    return sorted(zip(*columns, strict=True))


def audited(stack: ScratchStack) -> None:
    """Have the stream audited; no check may find anything, and only results of open windows may be unproven."""
    done = stack.run("audit", STREAM, "--json", seconds=AUDIT_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    states = {verdict["check"]: verdict["state"] for verdict in json.loads(done.stdout)["verdicts"]}
    assert states.pop("results") in ("passed", "unproven")
    assert set(states.values()) == {"passed"}, states


def of_panes(panes: pa.Table, expected: Windows) -> Iterator[str]:
    """Every window whose panes are not numbered without a gap or a repeat, or whose last one is not as expected."""
    rows = duckdb.from_arrow(panes).query("panes", PANES).fetchall()
    yield from (
        f"panes of {device} at {start} are not 0, 1, 2 …"
        for device, start, *_, all_once in rows
        if not all_once
    )
    last = {(device, start): (readings, mean) for device, start, readings, mean, _ in rows}
    yield from (str(one) for one in differences(expected, last))


def of_ledger(ledger: pa.Table, records: Mapping[int, int]) -> Iterator[str]:
    """Every partition whose batches do not follow each other, do not add up, or are not of all its records."""
    rows = duckdb.from_arrow(ledger).query("ledger", LEDGER).fetchall()
    if {partition for partition, *_ in rows} != set(records):
        yield f"the ledger tells of {[partition for partition, *_ in rows]}, and the topic has {sorted(records)}"
    for partition, read, end, adds_up, follow in rows:
        if not (read == end == records.get(partition) and adds_up and follow):
            there = records.get(partition)
            yield f"partition {partition}: {read} read up to {end} of {there}, {adds_up=}, {follow=}"
