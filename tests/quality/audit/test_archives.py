"""Archives that are not as they were written: each is found, and no check keeps the others from being made."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipelines.engine.batch.stored import Bench
from tests.quality.audit.test_books import lived, rewrite, scope_of

from penstock.engine.archive.archive_rows import ARCHIVE_LEDGER_SCHEMA, ARCHIVE_RECORD_SCHEMA
from penstock.engine.batch.journal import BatchJournal
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.topic_view import explain_archive_lag, read_archive_bounds
from penstock.quality.errors import DamagedTableError

TOLD = "ledger/archive-records"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A stream whose topic has an archive of three batches."""
    bench = lived(tmp_path)
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
    write_deltalake(bench.folder / "warehouse" / TOLD, pa.Table.from_pylist(rows, ARCHIVE_LEDGER_SCHEMA))
    write_deltalake(bench.folder / "warehouse/raw/records", ARCHIVE_RECORD_SCHEMA.empty_table())
    journal = BatchJournal.open_for_writing(tmp_path / "archive" / "journal")
    for number in range(3):
        journal.commit_outcome(next(one for one in bench.told if one.batch_id == number))
    return bench


def scope(bench: Bench) -> AuditScope:
    return replace(scope_of(bench), archive_journals={"records": bench.folder / "archive" / "journal"})


def cut_to(number: int) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.slice(0, number)


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (3, None),
        (2, None),
        (1, "its newest batch is 0, but its journal has batch 2; the batches between are missing"),
        (0, "it has no batch, but its journal has batch 2; the batches between are missing"),
    ],
)
def test_an_archive_that_was_put_back_to_an_older_state_is_found_by_its_journal(
    bench: Bench, left: int, said: str | None
) -> None:
    rewrite(bench, TOLD, cut_to(left))
    assert explain_archive_lag(scope(bench), "records") == said


def test_an_archive_that_was_begun_anew_with_its_journal_is_not_behind(bench: Bench) -> None:
    rewrite(bench, TOLD, cut_to(0))
    assert explain_archive_lag(scope_of(bench), "records") is None


@pytest.mark.parametrize(
    ("column", "value"),
    [("start", None), ("batch_id", None), ("gaps", [{"first": 1, "last": None, "reason": "expired"}])],
)
def test_a_row_that_no_archive_writes_is_damage_and_no_traceback(
    bench: Bench, column: str, value: Any
) -> None:
    def change(rows: pa.Table) -> pa.Table:
        told = rows.to_pylist()
        told[1][column] = value
        return pa.Table.from_pylist(told, rows.schema)

    rewrite(bench, TOLD, change)
    with pytest.raises(DamagedTableError) as found:
        read_archive_bounds(scope(bench), "records")
    assert str(found.value.table).endswith(TOLD)
