"""The result of a batch before it is written: its records, read and processed."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.batch.batch_input import (
    CHECK_COUNTS_SCHEMA,
    FATE_QUARANTINED,
    BatchInput,
    CheckedInput,
    account_partitions,
)
from penstock.engine.batch.batch_rows import BatchRows
from penstock.engine.batch.input_watermarks import StreamWatermarks, topic_of
from penstock.engine.batch.intent import BatchIntent
from penstock.engine.batch.late_records import build_late_rows
from penstock.engine.batch.lookup_versions import build_lookup_rows
from penstock.engine.batch.record_schemas import QUARANTINED_RECORD_SCHEMA
from penstock.engine.batch.stage_execution import LocalOrRemotePartials, StageResults, release_partials
from penstock.engine.batch_time import BatchTime
from penstock.engine.dedup.duplicates import DuplicateSplit
from penstock.engine.operators.changelog.published_panes import make_published_rows
from penstock.engine.operators.stage_graph import CompiledGraph, resolve_batch_time

PartitionAccounts = tuple[PartitionAccount, ...]


@dataclass(frozen=True)
class BatchResult:
    """A batch that was read and processed. Nothing of it is visible outside, so it can be discarded."""

    inputs_by_stage: Mapping[str, BatchInput]
    """The records as each first stage reads them."""
    dedup_result: DuplicateSplit
    partials_by_stage: Mapping[str, LocalOrRemotePartials]
    watermarks: StreamWatermarks
    batch_time: BatchTime
    stage_results: StageResults

    def release(self) -> None:
        """Release what executors store for it."""
        release_partials(self.partials_by_stage)

    def collect_rows(self, graph: CompiledGraph, intent: BatchIntent) -> BatchRows:
        """Return all rows of the batch; single records are read only if there are any."""
        first_input = next(iter(self.inputs_by_stage.values()))
        ledger_accounts, other_accounts = self._account_by_stage(graph, intent)
        return BatchRows(
            panes={name: stage_outcome.panes for name, stage_outcome in self.stage_results.outcomes.items()},
            late=self._collect_late_rows(graph),
            quarantined=first_input.read_invalid_records()
            if self._has_quarantined
            else QUARANTINED_RECORD_SCHEMA.empty_table(),
            accounts=ledger_accounts,
            other_accounts=other_accounts,
            lookup_rows=build_lookup_rows(intent),
            topic_rows={
                stage.plan.name: make_published_rows(
                    stage, self.stage_results.outcomes[stage.plan.name], self.batch_time
                )
                for stage in graph.stages
                if stage.plan.topics
            },
            check_counts=first_input.count_failed_checks()
            if isinstance(first_input, CheckedInput)
            else CHECK_COUNTS_SCHEMA.empty_table(),
        )

    @property
    def _has_quarantined(self) -> bool:
        fate_columns = [
            stage_partials.partials.column("_fate")
            for stage_partials in self.stage_results.read_partials.values()
        ]
        return any(pc.any(pc.equal(fates, FATE_QUARANTINED)).as_py() for fates in fate_columns)

    def _collect_late_rows(self, graph: CompiledGraph) -> dict[str, pa.Table]:
        """Return the records that each first stage refused."""
        late_by_stage = {}
        for stage in graph.record_stages:
            name, stage_time = stage.plan.name, resolve_batch_time(stage, self.batch_time)
            late_by_stage[name] = build_late_rows(
                stage, self.stage_results.outcomes[name].late_rows, self.inputs_by_stage[name], stage_time
            )
        return late_by_stage

    def _account_by_stage(
        self, graph: CompiledGraph, intent: BatchIntent
    ) -> tuple[PartitionAccounts, dict[str, PartitionAccounts]]:
        """Account for each partition's records in the first stage that reads it, and in the other stages."""
        accounts_by_partition: dict[str, PartitionAccount] = {}
        other_accounts: dict[str, PartitionAccounts] = {}
        for stage in graph.record_stages:
            topics = {topic_of(source) for source in graph.plan.sources_of(stage.plan)}
            spans = [span for span in intent.ranges if span.topic in topics]
            read_partials = self.stage_results.read_partials[stage.plan.name]
            stage_accounts = dict(
                zip(
                    (span.name for span in spans),
                    account_partitions(spans, read_partials.partials, read_partials.late),
                    strict=True,
                )
            )
            other_accounts[stage.plan.name] = tuple(
                account for name, account in stage_accounts.items() if name in accounts_by_partition
            )
            accounts_by_partition = stage_accounts | accounts_by_partition
        ordered = tuple(accounts_by_partition[span.name] for span in intent.ranges)
        return ordered, {name: accounts for name, accounts in other_accounts.items() if accounts}
