"""The sensor that tells OpenLineage of committed batches, where the settings say whom to tell."""

import json
from collections.abc import Callable, Sequence

from dagster import DefaultSensorStatus, Definitions, SensorDefinition, SensorEvaluationContext, SkipReason

from penstock.platform.control import ControlStore
from penstock.platform.control.reports import BatchSummary, summarise
from penstock.platform.definitions.pipeline import Pipeline

EVERY_SECONDS = 60
FROM_THE_START = -1
Send = Callable[[Pipeline, BatchSummary], None]


def lineage_definitions(
    pipelines: Sequence[Pipeline], store: Callable[[], ControlStore], send: Send
) -> Definitions:
    """A sensor that sends, for each stream, what it did since it was last told of."""

    def evaluate(context: SensorEvaluationContext) -> SkipReason:
        told: dict[str, int] = json.loads(context.cursor or "{}")
        sent = 0
        for pipeline in pipelines:
            summary = summarise(store(), pipeline.name, told.get(pipeline.name, FROM_THE_START))
            if summary is not None:
                # Its run has an id by its batches: told again after a failure, it is the same run.
                send(pipeline, summary)
                told[pipeline.name] = summary.last
                context.update_cursor(json.dumps(told))
                sent += 1
        return SkipReason(f"OpenLineage was told of {sent} streams")

    sensor = SensorDefinition(
        name="open_lineage",
        evaluation_fn=evaluate,
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description="Tells OpenLineage which tables the streams made from which topics.",
    )
    return Definitions(sensors=[sensor])
