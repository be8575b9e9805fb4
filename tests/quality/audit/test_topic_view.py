"""Archives that were restored to an older state or are damaged."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.quality.audit.recorded_stream import create_scope, rewrite, run_stream

from penstock.engine.archive.archive_rows import ARCHIVE_LEDGER_SCHEMA, ARCHIVE_RECORD_SCHEMA
from penstock.engine.batch.journal import BatchJournal
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.topic_view import explain_archive_lag, read_archive_bounds
from penstock.quality.errors import DamagedTableError

ARCHIVE_LEDGER = "ledger/archive-records"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A stream whose topic has an archive of three batches."""
    bench = run_stream(tmp_path)
    rows = [
        {
            "topic": "records",
            "partition": 0,
            "start": n,
            "end": n + 1,
            "records": 1,
            "gaps": [],
            "batch_id": n,
        }
        for n in range(3)
    ]
    write_deltalake(
        bench.folder / "warehouse" / ARCHIVE_LEDGER, pa.Table.from_pylist(rows, ARCHIVE_LEDGER_SCHEMA)
    )
    write_deltalake(bench.folder / "warehouse/raw/records", ARCHIVE_RECORD_SCHEMA.empty_table())
    journal = BatchJournal.open_for_writing(tmp_path / "archive" / "journal")
    for number in range(3):
        journal.commit_outcome(next(outcome for outcome in bench.outcomes if outcome.batch_id == number))
    return bench


def create_archive_scope(bench: Bench) -> AuditScope:
    return replace(create_scope(bench), archive_journals={"records": bench.folder / "archive" / "journal"})


def keep_rows(number: int) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.slice(0, number)


@pytest.mark.parametrize(
    ("remaining", "message"),
    [
        (3, None),
        (2, None),
        (1, "its newest batch is 0, but its journal has batch 2; the batches between are missing"),
        (0, "it has no batch, but its journal has batch 2; the batches between are missing"),
    ],
)
def test_an_archive_older_than_its_journal_is_reported(
    bench: Bench, remaining: int, message: str | None
) -> None:
    rewrite(bench, ARCHIVE_LEDGER, keep_rows(remaining))
    assert explain_archive_lag(create_archive_scope(bench), "records") == message


def test_an_archive_without_a_journal_is_not_behind(bench: Bench) -> None:
    rewrite(bench, ARCHIVE_LEDGER, keep_rows(0))
    assert explain_archive_lag(create_scope(bench), "records") is None


@pytest.mark.parametrize(
    ("column", "value"),
    [("start", None), ("batch_id", None), ("gaps", [{"first": 1, "last": None, "reason": "expired"}])],
)
def test_an_impossible_row_is_reported_as_damage(bench: Bench, column: str, value: Any) -> None:
    def change(rows: pa.Table) -> pa.Table:
        row_dicts = rows.to_pylist()
        row_dicts[1][column] = value
        return pa.Table.from_pylist(row_dicts, rows.schema)

    rewrite(bench, ARCHIVE_LEDGER, change)
    with pytest.raises(DamagedTableError) as raised:
        read_archive_bounds(create_archive_scope(bench), "records")
    assert str(raised.value.table).endswith(ARCHIVE_LEDGER)
