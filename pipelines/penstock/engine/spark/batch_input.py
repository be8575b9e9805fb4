"""The input of a batch from Spark: one job computes the partials, further jobs fetch single records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.batch_input import (
    CHECK_COUNTS_SCHEMA,
    FATE_QUARANTINED,
    CheckedInput,
    IdentifiedInput,
    MultiStageInput,
    RemotePartialsInput,
    UnprovenRecordsError,
)
from penstock.engine.batch.excluded_records import ExcludedRecord, SplittableInput
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.spark.aggregate.event_times import has_clock_rules
from penstock.engine.spark.aggregate.part_execution import PersistedPartials
from penstock.engine.spark.all_stage_partials import fetch_all_partials, load_once, persist_all_partials
from penstock.engine.spark.batch_records import BatchRecords
from penstock.engine.spark.parse.row_checks import (
    assign_check_bits,
    count_broken_checks,
    create_check_observation,
    raise_if_stopping,
    read_observed_breaks,
    select_quarantining,
)
from penstock.engine.spark.parse.writer_schemas import refuse_unknown_schemas
from penstock.engine.spark.poison_records import translate_sum_overflow, user_error_text
from penstock.engine.spark.single_records import fetch_invalid_records, fetch_late_records, fetch_record_ids
from penstock.engine.spark.stage_partials import (
    fetch_by_cached_plan,
    fetch_partials,
    has_cacheable_plan,
    persist_stage_partials,
)


@dataclass(frozen=True)
class SparkBatchInput(
    BatchRecords, SplittableInput, RemotePartialsInput, MultiStageInput, IdentifiedInput, CheckedInput
):
    """The records of one micro-batch, as the engine asks for them."""

    broken_checks: list[pa.Table] = field(default_factory=list, compare=False)
    """The counts of failed checks, filled when the partials are computed."""
    fetched_partials: dict[str, pa.Table] = field(default_factory=dict, compare=False)
    """The partials of all stages by name, filled by the shared pass."""
    invalid_records: list[pa.Table] = field(default_factory=list, compare=False)
    """The invalid records, filled when the partials are computed and there are any."""

    def compute_partials(self) -> pa.Table:
        """Run the batch's job and fetch the partials of the stage."""
        name = self.stage.plan.name
        if self.other_stages and not self.fetched_partials:
            with translate_sum_overflow(), load_once(self) as records:
                observation = create_check_observation(self.sources)
                all_partials = fetch_all_partials(self, records, observation)
                self._record_broken_checks(read_observed_breaks(observation))
            self._judge_invalid(all_partials.values())
            self.fetched_partials.update(all_partials)
        if name in self.fetched_partials:
            return self.fetched_partials[name]
        with translate_sum_overflow():
            if has_cacheable_plan(self):
                refuse_unknown_schemas(self.raw, self.writer_schemas)
                try:
                    fetched = fetch_by_cached_plan(self)
                except Exception as problem:
                    # Records that will be quarantined may overflow a sum here. If so, check each record.
                    if not (user_error_text(problem) and self._may_quarantine_valid):
                        raise
                    fetched = None
                if fetched is not None:
                    partials, broken_bits = fetched
                    self._record_broken_checks(broken_bits)
                    self._judge_invalid([partials])
                    return partials
            observation = create_check_observation(self.sources)
            partials = fetch_partials(self, observation)
            self._record_broken_checks(read_observed_breaks(observation))
            self._judge_invalid([partials])
            return partials

    def compute_remote_partials(self) -> dict[str, PersistedPartials]:
        """Run the batch's job and keep the partials in the executors."""
        observation = create_check_observation(self.sources)
        with translate_sum_overflow():
            if self.other_stages:
                with load_once(self) as records:
                    persisted = persist_all_partials(self, records, observation)
                    self._record_broken_checks(read_observed_breaks(observation))
            else:
                persisted = {self.stage.plan.name: persist_stage_partials(self, observation)}
                self._record_broken_checks(read_observed_breaks(observation))
            try:
                self._judge_invalid(each.summary for each in persisted.values())
            except UnprovenRecordsError:
                for each in persisted.values():
                    each.release()
                raise
            return persisted

    def inputs_of_other_stages(self) -> "dict[str, SparkBatchInput]":
        """Return the same records as inputs of the other stages; one job computes the partials of all."""
        return {
            other_stage.plan.name: replace(self, stage=other_stage, other_stages=())
            for other_stage in self.other_stages
        }

    def count_failed_checks(self) -> pa.Table:
        """Return the number of records that fail each check."""
        return self.broken_checks[-1] if self.broken_checks else CHECK_COUNTS_SCHEMA.empty_table()

    def read_invalid_records(self) -> pa.Table:
        """Fetch the invalid records, byte for byte as they are in the topic."""
        return self.invalid_records[-1] if self.invalid_records else fetch_invalid_records(self)

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        """Fetch the records of these windows."""
        return fetch_late_records(self, windows)

    def read_ids(self) -> pa.Table:
        """Fetch the ids of valid records; none for inputs without deduplication."""
        return fetch_record_ids(self)

    def drop_duplicates(self, duplicates: pa.Table) -> "SparkBatchInput":
        """Return the same records with these addresses dropped as duplicates."""
        if not duplicates.num_rows:
            return self
        return replace(self, duplicates=duplicates, fetched_partials={}, invalid_records=[])

    def describe_user_error(self, problem: BaseException) -> str:
        """Return the error text of user code; empty when the problem has another cause."""
        return user_error_text(problem)

    def restrict_to(self, spans: tuple[OffsetRange, ...]) -> "SparkBatchInput":
        """Return only the records of these ranges."""
        range_condition = " OR ".join(
            f"(topic = '{span.topic}' AND partition = {span.partition} "
            f"AND offset >= {span.start} AND offset < {span.end})"
            for span in spans
        )
        return replace(
            self,
            raw=self.raw.where(range_condition),
            ranges=spans,
            broken_checks=[],
            fetched_partials={},
            invalid_records=[],
        )

    def exclude_records(self, poisoned: Sequence[ExcludedRecord]) -> "SparkBatchInput":
        """Return the same records with these marked as invalid."""
        return replace(
            self,
            excluded_records=tuple(poisoned),
            broken_checks=[],
            fetched_partials={},
            invalid_records=[],
        )

    def _judge_invalid(self, accounts: Iterable[pa.Table]) -> None:
        """Fetch and judge the invalid records, if there are any; raise UnprovenRecordsError if one is valid.

        With the judge in the plan, all of them are judged.
        """
        if self.judge_mode.is_on:
            self.judge_mode.end_batch()
            return
        fates = [account.column("_fate") for account in accounts]
        if not any(pc.any(pc.equal(column, FATE_QUARANTINED)).as_py() for column in fates):
            return
        try:
            self.invalid_records.append(fetch_invalid_records(self))
        except UnprovenRecordsError:
            self.judge_mode.turn_on()
            raise

    @property
    def _may_quarantine_valid(self) -> bool:
        """Whether records that can be read may be quarantined: by a check, or by their event time."""
        return bool(select_quarantining(assign_check_bits(self.sources))) or has_clock_rules(self.sources)

    def _record_broken_checks(self, broken_bits: int | None) -> None:
        """Count failed checks after the job; raise CheckFailedError if one of them stops the stream."""
        if assign_check_bits(self.sources):
            self.broken_checks.append(count_broken_checks(broken_bits, self.load, self.sources))
            raise_if_stopping(self.count_failed_checks(), self.load, self.sources)
