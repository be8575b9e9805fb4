"""Infers the types of a record's fields after the steps before the window, with Spark's analyzer."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.errors import DefinitionError, UserCodeError
from penstock.engine.plan.field_usage import refuse_renamed_inputs
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.spark.aggregate.event_times import judge_event_times
from penstock.engine.spark.parse.input_columns import refuse_duplicate_topics
from penstock.engine.spark.parse.records import KAFKA_SOURCE_DDL, parse_records
from penstock.engine.spark.transform.steps import apply_stage_steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FieldTypeResolver:
    """Infers types once for each combination of sources and steps. It reads no records."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._resolved: dict[Hashable, Mapping[str, pa.DataType]] = {}

    def resolve_plan(self, plan: Plan) -> Mapping[str, Mapping[str, pa.DataType]]:
        """Return the field types after the steps of each source stage, by the stage's name."""
        return {stage.name: self.resolve_stage(plan.sources, stage) for stage in plan.source_stages}

    def resolve_stage(self, sources: tuple[PlanSource, ...], stage: Stage) -> Mapping[str, pa.DataType]:
        """Return the field types of records of these sources after the steps of a stage."""
        cache_key = (sources, stage.inputs, stage.input_steps, stage.steps)
        if cache_key not in self._resolved:
            self._resolved[cache_key] = self._infer_types(sources, stage)
        return self._resolved[cache_key]

    def _infer_types(self, sources: tuple[PlanSource, ...], stage: Stage) -> Mapping[str, pa.DataType]:
        from pyspark.sql.pandas.types import to_arrow_schema

        refuse_duplicate_topics(sources)
        refuse_renamed_inputs(stage, [source for source in sources if source.name in stage.inputs])
        raw = self._session.createDataFrame([], KAFKA_SOURCE_DDL)
        included = judge_event_times(parse_records(raw, sources), sources, clock=0)
        try:
            frame = apply_stage_steps(included, stage, sources)
        except UserCodeError as error:
            # The frame is empty, so the function fails for every batch.
            raise DefinitionError("steps", str(error), "Correct the function") from error
        schema = to_arrow_schema(frame.schema, timezone="UTC")
        return {field.name: field.type for field in schema}
