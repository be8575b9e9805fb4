"""OpenLineage events: one run for each reported range of a stream's batches, from its topics to its tables.

The run ID is derived from the stream and the batch range, so reporting a range twice gives the same run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from penstock.core.secret import read_secret
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.stages import Plan, Stage
from penstock.ingestion.contracts import Contract
from penstock.platform.control.reports import BatchSummary
from penstock.platform.lineage.column_origins import trace_column_origins
from penstock.platform.settings.model import LineageSettings

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent
    from openlineage.client.facet_v2 import column_lineage_dataset

PRODUCER_URI = "urn:penstock"
"""The producer of the events, as a URI."""


@dataclass(frozen=True)
class DatasetNamespaces:
    """The namespaces of datasets and jobs: topics by broker, tables by warehouse, jobs by name."""

    job_namespace: str
    brokers: str
    warehouse: str

    @property
    def topic_namespace(self) -> str:
        """The namespace of topics."""
        return f"kafka://{self.brokers.split(',')[0]}"

    @property
    def table_namespace(self) -> str:
        """The namespace of tables: the object store, or `file` for this machine."""
        return self.warehouse if "://" in self.warehouse else "file"


def build_run_event(
    summary: BatchSummary,
    records_read: Mapping[str, int],
    rows_written: Mapping[str, int],
    plan: Plan,
    description: str,
    contracts_by_topic: Mapping[str, Contract],
    namespaces: DatasetNamespaces,
) -> "RunEvent":
    """Return the run event for a range of a stream's batches.

    `records_read` has record counts by topic, and `rows_written` row counts by table. A table without a count is
    reported without statistics. Topics with published panes have the names that a batch outcome gives them.
    """
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import documentation_job, job_type_job

    run_key = f"{namespaces.job_namespace}/{plan.name}/{summary.first}-{summary.last}"
    facets: dict[str, Any] = {
        "jobType": job_type_job.JobTypeJobFacet("STREAMING", "SPARK", "JOB", producer=PRODUCER_URI),
        "documentation": documentation_job.DocumentationJobFacet(description, producer=PRODUCER_URI),
    }
    return RunEvent(
        eventType=RunState.COMPLETE,
        eventTime=datetime.fromtimestamp(summary.newest.clock_ms / 1000, UTC).isoformat(),
        run=Run(str(uuid5(NAMESPACE_URL, run_key))),
        job=Job(namespaces.job_namespace, plan.name, facets),
        inputs=list(_build_inputs(records_read, plan, contracts_by_topic, namespaces)),
        outputs=list(_build_outputs(rows_written, plan, namespaces)),
        producer=PRODUCER_URI,
    )


def create_client(settings: LineageSettings) -> "OpenLineageClient":
    """Return the OpenLineage client for the configured file or URL."""
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.file import FileConfig, FileTransport
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport

    if settings.to.startswith("file:"):
        path = Path(settings.to.removeprefix("file:"))
        path.parent.mkdir(parents=True, exist_ok=True)
        return OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=str(path), append=True)))
    config = HttpConfig(url=settings.to)
    if settings.key:
        key = read_secret(settings.key, "The API key of the OpenLineage receiver")
        config = HttpConfig(url=settings.to, auth=ApiKeyTokenProvider({"apiKey": key.reveal()}))
    return OpenLineageClient(transport=HttpTransport(config))


def _build_inputs(
    records_read: Mapping[str, int],
    plan: Plan,
    contracts_by_topic: Mapping[str, Contract],
    namespaces: DatasetNamespaces,
) -> "Iterator[InputDataset]":
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.facet_v2 import input_statistics_input_dataset, schema_dataset

    for source in plan.sources:
        statistics_facet = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=records_read.get(topic_of(source), 0), producer=PRODUCER_URI
        )
        facets: dict[str, Any] = {}
        if source.name in contracts_by_topic:
            facets = contract_facets(contracts_by_topic[source.name])
        else:
            columns = [
                schema_dataset.SchemaDatasetFacetFields(column.name, column.type) for column in source.columns
            ]
            facets["schema"] = schema_dataset.SchemaDatasetFacet(columns, producer=PRODUCER_URI)
        yield InputDataset(
            namespaces.topic_namespace, topic_of(source), {"inputStatistics": statistics_facet}, facets=facets
        )


def contract_facets(contract: Contract) -> dict[str, Any]:
    """Return the facets of a contract: the schema with descriptions, personal fields as tags, and the owner."""
    from openlineage.client.facet_v2 import ownership_dataset, schema_dataset, tags_dataset

    schema_fields = [
        schema_dataset.SchemaDatasetFacetFields(field.name, field.type, field.doc)
        for field in contract.fields
    ]
    personal_tags = [
        tags_dataset.TagsDatasetFacetFields("class", "personal", "penstock", field.name)
        for field in contract.fields
        if field.personal
    ]
    facets: dict[str, Any] = {
        "schema": schema_dataset.SchemaDatasetFacet(schema_fields, producer=PRODUCER_URI)
    }
    if personal_tags:
        facets["tags"] = tags_dataset.TagsDatasetFacet(personal_tags, producer=PRODUCER_URI)
    if contract.owner:
        owners = [ownership_dataset.Owner(contract.owner, "OWNER")]
        facets["ownership"] = ownership_dataset.OwnershipDatasetFacet(owners, producer=PRODUCER_URI)
    return facets


def _build_outputs(
    rows_written: Mapping[str, int], plan: Plan, namespaces: DatasetNamespaces
) -> "Iterator[OutputDataset]":
    from openlineage.client.event_v2 import OutputDataset

    for stage in plan.stages:
        for sink in stage.sinks:
            table_path = sink.path
            dataset_name = (
                table_path if "://" in namespaces.warehouse else f"{namespaces.warehouse}/{table_path}"
            )
            facets: dict[str, Any] = {
                "columnLineage": _build_column_lineage(plan, stage, namespaces, sink.output)
            }
            yield OutputDataset(
                namespaces.table_namespace,
                dataset_name,
                _output_statistics(rows_written.get(table_path)),
                facets=facets,
            )
        for changelog_topic in stage.topics:
            statistics_facets = _output_statistics(rows_written.get(changelog_topic.path))
            facets = {"columnLineage": _build_column_lineage(plan, stage, namespaces)}
            yield OutputDataset(
                namespaces.topic_namespace, changelog_topic.name, statistics_facets, facets=facets
            )


def _build_column_lineage(
    plan: Plan, stage: Stage, namespaces: DatasetNamespaces, output: str | None = None
) -> "column_lineage_dataset.ColumnLineageDatasetFacet":
    from openlineage.client.facet_v2 import column_lineage_dataset

    fields = {
        column: column_lineage_dataset.Fields(
            [
                column_lineage_dataset.InputField(namespaces.topic_namespace, *source_field)
                for source_field in sorted(origin.source_fields)
            ]
        )
        for column, origin in trace_column_origins(plan, stage, output).items()
        if origin.source_fields
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields, producer=PRODUCER_URI)


def _output_statistics(row_count: int | None) -> dict[str, Any]:
    """Return the statistics facet of a table; empty if the row count is unknown."""
    from openlineage.client.facet_v2 import output_statistics_output_dataset

    if row_count is None:
        return {}
    facet = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=row_count, producer=PRODUCER_URI
    )
    return {"outputStatistics": facet}
