"""The sensor that sends committed batches to OpenLineage."""

import json
from collections.abc import Callable, Sequence

from dagster import DefaultSensorStatus, Definitions, SensorDefinition, SensorEvaluationContext, SkipReason

from penstock.platform.control import ControlStore
from penstock.platform.control.reports import BatchSummary, summarize_batches
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline

SENSOR_INTERVAL_S = 60
BEFORE_FIRST_BATCH = -1
EventSender = Callable[[CatalogPipeline, BatchSummary], None]


def build_lineage_definitions(
    pipelines: Sequence[CatalogPipeline], open_store: Callable[[], ControlStore], send_event: EventSender
) -> Definitions:
    """Build a sensor that sends, for each stream, the batches since the last event."""

    def evaluate(context: SensorEvaluationContext) -> SkipReason:
        last_sent: dict[str, int] = json.loads(context.cursor or "{}")
        sent_count = 0
        for pipeline in pipelines:
            summary = summarize_batches(
                open_store(), pipeline.name, last_sent.get(pipeline.name, BEFORE_FIRST_BATCH)
            )
            if summary is not None:
                # The run id follows from the batches, so sending it again after a failure updates the same run.
                send_event(pipeline, summary)
                last_sent[pipeline.name] = summary.last
                context.update_cursor(json.dumps(last_sent))
                sent_count += 1
        return SkipReason(f"Sent OpenLineage events of {sent_count} streams")

    sensor = SensorDefinition(
        name="open_lineage",
        evaluation_fn=evaluate,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Sends OpenLineage events on which tables the streams wrote from which topics.",
    )
    return Definitions(sensors=[sensor])
