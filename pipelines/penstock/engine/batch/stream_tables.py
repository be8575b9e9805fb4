"""The tables and topics of one stream, written together for each batch."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path

from penstock.engine.batch.batch_rows import BatchRows
from penstock.engine.batch.erasure_account import ERASURES_SCHEMA
from penstock.engine.batch.open_sinks import open_sinks
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.record_tables import RecordTables
from penstock.engine.batch_time import BatchTime
from penstock.engine.errors import DamagedEntryError, TableAheadError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import StoragePath
from penstock.engine.tables.batch_table import BatchTable, claim_existing_tables
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.sink_target import SinkTarget
from penstock.engine.tables.staged_target import StagedTarget
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.table_documentation import document_table
from penstock.engine.tables.table_owner import TableClaim
from penstock.engine.tables.table_paths import ERASURES_FOLDER, list_owned_paths
from penstock.engine.tables.timestamps import as_table

MAX_PARALLEL_COMMITS = 4


class StreamTables:
    """What one stream writes: its sinks, late records, the quarantine of its topics, and its ledger."""

    def __init__(
        self,
        plan: Plan,
        graph: CompiledGraph,
        warehouse: StoragePath,
        client_config: Mapping[str, str] | None = None,
        claim: TableClaim | None = None,
    ) -> None:
        """Open the tables. Without `client_config` for Kafka nothing is published, as in a bounded run.

        With a claim, they are this stream's only. Raises TableOwnedError for a table of another writer, before
        anything of it changes.
        """
        self._stream = plan.name
        if claim is not None:
            claim_existing_tables([warehouse / path for path in list_owned_paths(plan)], claim)
        self._sinks = dict(open_sinks(graph, warehouse, client_config))
        self._record_tables = RecordTables(graph, warehouse)
        self._targets: dict[str, SinkTarget] = {
            **self._record_tables.tables_by_path,
            **{path: open_sink.target for path, open_sink in self._sinks.items()},
        }
        if claim is not None:
            self._record_tables.claim(claim)
            for open_sink in self._sinks.values():
                if isinstance(open_sink.target, BatchTable | StagedTarget):
                    open_sink.target.claim(claim)
        self._pool = ThreadPoolExecutor(MAX_PARALLEL_COMMITS, thread_name_prefix=f"commits of {plan.name}")
        self._erasures_path = f"{ERASURES_FOLDER}/{plan.name}"
        self._open_erasures_table = partial(
            LogTable,
            warehouse / self._erasures_path,
            ERASURES_SCHEMA,
            plan.name,
            document_table(ERASURES_FOLDER),
        )

    def write(self, rows: BatchRows, batch_time: BatchTime) -> dict[str, TableChange]:
        """Write a batch's rows to new files that no table references yet."""
        batch_id, clock = batch_time.batch_id, batch_time.clock
        stored = replace(rows, panes={stage: as_table(panes) for stage, panes in rows.panes.items()})
        changes: dict[str, TableChange] = {}
        try:
            for path, open_sink in self._sinks.items():
                changes[path] = open_sink.target.write(open_sink.select_rows(stored), batch_id, clock)
            for path, table_rows in self._record_tables.iter_rows(rows, batch_time):
                changes[path] = self._targets[path].write(table_rows, batch_id, clock)
        except Exception:
            self.discard(changes)
            raise
        return {path: change for path, change in changes.items() if not change.is_empty}

    def discard(self, changes: Mapping[str, TableChange]) -> None:
        """Remove the files of an attempt that failed before its batch was committed."""
        for path, change in changes.items():
            self._targets[path].discard(change.adds)

    def list_unsynced_files(self, changes: Mapping[str, TableChange]) -> list[Path]:
        """Return local files that must be synced before the outcome: of these changes, and of earlier commits."""
        return [
            file
            for path, target in self._targets.items()
            if isinstance(target, BatchTable | StagedTarget)
            for file in target.list_unsynced_files(changes.get(path, TableChange()))
        ]

    def recover(self, outcomes: Sequence[BatchOutcome]) -> None:
        """Compare the Delta tables with the retained outcomes, oldest first, and commit what they lack.

        Only the last batch can be missing, unless a power cut hit a stream that does not sync. A table whose older
        files are gone was removed on purpose. Raises TableAheadError if a table has a batch after the last outcome,
        and DamagedEntryError if files of the last outcome are missing or torn.
        """
        tables = {path: table for path, table in self._targets.items() if isinstance(table, BatchTable)}
        last_batch = outcomes[-1].batch_id if outcomes else -1
        for (path, table), table_batch in zip(
            tables.items(),
            self._pool.map(lambda table: table.read_last_batch(), tables.values()),
            strict=True,
        ):
            if table_batch > last_batch:
                raise TableAheadError(self._stream, str(table.path), table_batch, last_batch)
            for outcome in outcomes[:-1]:
                change = outcome.changes.get(path)
                if (
                    outcome.batch_id > table_batch
                    and change is not None
                    and not table.find_missing_file(change)
                ):
                    table.commit(outcome.batch_id, change, outcome.clock)
            change = outcomes[-1].changes.get(path) if last_batch > table_batch else None
            if change is not None and (missing_file := table.find_missing_file(change)):
                raise DamagedEntryError(missing_file, f"is missing or torn, and batch {last_batch} needs it")

    def commit(self, batch_id: int, changes: Mapping[str, TableChange], clock: int) -> None:
        """Commit a batch's changes to its tables, each once, in parallel, because a commit mostly waits for files.

        If some commits fail, the others are still made, and the first error is raised.
        """

        def commit_change(path: str, change: TableChange) -> None:
            if path in self._targets:  # a table that is no longer declared does not change
                self._targets[path].commit(batch_id, change, clock)
            elif path == self._erasures_path:  # the table exists only after an erasure
                self._open_erasures_table().commit(batch_id, change, clock)

        futures = [self._pool.submit(commit_change, path, change) for path, change in changes.items()]
        wait(futures)
        for future in futures:
            future.result()
        for path in changes.keys() & self._targets.keys():
            self._pool.submit(self._targets[path].refresh_ahead)
