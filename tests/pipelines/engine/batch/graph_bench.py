"""A stream of a whole graph. Each first stage gets its own records, after its steps."""

from collections.abc import Iterator

import pyarrow as pa
from tests.pipelines.engine.batch.stream_bench import Bench, StoredReading
from tests.pipelines.engine.operators.graph_evaluation import graph_of, input_for, read

from penstock.conformance.reference import InputBatch
from penstock.engine.batch.batch_input import ACCOUNT_SCHEMA, FATE_FILTERED, BatchInput
from penstock.engine.operators.stage_graph import CompiledGraph


class GraphReading(StoredReading):
    """The input of one batch for the first stages of a graph."""

    def inputs_of_other_stages(self) -> dict[str, StoredReading]:
        return {each.plan.name: GraphReading(each, self.records, self.clock) for each in self.others}

    def compute_partials(self) -> pa.Table:
        """Return the partials of each partition, with the count of records that the steps filter out."""
        places = sorted({record.address[:2] for record in self.records})
        schema = pa.schema([*ACCOUNT_SCHEMA, *self.stage.partial_schema])
        pieces = [piece for source, partition in places for piece in self._of(source, partition, schema)]
        return pa.concat_tables([schema.empty_table(), *pieces])

    def _of(self, source: str, partition: int, schema: pa.Schema) -> Iterator[pa.Table]:
        mine = tuple(record for record in self.records if record.address[:2] == (source, partition))
        newest = max(record.fields["at"] for record in mine)
        ours = source in self.stage.plan.inputs
        left_out = len(mine) - read(self.stage.plan, mine).num_rows if ours else 0
        told = {"_topic": source, "_partition": partition, "_newest": newest}
        # The newest time counts of every record that was read, whatever steps or inputs leave out.
        yield pa.Table.from_pylist([{**told, "_fate": FATE_FILTERED, "_counted": left_out}], schema=schema)
        if ours:
            came = input_for(self.stage, InputBatch(0, self.clock, mine))
            for name, value in {**told, "_fate": None, "_counted": 1}.items():
                kind = schema.field(name).type
                known = came.drop_columns([name] if name in came.column_names else [])
                came = known.append_column(name, pa.array([value] * came.num_rows, kind))
            yield came.select(schema.names).cast(schema)


class GraphBench(Bench):
    """A stream of a graph in a folder."""

    def ready(self) -> CompiledGraph:
        return graph_of(self.plan)

    def reading(self, batch: InputBatch, clock: int) -> BatchInput:
        first, *others = self.ready().record_stages
        return GraphReading(first, batch.records, clock, others)
