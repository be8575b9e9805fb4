"""The sensor that tells OpenLineage of committed batches, where the settings say whom to tell."""

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
    """A sensor that sends, for each stream, what it did since it was last told of."""

    def evaluate(context: SensorEvaluationContext) -> SkipReason:
        last_sent: dict[str, int] = json.loads(context.cursor or "{}")
        sent_count = 0
        for pipeline in pipelines:
            summary = summarize_batches(
                open_store(), pipeline.name, last_sent.get(pipeline.name, BEFORE_FIRST_BATCH)
            )
            if summary is not None:
                # Its run has an id by its batches: told again after a failure, it is the same run.
                send_event(pipeline, summary)
                last_sent[pipeline.name] = summary.last
                context.update_cursor(json.dumps(last_sent))
                sent_count += 1
        return SkipReason(f"OpenLineage was told of {sent_count} streams")

    sensor = SensorDefinition(
        name="open_lineage",
        evaluation_fn=evaluate,
        minimum_interval_seconds=SENSOR_INTERVAL_S,
        default_status=DefaultSensorStatus.RUNNING,
        description="Tells OpenLineage which tables the streams made from which topics.",
    )
    return Definitions(sensors=[sensor])
