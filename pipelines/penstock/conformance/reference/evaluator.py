"""The reference evaluator: runs a plan slowly and obviously, in the six steps of a batch.

It is the specification that engines are compared with. It retains every element of every open window, computes
each pane from scratch, and promises no performance.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from penstock.conformance.reference.changelog import elements_from_panes
from penstock.conformance.reference.changelog_source import ReferenceChangelogOperator
from penstock.conformance.reference.input_records import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    InputBatch,
    InputRecord,
    Instant,
    RecordAddress,
    StageElement,
)
from penstock.conformance.reference.join_rows import expand_join_rows
from penstock.conformance.reference.number_semantics import canonicalize
from penstock.conformance.reference.order_operator import ReferenceOrderOperator
from penstock.conformance.reference.output_rows import (
    EvaluatedBatch,
    EvaluatedStage,
    Pane,
    PartitionCounts,
    QuarantinedRow,
    ReplacedWindow,
)
from penstock.conformance.reference.pane_emission import ReferenceBatchTime
from penstock.conformance.reference.source_intake import SourceIntake
from penstock.conformance.reference.stateful import ReferenceStatefulOperator
from penstock.conformance.reference.stateful_event_time import ReferenceEventTimeStatefulOperator
from penstock.conformance.reference.steps import RowFields, StepFunction, apply_steps, are_supported_steps
from penstock.conformance.reference.unwindowed_joins import ReferenceUnwindowedJoin
from penstock.conformance.reference.watermark import SourceWatermark
from penstock.conformance.reference.windowed import ReferenceWindowOperator
from penstock.engine.errors import LateRetractionError, MissingStepsError
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.order_window import OrderWindow


class Evaluator:
    """A running pipeline. `steps` replaces the steps of its first stage: one record in, any number out.

    `later_steps` does the same for other stages, by name. Steps that are data need no replacement.
    """

    def __init__(
        self,
        plan: Plan,
        steps: StepFunction | None = None,
        later_steps: Mapping[str, StepFunction] = MappingProxyType({}),
    ) -> None:
        steps_by_stage = {**later_steps, **({} if steps is None else {plan.first_source_stage.name: steps})}
        if any(
            not are_supported_steps(stage.steps) and stage.name not in steps_by_stage for stage in plan.stages
        ):
            raise MissingStepsError(plan.name)
        self.plan = plan
        self.steps = {
            stage.name: steps_by_stage.get(stage.name, partial(apply_steps, stage.steps))
            for stage in plan.stages
        }
        self.intakes = [SourceIntake(source, SourceWatermark(source.watermark)) for source in plan.sources]
        self.operators = {stage.name: create_operator(plan, stage) for stage in plan.stages}
        self.watermark: Instant = MIN_TIMESTAMP
        self.clock: Instant = MIN_TIMESTAMP

    def run(self, batch: InputBatch) -> EvaluatedBatch:
        """Run one batch."""
        counts_by_partition = {partition: PartitionCounts() for partition in batch.partitions}
        accepted, quarantined = self.accept_records(batch, counts_by_partition)
        watermark_before = self.watermark
        counts_by_stage = {
            stage.name: self.process_records(stage, accepted, batch, counts_by_partition)
            for stage in self.plan.source_stages
        }
        self.advance_watermark(batch)
        rows = {
            stage.name: self.emit_stage(stage, batch, watermark_before) for stage in self.plan.source_stages
        }
        panes = {
            name: tuple(row for row in stage_rows if isinstance(row, Pane))
            for name, stage_rows in rows.items()
        }
        for stage in self.plan.stages:
            if self.plan.upstream_of(stage):
                panes[stage.name] = self.process_upstream_panes(
                    stage, panes, self.downstream_times(batch, watermark_before)
                )
        self.clock = batch.clock
        first = self.plan.first_source_stage.name
        late = {
            stage.name: tuple(self.operators[stage.name].take_late_rows())
            for stage in self.plan.source_stages
        }
        return EvaluatedBatch(
            batch=batch.id,
            clock=batch.clock,
            watermark=self.watermark,
            panes=panes[first],
            replaced=tuple(row for row in rows[first] if isinstance(row, ReplacedWindow)),
            late=late[first],
            quarantined=tuple(quarantined),
            accounts=self.count_once_per_partition(counts_by_stage),
            stage_panes={name: stage_rows for name, stage_rows in panes.items() if name != first},
            other_stages={
                name: EvaluatedStage(late[name], counts_by_stage[name])
                for name in counts_by_stage
                if name != first
            },
        )

    def process_records(
        self,
        stage: Stage,
        accepted: list[InputRecord],
        batch: InputBatch,
        counts_before: Mapping[tuple[str, int], PartitionCounts],
    ) -> dict[tuple[str, int], PartitionCounts]:
        """Process the records of a stage's sources; return their fates."""
        elements = {
            record.address: self.elements_from_record(stage, record)
            for record in accepted
            if record.source in stage.inputs
        }
        batch_time = self.batch_time_for(stage, batch, self.watermark, self.watermark)
        stage_elements = [element for record_elements in elements.values() for element in record_elements]
        taken_addresses = self.operators[stage.name].process_elements(stage_elements, batch_time)
        counts_by_partition = {
            partition: replace(counts)
            for partition, counts in counts_before.items()
            if partition[0] in stage.inputs
        }
        update_counts(counts_by_partition, elements, taken_addresses)
        return counts_by_partition

    def count_once_per_partition(
        self, counts_by_stage: Mapping[str, Mapping[tuple[str, int], PartitionCounts]]
    ) -> dict[tuple[str, int], PartitionCounts]:
        """Return the counts of each partition from the first stage that reads it."""
        merged: dict[tuple[str, int], PartitionCounts] = {}
        for stage_counts in counts_by_stage.values():
            merged = {**stage_counts, **merged}
        return merged

    def emit_stage(
        self, stage: Stage, batch: InputBatch, watermark_before: Instant
    ) -> list[Pane | ReplacedWindow]:
        """Return the output of a stage that reads records."""
        batch_time = self.batch_time_for(stage, batch, watermark_before, self.watermark)
        return list(expand_join_rows(stage, self.operators[stage.name].emit_panes(batch_time)))

    def process_upstream_panes(
        self,
        stage: Stage,
        panes: Mapping[str, tuple[Pane, ...]],
        batch_times: tuple[ReferenceBatchTime, ReferenceBatchTime],
    ) -> tuple[Pane, ...]:
        """Process the panes of upstream stages in the batch that emitted them."""
        elements = [
            element
            for upstream in self.plan.upstream_of(stage)
            for element in elements_from_panes(stage, upstream, panes[upstream.name], self.steps[stage.name])
        ]
        operator = self.operators[stage.name]
        operator.process_elements(elements, batch_times[0])
        late_rows = [row for row in operator.take_late_rows() if row.reason != "no_window"]
        if late_rows:
            raise LateRetractionError(stage.name, len(late_rows), batch_times[0].batch)
        rows = expand_join_rows(stage, operator.emit_panes(batch_times[1]))
        return tuple(row for row in rows if isinstance(row, Pane))

    def downstream_times(
        self, batch: InputBatch, watermark_before: Instant
    ) -> tuple[ReferenceBatchTime, ReferenceBatchTime]:
        """Return the batch times for adding elements and for triggers in a downstream stage."""
        return (
            ReferenceBatchTime(batch.id, batch.clock, watermark_before, watermark_before, watermark_before),
            ReferenceBatchTime(batch.id, batch.clock, watermark_before, self.watermark, self.watermark),
        )

    def accept_records(
        self, batch: InputBatch, counts_by_partition: dict[tuple[str, int], PartitionCounts]
    ) -> tuple[list[InputRecord], list[QuarantinedRow]]:
        """Step 1: quarantine invalid records and drop duplicates."""
        results = [intake.accept(batch, counts_by_partition) for intake in self.intakes]
        accepted = [record for records, _ in results for record in records]
        return accepted, [row for _, rows in results for row in rows]

    def elements_from_record(self, stage: Stage, record: InputRecord) -> list[StageElement]:
        """Return the elements that the steps of a stage make of a record."""
        source = self.plan.source_named(record.source)
        return [
            StageElement(
                key=canonicalize(tuple(fields.get(name) for name in stage.key)),
                time=record.fields[source.event_time],
                address=record.address,
                fields=fields,
            )
            for fields in self.transform_record(stage, record)
        ]

    def transform_record(self, stage: Stage, record: InputRecord) -> list[RowFields]:
        """Return the rows that the steps of a stage make of a record."""
        input_rows = apply_steps(stage.steps_of_input(record.source), record.fields)
        return [row for fields in input_rows for row in self.steps[stage.name](fields)]

    def advance_watermark(self, batch: InputBatch) -> None:
        """Step 4: advance the watermark; it never goes back."""
        source_watermarks = [intake.watermark.advance(batch.clock) for intake in self.intakes]
        lowest = min(source_watermarks) if batch.watermark is None else batch.watermark
        self.watermark = MAX_TIMESTAMP if batch.is_last else max(self.watermark, lowest)
        for intake in self.intakes:
            intake.expire_ids(self.watermark)

    def batch_time_for(
        self, stage: Stage, batch: InputBatch, watermark_before: Instant, watermark: Instant
    ) -> ReferenceBatchTime:
        """Return the batch time of a stage; processing-time windows use the clock as watermark."""
        max_event_time = max(
            (intake.watermark.max_event_time for intake in self.intakes), default=MIN_TIMESTAMP
        )
        batch_time = ReferenceBatchTime(
            batch.id, batch.clock, watermark_before, watermark, watermark, max_event_time
        )
        if not stage.window.uses_processing_time:
            return batch_time
        return replace(
            batch_time,
            watermark_before=self.clock,
            watermark=MAX_TIMESTAMP if watermark == MAX_TIMESTAMP else batch.clock,
        )


def create_operator(
    plan: Plan, stage: Stage
) -> (
    ReferenceWindowOperator
    | ReferenceOrderOperator
    | ReferenceStatefulOperator
    | ReferenceChangelogOperator
    | ReferenceUnwindowedJoin
):
    """Return the operator of a stage, without open windows."""
    match stage.window:
        case OrderWindow() as window:
            return ReferenceOrderOperator(stage, window)
        case JoinWindow() as window:
            return ReferenceUnwindowedJoin(stage, window)
        case StatefulFunction() as window:
            columns = (column for source in plan.sources for column in source.columns)
            operator_type = (
                ReferenceEventTimeStatefulOperator
                if window.is_event_time_ordered
                else ReferenceStatefulOperator
            )
            return operator_type(stage, window, tuple(columns))
        case ChangelogWindows() as window:
            return ReferenceChangelogOperator(window)
        case _:
            return ReferenceWindowOperator(stage)


def update_counts(
    counts_by_partition: dict[tuple[str, int], PartitionCounts],
    elements: Mapping[RecordAddress, list[StageElement]],
    taken_addresses: set[RecordAddress],
) -> None:
    """Count the fate of each accepted record."""
    for address, record_elements in elements.items():
        source, partition, _ = address
        counts = counts_by_partition[source, partition]
        if not record_elements:
            counts.filtered += 1
        elif address in taken_addresses:
            counts.accepted += 1
        else:
            counts.late += 1


def evaluate(
    plan: Plan, batches: Iterable[InputBatch], steps: StepFunction | None = None
) -> list[EvaluatedBatch]:
    """Run a plan over batches, from an empty state."""
    evaluator = Evaluator(plan, steps)
    return [evaluator.run(batch) for batch in batches]


def evaluate_bounded(
    plan: Plan, records: Iterable[InputRecord], clock: int, steps: StepFunction | None = None
) -> EvaluatedBatch:
    """Run a plan over stored records, in one batch that ends with the watermark at infinity."""
    return Evaluator(plan, steps).run(InputBatch(0, clock, tuple(records), is_last=True))
