"""Asset events for committed batches: one for each asset that they changed."""

from collections.abc import Iterator
from typing import Any

from dagster import AssetKey, AssetMaterialization, AssetObservation, MetadataValue

from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.stages import Plan
from penstock.platform.control.reports import BatchSummary
from penstock.platform.definitions.asset_keys import list_plan_sinks, stream_key, table_key, topic_key

LAST_BATCH_KEY = "batch"
"""The metadata key by which the sensor finds the last reported batch."""


def stream_asset_keys(plan: Plan) -> tuple[AssetKey, ...]:
    """Return the assets that a stream's batches materialize: the stream, then its tables."""
    return (stream_key(plan.name), *(table_key(sink) for sink in list_plan_sinks(plan)))


def build_materialization(key: AssetKey, summary: BatchSummary) -> AssetMaterialization:
    """Build the event of an asset after the batches of a summary; metadata has the newest batch time."""
    return AssetMaterialization(
        key, description=_describe_batches(summary), metadata=_summary_metadata(summary)
    )


def build_idle_materialization(key: AssetKey, last_batch: int) -> AssetMaterialization:
    """Build the event of a stream without new batches; it reports zero batches, so none is counted twice."""
    metadata = {
        LAST_BATCH_KEY: last_batch,
        "first_batch": last_batch + 1,
        "batches": 0,
        "rows": 0,
        "records_read": 0,
    }
    description = f"no batch since {last_batch}; the stream has a host and is up to date"
    return AssetMaterialization(key, description=description, metadata=metadata)


def build_observations(summary: BatchSummary) -> Iterator[AssetObservation]:
    """Yield the offsets that the newest batch of a summary has reached, for each topic."""
    for topic in sorted({account.topic for account in summary.newest.accounts}):
        accounts = [account for account in summary.newest.accounts if account.topic == topic]
        ends = {str(account.partition): account.end for account in accounts}
        yield AssetObservation(
            topic_key(topic),
            description=f"read by {summary.stream}",
            metadata={
                "read_by": summary.stream,
                "offsets": MetadataValue.json(ends),
                "lag_records": summary.newest.lag_records,
            },
        )


def _describe_batches(summary: BatchSummary) -> str:
    batch_range = (
        f"batch {summary.last}" if summary.batches == 1 else f"batches {summary.first} to {summary.last}"
    )
    replaced_note = f"; a replay later replaced {summary.replaced} of them" if summary.replaced else ""
    return f"{batch_range}: {summary.read} records read, {summary.rows} rows written{replaced_note}"


def _summary_metadata(summary: BatchSummary) -> dict[str, Any]:
    newest = summary.newest
    return {
        LAST_BATCH_KEY: summary.last,
        "first_batch": summary.first,
        "batches": summary.batches,
        "batches_replaced": summary.replaced,
        "rows": summary.rows,
        "records_read": summary.read,
        "records_accepted": summary.accepted,
        "records_late": summary.late,
        "records_quarantined": summary.quarantined,
        "records_duplicate": summary.duplicate,
        "records_filtered": summary.filtered,
        **{f"panes_{timing}": count for timing, count in summary.panes.items()},
        "state_rows": newest.state_rows,
        "state": MetadataValue.json({stage: dict(size) for stage, size in newest.state.items()}),
        "lag_records": newest.lag_records,
        "batch_ms_mean": round(summary.duration_ms / summary.batches, 1),
        "batch_ms_longest": round(summary.longest_ms, 1),
        "committed_at": MetadataValue.timestamp(newest.clock_ms / 1000),
        "offsets": MetadataValue.json(_end_offsets(newest)),
        **_watermark_metadata(newest),
    }


def _end_offsets(record: BatchRecord) -> dict[str, dict[str, int]]:
    ends: dict[str, dict[str, int]] = {}
    for account in record.accounts:
        ends.setdefault(account.topic, {})[str(account.partition)] = account.end
    return ends


def _watermark_metadata(record: BatchRecord) -> dict[str, Any]:
    """Return the watermark and its delay at the batch's start; empty before the first record."""
    if record.watermark_ms is None:
        return {}
    return {
        "watermark": MetadataValue.timestamp(record.watermark_ms / 1000),
        "lag_seconds": round((record.clock_ms - record.watermark_ms) / 1000, 1),
    }
