"""The tables of a stream about single records and batches: late records, quarantine, ledger, checks and lookups."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.batch_input import CHECK_COUNTS_SCHEMA
from penstock.engine.batch.batch_rows import BatchRows
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.lookup_versions import LOOKUP_VERSIONS_SCHEMA
from penstock.engine.batch.record_schemas import LEDGER_SCHEMA, QUARANTINE_SCHEMA, late_record_schema
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.plan.codec import contract_version
from penstock.engine.storage import StoragePath
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_comments import KEY_COMMENT
from penstock.engine.tables.table_documentation import document_table
from penstock.engine.tables.table_owner import TableClaim
from penstock.engine.tables.table_paths import LOOKUPS_FOLDER, late_records_path, stage_ledger_path
from penstock.engine.tables.timestamps import TIMESTAMP_TYPE, to_timestamps

BATCH_FIELDS = (pa.field("batch_id", pa.int64()), pa.field("batch_clock", TIMESTAMP_TYPE))


class RecordTables:
    """The logs of a stream besides its results. Each row has its batch."""

    def __init__(self, graph: CompiledGraph, warehouse: StoragePath) -> None:
        plan, stages = graph.plan, graph.record_stages
        self._warehouse = warehouse
        self._stream = plan.name
        self.tables_by_path: dict[str, LogTable] = {}
        self._late_paths = {
            stage.plan.name: self._open_log(
                late_records_path(plan, stage.plan), late_record_schema(stage), stage.plan.key
            )
            for stage in stages
        }
        self._quarantine_paths = {
            topic_of(source): self._open_log(f"quarantine/{source.name}", QUARANTINE_SCHEMA)
            for source in plan.sources
        }
        self._contract_versions = {topic_of(source): contract_version(source) for source in plan.sources}
        self._ledger_paths = {
            stage.plan.name: self._open_log(stage_ledger_path(plan, stage.plan), LEDGER_SCHEMA)
            for stage in stages
        }
        self._first_stage = plan.first_source_stage.name
        has_checks = any(source.checks for source in plan.sources)
        self._checks_path = self._open_log(f"checks/{plan.name}", CHECK_COUNTS_SCHEMA) if has_checks else None
        self._lookups_path = (
            self._open_log(f"{LOOKUPS_FOLDER}/{plan.name}", LOOKUP_VERSIONS_SCHEMA) if plan.lookups else None
        )

    def claim(self, claim: TableClaim) -> None:
        """Claim the tables that only this stream writes; other streams write the quarantines of topics too."""
        for path, table in self.tables_by_path.items():
            if path not in self._quarantine_paths.values():
                table.claim(claim)

    def _open_log(self, path: str, schema: pa.Schema, key: Sequence[str] = ()) -> str:
        table_schema = pa.schema([*schema, *BATCH_FIELDS])
        documentation = document_table(path.partition("/")[0], dict.fromkeys(key, KEY_COMMENT))
        self.tables_by_path[path] = LogTable(
            self._warehouse / path, table_schema, self._stream, documentation
        )
        return path

    def iter_rows(self, rows: BatchRows, batch_time: BatchTime) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of a batch for each table, by path."""
        for stage, late_rows in rows.late.items():
            yield self._late_paths[stage], stamp_batch(late_rows, batch_time)
        quarantined = stamp_batch(rows.quarantined, batch_time)
        for topic, path in self._quarantine_paths.items():
            yield path, self._to_quarantine_rows(quarantined, topic)
        for stage, accounts in {self._first_stage: rows.accounts, **rows.other_accounts}.items():
            yield self._ledger_paths[stage], stamp_batch(to_ledger_rows(accounts), batch_time)
        if self._checks_path is not None:
            yield self._checks_path, stamp_batch(rows.check_counts, batch_time)
        if self._lookups_path is not None:
            yield self._lookups_path, stamp_batch(rows.lookup_rows, batch_time)

    def _to_quarantine_rows(self, rows: pa.Table, topic: str) -> pa.Table:
        """Return the invalid records of one topic, in the order of the columns of its quarantine."""
        rows = rows.filter(pc.equal(rows.column("topic"), topic))
        for name, text in (("stream", self._stream), ("contract", self._contract_versions[topic])):
            rows = rows.append_column(name, pa.array([text] * rows.num_rows, pa.string()))
        return rows.select([*QUARANTINE_SCHEMA.names, *(field.name for field in BATCH_FIELDS)])


def stamp_batch(rows: pa.Table, batch_time: BatchTime) -> pa.Table:
    """Append the batch id and the batch clock to rows."""
    row_count = rows.num_rows
    clock = to_timestamps(pa.chunked_array([np.full(row_count, batch_time.clock, np.int64)]))
    rows = rows.append_column(BATCH_FIELDS[0], pa.array(np.full(row_count, batch_time.batch_id, np.int64)))
    return rows.append_column(BATCH_FIELDS[1], clock)


def to_ledger_rows(accounts: Sequence[PartitionAccount]) -> pa.Table:
    """Return accounts as rows of a ledger."""
    columns = {name: [getattr(account, name) for account in accounts] for name in LEDGER_SCHEMA.names}
    return pa.table(columns, schema=LEDGER_SCHEMA)
