"""Asset events for committed batches: one for each asset that they changed."""

from collections.abc import Iterator
from typing import Any

from dagster import AssetKey, AssetMaterialization, AssetObservation, MetadataValue

from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.stages import Plan
from penstock.platform.control.batch_rates import BatchRates
from penstock.platform.control.interval_reports import IntervalReport
from penstock.platform.control.reports import BatchSummary
from penstock.platform.definitions.asset_keys import list_plan_sinks, stream_key, table_key, topic_key

SHOWN_DECIMALS = 4
LAST_BATCH_KEY = "batch"
"""The metadata key by which the sensor finds the last reported batch."""


def stream_asset_keys(plan: Plan) -> tuple[AssetKey, ...]:
    """Return the assets that a stream's batches materialize: the stream, then its tables."""
    return (stream_key(plan.name), *(table_key(sink) for sink in list_plan_sinks(plan)))


def build_materialization(key: AssetKey, report: IntervalReport) -> AssetMaterialization:
    """Build the event of an asset after the batches of an interval."""
    return AssetMaterialization(
        key, description=_describe_batches(report.summary), metadata=_report_metadata(report)
    )


def build_idle_materialization(key: AssetKey, last_batch: int) -> AssetMaterialization:
    """Build the event of a stream without new batches; it reports zero batches, so none is counted twice."""
    metadata = {
        "records_per_second": 0.0,
        "records_read": 0,
        "rows": 0,
        "batches": 0,
        **_batch_ids_metadata(last_batch + 1, last_batch),
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
                "consumer_lag_records": summary.newest.lag_records,
            },
        )


def _describe_batches(summary: BatchSummary) -> str:
    batch_range = (
        f"batch {summary.last}" if summary.batches == 1 else f"batches {summary.first} to {summary.last}"
    )
    replaced_note = f"; a replay later replaced {summary.replaced} of them" if summary.replaced else ""
    return f"{batch_range}: {summary.read} records read, {summary.rows} rows written{replaced_note}"


def _report_metadata(report: IntervalReport) -> dict[str, Any]:
    """Return what Dagster shows and plots of an interval: first how the stream does, last what identifies it."""
    return {
        **_rate_metadata(report.rates),
        **_progress_metadata(report.summary.newest),
        **_count_metadata(report.summary),
        **_identity_metadata(report.summary),
    }


def _rate_metadata(rates: BatchRates) -> dict[str, Any]:
    """Return the rates; a figure without a base, such as a share of no records, is left out."""
    figures = {
        "records_per_second": rates.records_per_second,
        "batch_ms_p50": rates.batch_ms_p50,
        "batch_ms_p99": rates.batch_ms_p99,
        "late_share": rates.late_share,
        "invalid_share": rates.invalid_share,
    }
    return {name: round(figure, SHOWN_DECIMALS) for name, figure in figures.items() if figure is not None}


def _progress_metadata(newest: BatchRecord) -> dict[str, Any]:
    """Return how far the stream has come; the watermark and its delay are as of the newest batch."""
    progress: dict[str, Any] = {"consumer_lag_records": newest.lag_records}
    if newest.watermark_ms is not None:
        delay_ms = newest.clock_ms - newest.watermark_ms
        progress["watermark_delay_seconds"] = round(delay_ms / 1000, 1)
        progress["watermark"] = MetadataValue.timestamp(newest.watermark_ms / 1000)
    return {**progress, "committed_at": MetadataValue.timestamp(newest.commit_time_ms / 1000)}


def _count_metadata(summary: BatchSummary) -> dict[str, Any]:
    """Return the sums of the interval; counts of what most streams never have are left out while they are zero."""
    rare_counts = {
        "records_late": summary.late,
        "records_quarantined": summary.quarantined,
        "records_duplicate": summary.duplicate,
        "records_filtered": summary.filtered,
        **{f"panes_{timing}": count for timing, count in summary.panes.items()},
        "batches_replaced": summary.replaced,
    }
    return {
        "records_read": summary.read,
        "records_accepted": summary.accepted,
        "rows": summary.rows,
        **{name: count for name, count in rare_counts.items() if count},
        "state_rows": summary.newest.state_rows,
    }


def _identity_metadata(summary: BatchSummary) -> dict[str, Any]:
    newest = summary.newest
    return {
        "batches": summary.batches,
        **_batch_ids_metadata(summary.first, summary.last),
        "state": MetadataValue.json({stage: dict(size) for stage, size in newest.state.items()}),
        "offsets": MetadataValue.json(_end_offsets(newest)),
    }


def _batch_ids_metadata(first_batch: int, last_batch: int) -> dict[str, Any]:
    """Return batch ids as text: Dagster would plot numbers, and these only rise."""
    return {
        "first_batch": MetadataValue.text(str(first_batch)),
        LAST_BATCH_KEY: MetadataValue.text(str(last_batch)),
    }


def _end_offsets(record: BatchRecord) -> dict[str, dict[str, int]]:
    ends: dict[str, dict[str, int]] = {}
    for account in record.accounts:
        ends.setdefault(account.topic, {})[str(account.partition)] = account.end
    return ends
