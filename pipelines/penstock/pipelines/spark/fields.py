"""The types that a record's fields have after the steps before the window, as Spark tells them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.plan.source import Source
from penstock.pipelines.plan.steps import Step
from penstock.pipelines.spark.inputs import refuse_one_topic_twice
from penstock.pipelines.spark.partials import guarded
from penstock.pipelines.spark.records import KAFKA_SCHEMA, judged
from penstock.pipelines.spark.steps import applied

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FieldTypes:
    """Asks Spark, once for each combination of sources and steps. No record is read for it."""

    def __init__(self, session: "SparkSession") -> None:
        self._session = session
        self._known: dict[tuple[tuple[Source, ...], tuple[Step, ...]], Mapping[str, pa.DataType]] = {}

    def after(self, sources: tuple[Source, ...], steps: Sequence[Step]) -> Mapping[str, pa.DataType]:
        """The fields of records of these sources after these steps."""
        asked = (sources, tuple(steps))
        if asked not in self._known:
            self._known[asked] = self._told(*asked)
        return self._known[asked]

    def _told(self, sources: tuple[Source, ...], steps: tuple[Step, ...]) -> Mapping[str, pa.DataType]:
        from pyspark.sql.pandas.types import to_arrow_schema

        refuse_one_topic_twice(sources)
        raw = self._session.createDataFrame([], KAFKA_SCHEMA)
        good = guarded(judged(raw, sources), sources, clock=0)
        schema = to_arrow_schema(applied(good, steps).schema, timezone="UTC")
        return {field.name: field.type for field in schema}
