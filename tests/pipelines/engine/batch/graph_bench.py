"""A stream of a whole graph. Each first stage gets its own records, after its steps."""

from collections.abc import Iterator

import pyarrow as pa
from tests.pipelines.engine.batch.stream_bench import Bench, InMemoryBatchInput
from tests.pipelines.engine.operators.graph_evaluation import build_input, compile_plan_graph, read_elements

from penstock.conformance.reference import InputBatch
from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, FATE_FILTERED, BatchInput
from penstock.engine.operators.stage_graph import CompiledGraph


class GraphBatchInput(InMemoryBatchInput):
    """The input of one batch for the first stages of a graph."""

    def inputs_of_other_stages(self) -> dict[str, InMemoryBatchInput]:
        return {
            stage.plan.name: GraphBatchInput(stage, self.records, self.clock) for stage in self.other_stages
        }

    def compute_partials(self) -> pa.Table:
        """Return the partials of each partition, with the count of records that the steps filter out."""
        partitions = sorted({record.address[:2] for record in self.records})
        schema = pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema])
        tables = [
            table
            for source, partition in partitions
            for table in self._partials_of_partition(source, partition, schema)
        ]
        return pa.concat_tables([schema.empty_table(), *tables])

    def _partials_of_partition(self, source: str, partition: int, schema: pa.Schema) -> Iterator[pa.Table]:
        partition_records = tuple(
            record for record in self.records if record.address[:2] == (source, partition)
        )
        newest_time = max(record.fields["at"] for record in partition_records)
        is_input = source in self.stage.plan.inputs
        filtered_count = (
            len(partition_records) - read_elements(self.stage.plan, partition_records).num_rows
            if is_input
            else 0
        )
        account = {"_topic": source, "_partition": partition, "_newest": newest_time}
        # The newest time counts of every record that was read, whatever steps or inputs leave out.
        yield pa.Table.from_pylist(
            [{**account, "_fate": FATE_FILTERED, "_counted": filtered_count}], schema=schema
        )
        if is_input:
            elements = build_input(self.stage, InputBatch(0, self.clock, partition_records))
            for name, value in {**account, "_fate": None, "_counted": 1}.items():
                column_type = schema.field(name).type
                other_columns = elements.drop_columns([name] if name in elements.column_names else [])
                elements = other_columns.append_column(
                    name, pa.array([value] * elements.num_rows, column_type)
                )
            yield elements.select(schema.names).cast(schema)


class GraphBench(Bench):
    """A stream of a graph in a folder."""

    def compile_plan(self) -> CompiledGraph:
        return compile_plan_graph(self.plan)

    def make_input(self, batch: InputBatch, clock: int) -> BatchInput:
        first, *other_stages = self.compile_plan().record_stages
        return GraphBatchInput(first, batch.records, clock, other_stages)
