"""Run a compiled graph batch by batch, as the batch engine does: all stages, with their state in files."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from penstock.engine.batch.placement import DRIVER_ONLY
from penstock.engine.batch.stage_execution import process_stages
from penstock.engine.batch.stage_states import StageStates
from penstock.engine.batch_time import BatchTime
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.operators.windowed.window_update import StageResult
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS


class GraphRunner:
    """A graph over a folder. Each call of `run` gives it the input of its record stages."""

    def __init__(self, graph: CompiledGraph, folder: Path) -> None:
        self.graph, self.states = graph, StageStates(graph, folder)
        self.clock, self.watermark, self.batch = MIN_TIMESTAMP_MS, MIN_TIMESTAMP_MS, 0

    def run(
        self, inputs: Mapping[str, pa.Table], clock: int, watermark: int
    ) -> tuple[dict[str, StageResult], BatchTime]:
        batch_time = BatchTime(self.batch, self.clock, clock, self.watermark, watermark)
        valid_inputs = {name: mark_valid(table) for name, table in inputs.items()}
        result = process_stages(self.graph, self.states, DRIVER_ONLY, valid_inputs, batch_time)
        self.states.adopt(self.states.write_changes(result.outcomes, self.batch, result.runs))
        self.clock, self.watermark, self.batch = clock, watermark, self.batch + 1
        return dict(result.outcomes), batch_time


def mark_valid(partials: pa.Table) -> pa.Table:
    """Partials with the column that marks records as valid."""
    return partials.append_column("_fate", pa.nulls(partials.num_rows, pa.string()))
