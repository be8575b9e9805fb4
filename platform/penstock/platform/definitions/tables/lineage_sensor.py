"""The sensor that sends committed batches to OpenLineage."""

import json
from collections.abc import Callable, Sequence

from dagster import DefaultSensorStatus, Definitions, SensorDefinition, SensorEvaluationContext, SkipReason

from penstock.platform.control import ControlStore
from penstock.platform.control.reports import (
    BatchSummary,
    count_reads_by_topic,
    count_result_rows,
    summarize_batches,
)
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.lineage.openlineage import DatasetNamespaces, build_run_event, create_client
from penstock.platform.services.row_counts import count_rows_written

SENSOR_INTERVAL_S = 60
BEFORE_FIRST_BATCH = -1
EventSender = Callable[[CatalogPipeline, BatchSummary], None]


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the sensor if the settings name a receiver of the events."""
    settings = context.settings
    if not settings.lineage.to:
        return Definitions()
    namespaces = DatasetNamespaces(
        settings.lineage.namespace, settings.kafka.bootstrap_servers, settings.warehouse
    )
    contracts_by_topic = {contract.topic: contract for contract in context.contract_catalog.contracts}

    def send_event(pipeline: CatalogPipeline, summary: BatchSummary) -> None:
        store = context.open_store()
        records_read = count_reads_by_topic(store, summary)
        counted_rows = count_rows_written(settings.warehouse_path, pipeline.plan, summary.first, summary.last)
        event = build_run_event(
            summary,
            records_read,
            {**count_result_rows(store, summary), **counted_rows},
            pipeline.plan,
            pipeline.description,
            contracts_by_topic,
            namespaces,
        )
        create_client(settings.lineage).emit(event)

    return build_lineage_definitions(context.pipelines, context.open_store, send_event)


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
