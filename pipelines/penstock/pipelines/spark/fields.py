"""The types that a record's fields have after the steps before the window, as Spark tells them."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.plan.source import Source
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.used import refuse_other_names
from penstock.pipelines.spark.inputs import refuse_one_topic_twice
from penstock.pipelines.spark.partials import guarded
from penstock.pipelines.spark.records import KAFKA_SCHEMA, judged
from penstock.pipelines.spark.steps import stepped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FieldTypes:
    """Asks Spark, once for each combination of sources and steps. No record is read for it."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._known: dict[Hashable, Mapping[str, pa.DataType]] = {}

    def of(self, plan: Plan) -> Mapping[str, Mapping[str, pa.DataType]]:
        """The fields that each first stage of a plan finds after its steps, by the stage's name."""
        return {stage.name: self.after(plan.sources, stage) for stage in plan.firsts}

    def after(self, sources: tuple[Source, ...], stage: Stage) -> Mapping[str, pa.DataType]:
        """The fields that a stage finds in records of these sources after its steps."""
        asked = (sources, stage.inputs, stage.prepared, stage.steps)
        if asked not in self._known:
            self._known[asked] = self._told(sources, stage)
        return self._known[asked]

    def _told(self, sources: tuple[Source, ...], stage: Stage) -> Mapping[str, pa.DataType]:
        from pyspark.sql.pandas.types import to_arrow_schema

        refuse_one_topic_twice(sources)
        refuse_other_names(stage, [source for source in sources if source.name in stage.inputs])
        raw = self._session.createDataFrame([], KAFKA_SCHEMA)
        good = guarded(judged(raw, sources), sources, clock=0)
        schema = to_arrow_schema(stepped(good, stage, sources).schema, timezone="UTC")
        return {field.name: field.type for field in schema}
