"""Runs batches on the reference evaluator, in this process."""

from collections.abc import Mapping, Sequence
from functools import partial

from penstock.conformance.reference import EvaluatedBatch, Evaluator, InputBatch, InputRecord
from penstock.conformance.reference.input_records import RecordAddress
from penstock.conformance.reference.steps import are_supported_steps
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.stages import Plan, Stage
from penstock.ingestion.contracts import Contract
from penstock.testing.observed_rows import ObservedRows, TopicBatch
from penstock.testing.step_tables import Fields, StepTables
from penstock.testing.topic_records import judge_record


class SteppedEvaluator(Evaluator):
    """The reference evaluator, with steps over tables. Steps of a batch run before its windows."""

    def __init__(self, plan: Plan, step_tables: StepTables) -> None:
        self._step_tables = step_tables
        self._rows: dict[str, Mapping[RecordAddress, list[Fields]]] = {}
        unsupported = [stage for stage in plan.stages if not are_supported_steps(stage.steps)]
        steps = {stage.name: partial(step_tables.transform_pane, stage) for stage in unsupported}
        super().__init__(plan, later_steps=steps)

    def run(self, batch: InputBatch) -> EvaluatedBatch:
        """Run one batch."""
        self._rows = {
            stage.name: self._step_tables.transform(stage, _valid_records_of(stage, batch.records))
            for stage in self.plan.source_stages
            if not _has_supported_steps(stage)
        }
        return super().run(batch)

    def transform_record(self, stage: Stage, record: InputRecord) -> list[Fields]:
        """Return the rows that the steps of a stage make of a record."""
        if stage.name not in self._rows:
            return super().transform_record(stage, record)
        return self._rows[stage.name][record.address]


def _has_supported_steps(stage: Stage) -> bool:
    parts = (stage.steps, *(part.steps for part in stage.input_steps))
    return all(are_supported_steps(steps) for steps in parts)


def _valid_records_of(stage: Stage, records: Sequence[InputRecord]) -> list[InputRecord]:
    return [record for record in records if record.error is None and record.source in stage.inputs]


class ReferenceBackend:
    """Runs a plan on the reference evaluator, and judges records by their contracts."""

    def __init__(self, plan: Plan, contracts: Mapping[str, Contract], step_tables: StepTables) -> None:
        self._plan = plan
        self._contracts = contracts
        self._evaluator = SteppedEvaluator(plan, step_tables)

    def run(self, batch: TopicBatch) -> ObservedRows:
        """Run a batch, and return the rows of its stages."""
        records = tuple(
            judge_record(record, source, self._contracts[source.name], batch.clock)
            for source in self._plan.sources
            for record in batch.records
            if record.topic == topic_of(source)
        )
        partitions = frozenset(
            (source.name, number) for source in self._plan.sources for number in range(batch.partition_count)
        )
        outcome = self._evaluator.run(
            InputBatch(batch.number, batch.clock, records, partitions, is_last=batch.is_last)
        )
        first = self._plan.first_source_stage.name
        late = {first: outcome.late, **{name: stage.late for name, stage in outcome.other_stages.items()}}
        return ObservedRows(
            {first: outcome.panes, **outcome.stage_panes}, outcome.replaced, late, outcome.quarantined
        )
