"""Fetches single records of a micro-batch: invalid ones, late ones, and the ids of all."""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.batch_input import FATE_QUARANTINED, LATE_RECORD_SCHEMA, UnprovenRecordsError
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.record_schemas import QUARANTINED_RECORD_SCHEMA
from penstock.engine.dedup.duplicates import RECORD_IDS_SCHEMA
from penstock.engine.definition.predicates import quote_column
from penstock.engine.spark.aggregate.constant_columns import fetch_rows
from penstock.engine.spark.aggregate.partials import assign_windows
from penstock.engine.spark.batch_records import BatchRecords
from penstock.engine.spark.parse.dedup_ids import compute_record_ids
from penstock.engine.spark.parse.input_columns import select_input
from penstock.engine.spark.parse.suspects import UNPROVEN, RulesByTopic, collect_rules, judge_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fetch_invalid_records(batch: BatchRecords) -> pa.Table:
    """Fetch the invalid records as they are in the topic; raise UnprovenRecordsError if one is valid."""
    invalid_rows = batch.load(with_bytes=True).where(f"_fate = '{FATE_QUARANTINED}'")
    quarantine_rows = invalid_rows.selectExpr(
        "_topic AS topic",
        "_partition AS partition",
        "_offset AS offset",
        "_arrived AS arrived",
        "_key AS key",
        "_value AS value",
        "_invalid AS reason",
    )
    invalid_records = _fetch_by_address(quarantine_rows, QUARANTINED_RECORD_SCHEMA)
    return _judge_unproven(invalid_records, collect_rules(batch.sources, batch.writer_schemas))


def _judge_unproven(invalid_records: pa.Table, rules_by_topic: RulesByTopic) -> pa.Table:
    """Return the records with the reasons that the judge gives."""
    reasons = invalid_records.column("reason").to_pylist()
    if UNPROVEN not in reasons:
        return invalid_records
    topics, values = (invalid_records.column(name).to_pylist() for name in ("topic", "value"))
    for index, reason in enumerate(reasons):
        if reason == UNPROVEN:
            verdict = judge_value(values[index], rules_by_topic.get(topics[index]))
            if verdict.reason is None:
                raise UnprovenRecordsError
            reasons[index] = verdict.reason
    column_number = invalid_records.schema.get_field_index("reason")
    return invalid_records.set_column(
        column_number, invalid_records.schema.field(column_number), pa.array(reasons, pa.string())
    )


def fetch_late_records(batch: BatchRecords, windows: pa.Table) -> pa.Table:
    """Fetch the records of these windows of the stage."""
    windowed_records = assign_windows(batch.apply_steps(batch.load(), batch.stage), batch.stage)
    late_windows = batch.raw.sparkSession.createDataFrame(windows)
    join_conditions = [windowed_records[name].eqNullSafe(late_windows[name]) for name in windows.column_names]
    internal = {
        *windows.column_names[-2:],
        *(name for name in windowed_records.columns if name.startswith("_")),
    }
    fields = ", ".join(quote_column(name) for name in windowed_records.columns if name not in internal)
    late_records = windowed_records.join(
        late_windows.hint("broadcast"), join_conditions, "left_semi"
    ).selectExpr(
        "_topic AS topic",
        "_partition AS partition",
        "_offset AS offset",
        "_time AS event_time",
        "window_start",
        "window_end",
        f"to_json(struct({fields})) AS record",
        *(quote_column(field.name) for field in batch.stage.key),
    )
    return _fetch_by_address(late_records, pa.schema([*LATE_RECORD_SCHEMA, *batch.stage.key]))


def fetch_record_ids(batch: BatchRecords) -> pa.Table:
    """Fetch the ids of valid records; none for inputs without deduplication."""
    tables = [RECORD_IDS_SCHEMA.empty_table()]
    for source in batch.sources:
        if source.deduplication is not None:
            topic_records = batch.load().where(f"_topic = '{topic_of(source)}'")
            source_records = select_input(topic_records, source, batch.sources)
            ids = compute_record_ids(source_records, source, source.deduplication)
            tables.append(fetch_rows(ids, RECORD_IDS_SCHEMA, {}))
    return pa.concat_tables(tables)


def _fetch_by_address(frame: "DataFrame", schema: pa.Schema) -> pa.Table:
    """Fetch rows sorted by address, so that a batch that runs again writes the same file."""
    rows = frame.toArrow().select(schema.names).cast(schema)
    sort_columns = ("topic", "partition", "offset", "window_start")
    return rows.sort_by([(name, "ascending") for name in sort_columns if name in schema.names])
