"""What OpenLineage is told: a run of a stream for each report of its batches, from its topics to its tables.

The id of a run is made from the stream and its batches, so that one which is told twice is the same run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from penstock.infra.secret import read_secret
from penstock.ingestion.contracts import Contract
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.plan import Plan, Stage
from penstock.pipelines.tables.places import result_of
from penstock.pipelines.tables.topic import FOLDER as PUBLISHED
from penstock.platform.columns import output_of
from penstock.platform.control.reports import BatchSummary
from penstock.platform.origins import origins
from penstock.platform.settings.model import LineageSettings

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent
    from openlineage.client.facet_v2 import column_lineage_dataset

PRODUCER = "urn:penstock"
"""Who tells, as a URI."""


@dataclass(frozen=True)
class Places:
    """What datasets are filed under: topics by their broker, tables by their warehouse, jobs by a name."""

    jobs: str
    brokers: str
    warehouse: str

    @property
    def topics(self) -> str:
        """The namespace of topics."""
        return f"kafka://{self.brokers.split(',')[0]}"

    @property
    def tables(self) -> str:
        """The namespace of tables: an object store's own, or this machine's files."""
        return self.warehouse if "://" in self.warehouse else "file"


def event_of(
    summary: BatchSummary,
    read: Mapping[str, int],
    written: Mapping[str, int],
    plan: Plan,
    description: str,
    contracts: Mapping[str, Contract],
    places: Places,
) -> "RunEvent":
    """Return the event that tells of some batches of a stream.

    `read` says how many records they read, by topic, and `written` how many rows they gave, by table: those that
    are not in it are told without a count. Topics that panes are published to stand there as an outcome calls them.
    """
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import documentation_job, job_type_job

    batches = f"{places.jobs}/{plan.name}/{summary.first}-{summary.last}"
    facets: dict[str, Any] = {
        "jobType": job_type_job.JobTypeJobFacet("STREAMING", "SPARK", "JOB", producer=PRODUCER),
        "documentation": documentation_job.DocumentationJobFacet(description, producer=PRODUCER),
    }
    return RunEvent(
        eventType=RunState.COMPLETE,
        eventTime=datetime.fromtimestamp(summary.newest.clock_ms / 1000, UTC).isoformat(),
        run=Run(str(uuid5(NAMESPACE_URL, batches))),
        job=Job(places.jobs, plan.name, facets),
        inputs=list(_inputs(read, plan, contracts, places)),
        outputs=list(_outputs(written, plan, places)),
        producer=PRODUCER,
    )


def client_of(settings: LineageSettings) -> "OpenLineageClient":
    """Return the official client, made for where the settings say."""
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.file import FileConfig, FileTransport
    from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport

    if settings.to.startswith("file:"):
        path = Path(settings.to.removeprefix("file:"))
        path.parent.mkdir(parents=True, exist_ok=True)
        return OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=str(path), append=True)))
    config = HttpConfig(url=settings.to)
    if settings.key:
        key = read_secret(settings.key, "The key of the receiver of lineage")
        config = HttpConfig(url=settings.to, auth=ApiKeyTokenProvider({"apiKey": key}))
    return OpenLineageClient(transport=HttpTransport(config))


def _inputs(
    read: Mapping[str, int], plan: Plan, contracts: Mapping[str, Contract], places: Places
) -> "Iterator[InputDataset]":
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.facet_v2 import input_statistics_input_dataset, schema_dataset

    for source in plan.sources:
        counted = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=read.get(topic_of(source), 0), producer=PRODUCER
        )
        facets: dict[str, Any] = {}
        if source.name in contracts:
            facets = facets_of(contracts[source.name])
        else:
            columns = [
                schema_dataset.SchemaDatasetFacetFields(each.name, each.type) for each in source.columns
            ]
            facets["schema"] = schema_dataset.SchemaDatasetFacet(columns, producer=PRODUCER)
        yield InputDataset(places.topics, topic_of(source), {"inputStatistics": counted}, facets=facets)


def facets_of(contract: Contract) -> dict[str, Any]:
    """Return what a contract says of its topic: fields and their meaning, which tell of a person, and the owner."""
    from openlineage.client.facet_v2 import ownership_dataset, schema_dataset, tags_dataset

    described = [
        schema_dataset.SchemaDatasetFacetFields(field.name, field.type, field.doc)
        for field in contract.fields
    ]
    personal = [
        tags_dataset.TagsDatasetFacetFields("class", "personal", "penstock", field.name)
        for field in contract.fields
        if field.personal
    ]
    facets: dict[str, Any] = {"schema": schema_dataset.SchemaDatasetFacet(described, producer=PRODUCER)}
    if personal:
        facets["tags"] = tags_dataset.TagsDatasetFacet(personal, producer=PRODUCER)
    if contract.owner:
        owners = [ownership_dataset.Owner(contract.owner, "OWNER")]
        facets["ownership"] = ownership_dataset.OwnershipDatasetFacet(owners, producer=PRODUCER)
    return facets


def _outputs(written: Mapping[str, int], plan: Plan, places: Places) -> "Iterator[OutputDataset]":
    from openlineage.client.event_v2 import OutputDataset

    for stage in plan.stages:
        for sink in stage.sinks:
            name = result_of(sink)
            named = name if "://" in places.warehouse else f"{places.warehouse}/{name}"
            facets: dict[str, Any] = {"columnLineage": _column_lineage(plan, stage, places, output_of(sink))}
            yield OutputDataset(places.tables, named, _counted(written.get(name)), facets=facets)
        for published in stage.topics:
            counted = _counted(written.get(f"{PUBLISHED}/{published.topic}"))
            facets = {"columnLineage": _column_lineage(plan, stage, places)}
            yield OutputDataset(places.topics, published.topic, counted, facets=facets)


def _column_lineage(
    plan: Plan, stage: Stage, places: Places, output: str | None = None
) -> "column_lineage_dataset.ColumnLineageDatasetFacet":
    from openlineage.client.facet_v2 import column_lineage_dataset

    fields = {
        column: column_lineage_dataset.Fields(
            [column_lineage_dataset.InputField(places.topics, *place) for place in sorted(origin.made)]
        )
        for column, origin in origins(plan, stage, output).items()
        if origin.made
    }
    return column_lineage_dataset.ColumnLineageDatasetFacet(fields, producer=PRODUCER)


def _counted(rows: int | None) -> dict[str, Any]:
    """How many rows a table was given, where that is known."""
    from openlineage.client.facet_v2 import output_statistics_output_dataset

    if rows is None:
        return {}
    told = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=rows, producer=PRODUCER
    )
    return {"outputStatistics": told}
