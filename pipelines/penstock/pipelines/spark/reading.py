"""A micro-batch as the engine reads it: one job for the partials, and one more only where single records matter."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.batch.reading import ACCOUNT_COLUMNS, LATE
from penstock.pipelines.batch.tables import QUARANTINED
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.plan.source import Source
from penstock.pipelines.spark.partials import guarded, partials, windowed
from penstock.pipelines.spark.records import judged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL = 20_000
"""Records below which one task does the whole batch: starting more costs more than they save."""


@dataclass(frozen=True)
class SparkReading:
    """The records of one micro-batch of a topic. `expected` is how many there are by their offsets."""

    raw: "DataFrame"
    source: Source
    stage: ReadyStage
    clock: int
    expected: int

    def partials(self) -> pa.Table:
        """Run the batch's job, and fetch what it says."""
        records = self._records()
        frame = partials(records.coalesce(1) if self.expected <= SMALL else records, self.stage)
        schema = pa.schema([*ACCOUNT_COLUMNS, *self.stage.partial_columns])
        return frame.toArrow().select(schema.names).cast(schema)

    def invalid(self) -> pa.Table:
        """Fetch the records that are no good, byte for byte as they are in the topic."""
        bad = self._records(bytes_too=True).where("_invalid IS NOT NULL")
        chosen = bad.selectExpr(
            "_topic AS topic",
            "_partition AS partition",
            "_offset AS offset",
            "_arrived AS arrived",
            "_key AS key",
            "_value AS value",
            "_invalid AS reason",
        )
        return _in_order(chosen.toArrow().select(QUARANTINED.names).cast(QUARANTINED))

    def late(self, windows: pa.Table) -> pa.Table:
        """Fetch the records of the windows named."""
        good = windowed(self._records(), self.stage).where("_invalid IS NULL")
        refused = self.raw.sparkSession.createDataFrame(windows)
        same = [good[name].eqNullSafe(refused[name]) for name in windows.column_names]
        fields = ", ".join(quoted(column.name) for column in self.source.columns)
        found = good.join(refused.hint("broadcast"), same, "left_semi").selectExpr(
            "_topic AS topic",
            "_partition AS partition",
            "_offset AS offset",
            "_time AS event_time",
            "window_start",
            "window_end",
            f"to_json(struct({fields})) AS record",
            *(quoted(field.name) for field in self.stage.key),
        )
        schema = pa.schema([*LATE, *self.stage.key])
        return _in_order(found.toArrow().select(schema.names).cast(schema))

    def _records(self, *, bytes_too: bool = False) -> "DataFrame":
        return guarded(judged(self.raw, self.source, bytes_too=bytes_too), self.source.watermark, self.clock)


def _in_order(rows: pa.Table) -> pa.Table:
    """By address, so that a batch that is run again writes the same file."""
    keys = ("topic", "partition", "offset", "window_start")
    return rows.sort_by([(name, "ascending") for name in keys if name in rows.column_names])
