"""Opens the sinks of a stream, and selects the rows of a batch for each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.batch.batch_rows import BatchRows
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.ordered.state_schema import WINDOW_NUMBER_FIELD
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.operators.stateful.side_outputs import output_schema, select_output_panes
from penstock.engine.plan.sinks import Sink
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.storage import StoragePath
from penstock.engine.tables.sink_target import SinkContext, SinkTarget
from penstock.engine.tables.table_comments import KEY_COMMENT
from penstock.engine.tables.timestamps import to_table_schema


@dataclass(frozen=True)
class OpenSink:
    """A sink of a stage and its open target."""

    sink: Sink
    stage: CompiledStage
    target: SinkTarget

    def select_rows(self, rows: BatchRows) -> pa.Table:
        """Return the rows of a batch that the sink takes."""
        stage_name = self.stage.plan.name
        if self.sink.takes_changes:
            return rows.topic_rows[stage_name]
        panes = select_output_panes(self.stage, rows.panes[stage_name], self.sink.output)
        return self.sink.select_panes(panes)


def open_sinks(
    graph: CompiledGraph, warehouse: StoragePath, client_config: Mapping[str, str] | None
) -> Iterator[tuple[str, OpenSink]]:
    """Yield each sink of a stream that writes something, by its path.

    Without `client_config`, nothing outside of the warehouse is written.
    """
    for stage in graph.stages:
        for sink in stage.plan.all_sinks:
            context = SinkContext(
                warehouse / sink.path,
                graph.plan.name,
                stage.plan.key,
                list_window_key(stage),
                to_table_schema(output_schema(stage, sink.output)),
                comment_values(stage.plan),
                stage.plan.window.file_span_ms,
                client_config,
            )
            target = sink.open(context)
            if target is not None:
                yield sink.path, OpenSink(sink, stage, target)


def comment_values(stage: Stage) -> dict[str, str]:
    """Return what the columns of a stage's key and values are, by name."""
    values = {} if stage.join else {each.name: each.aggregate.describe_call() for each in stage.aggregates}
    return dict.fromkeys(stage.key, KEY_COMMENT) | values


def open_sinks_to_commit(
    plan: Plan, warehouse: StoragePath, client_config: Mapping[str, str]
) -> dict[str, SinkTarget]:
    """Open the sinks of a plan that are no Delta tables, to finish commits."""
    targets = {
        sink.path: sink.open(
            SinkContext(warehouse / sink.path, plan.name, stage.key, client_config=client_config)
        )
        for stage in plan.stages
        for sink in stage.all_sinks
        if not sink.is_delta_table
    }
    return {path: target for path, target in targets.items() if target is not None}


def list_window_key(stage: CompiledStage) -> list[str]:
    """Return the columns that identify a window, beside its bounds."""
    return [
        field.name for field in (*stage.key, *((WINDOW_NUMBER_FIELD,) if stage.has_window_numbers else ()))
    ]
