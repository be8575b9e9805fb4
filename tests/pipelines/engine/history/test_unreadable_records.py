"""Which records a replay loses because their contract changed."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipelines.engine.spark.test_live_stream import build_plan

from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.engine.history.unreadable_records import UnreadableRecords, find_unreadable_records
from penstock.stream import fixed

PLAN = build_plan("orders", fixed("10 seconds"))
READ = 100


def write_quarantine(warehouse: Path, reasons: dict[int, str], stream: str = PLAN.name) -> None:
    rows = [
        {"topic": "orders", "partition": 0, "offset": offset, "reason": reason, "stream": stream}
        for offset, reason in reasons.items()
    ]
    schema = pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("reason", pa.string()),
            ("stream", pa.string()),
        ]
    )
    write_deltalake(warehouse / "quarantine" / "orders", pa.Table.from_pylist(rows, schema), mode="append")


def find(folder: Path, before: dict[int, str], replayed: dict[int, str], quarantined: int) -> object:
    """Find the records of a stream that read offsets 0 to 99 in two batches."""
    accounts = [
        {"topic": "orders", "partition": 0, "start": start, "end": start + 50, "read": 50, "accepted": 50}
        | {"late": 0, "quarantined": count, "duplicate": 0, "filtered": 0}
        for start, count in ((0, quarantined), (50, 0))
    ]
    ledger = pa.Table.from_pylist(accounts, LEDGER_SCHEMA)
    write_deltalake(folder / "live" / "ledger" / PLAN.name, ledger)
    if before:
        write_quarantine(folder / "live", before)
    write_quarantine(folder / "replay", replayed)
    return find_unreadable_records(PLAN, folder / "live", folder / "replay")


@pytest.mark.parametrize(
    ("replayed", "expected"),
    [
        ({7: "malformed"}, None),
        ({7: "wrong_schema", 100: "wrong_schema"}, None),
        ({7: "malformed", 8: "check:amount", 9: "future_event_time:at (1h ahead)"}, None),
        (
            {7: "malformed", 50: "wrong_type:amount", 99: "wrong_schema", 100: "wrong_schema"},
            UnreadableRecords(2, "orders/0 offset 50", "wrong_type:amount"),
        ),
    ],
    ids=["the same record", "not read yet", "rules of the pipeline", "two records more"],
)
def test_records_that_only_the_replay_quarantines_for_their_form(
    replayed: dict[int, str], expected: UnreadableRecords | None, tmp_path: Path
) -> None:
    assert find(tmp_path, {7: "malformed"}, replayed, quarantined=1) == expected


def test_rows_that_were_removed_from_the_quarantine_count_by_the_ledger(tmp_path: Path) -> None:
    assert find(tmp_path, {}, {7: "malformed", 8: "malformed"}, quarantined=2) is None


def test_the_rows_of_another_stream_do_not_count(tmp_path: Path) -> None:
    write_quarantine(tmp_path / "live", {7: "malformed"}, stream="other")
    found = find(tmp_path, {}, {7: "malformed"}, quarantined=0)
    assert found == UnreadableRecords(1, "orders/0 offset 7", "malformed")
