"""A stream without Spark, its audit scope, and edits of its tables."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, run_batches

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.storage import ObjectStorePath
from penstock.quality.audit.audit_check import StreamCheck, list_checks
from penstock.quality.audit.runner import run_check
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditVerdict, CheckOutcome


def run_stream(folder: Path, name: str = "fixed", table_root: ObjectStorePath | None = None) -> Bench:
    bench = Bench(PLANS[name], folder, table_root=table_root)
    run_batches(bench)
    bench.outcomes[:] = BatchJournal(folder / "stream" / "journal").read_outcomes()
    return bench


def create_scope(bench: Bench) -> AuditScope:
    def no_session() -> None:
        raise AssertionError("these checks need no Spark")

    outcomes = {outcome.batch_id: outcome for outcome in bench.outcomes}
    return AuditScope(
        plan=bench.plan,
        batches=[to_batch_record("stream", outcomes[number]) for number in sorted(outcomes)],
        warehouse=bench.warehouse,
        journal=bench.folder / "stream" / "journal",
        producer_ledgers={},
        broker=BrokerAccess("nowhere:1"),
        decisions_folder=bench.folder / "quarantine",
        scratch_folder=bench.folder / "scratch",
        clock=lambda: 0,
        open_session=no_session,  # type: ignore[arg-type]
    )


def run_checks(bench: Bench) -> dict[str, CheckOutcome]:
    scope = create_scope(bench)
    return {check.name: check.run(scope) for check in list_checks(StreamCheck)}


def find_failures(bench: Bench) -> dict[str, str]:
    """Return the first difference of each failed check."""
    return {name: outcome.summary for name, outcome in run_checks(bench).items() if outcome.state == "failed"}


def rewrite(bench: Bench, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Overwrite a table with changed rows."""
    path = bench.folder / "warehouse" / table
    write_deltalake(path, change(DeltaTable(path).to_pyarrow_table()), mode="overwrite")


def edit_row(rows: pa.Table, index: int, **values: int) -> pa.Table:
    row_dicts = rows.to_pylist()
    row_dicts[index].update(values)
    return pa.Table.from_pylist(row_dicts, rows.schema)


def judge_stream(scope: AuditScope) -> list[AuditVerdict]:
    """Run the checks of a stream as an audit does, where an error is a verdict."""
    return [run_check(check.name, partial(check.run, scope)) for check in list_checks(StreamCheck)]


ORDER = [("batch_id", "ascending"), ("partition", "ascending")]


def read_rows(bench: Bench, table: str) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = DeltaTable(bench.folder / "warehouse" / table).to_pyarrow_table().to_pylist()
    return rows
