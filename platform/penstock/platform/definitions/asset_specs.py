"""Asset specs of topics, streams and tables, generated from contracts and plans."""

import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from dagster import (
    AssetSpec,
    BetaWarning,
    CodeReferencesMetadataValue,
    FreshnessPolicy,
    LocalFileCodeReference,
    MetadataValue,
)

from penstock.engine.plan.sinks import Sink
from penstock.engine.plan.stages import Stage
from penstock.engine.storage import StoragePath, parse_storage_path
from penstock.engine.tables.table_comments import TABLE_DESCRIPTIONS
from penstock.ingestion.contracts import Contract
from penstock.platform.definitions.asset_keys import list_plan_topics, stream_key, table_key, topic_key
from penstock.platform.definitions.load_errors import CONTRACT_FILE, PIPELINE_FILE, LoadError
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.definitions.tables.column_metadata import (
    build_result_lineage,
    build_result_schema,
    build_topic_schema,
)

FRESHNESS_WINDOW = timedelta(minutes=10)
"""A stream without a report for this long is overdue: it does not run, has no host, or does not keep up.
For a stream on an idle topic, the batch sensor reports that it is up to date."""


WHICH_ROWS_COUNT = "`pipelines/docs/which_rows_count.md` says how to read and sum it."


@dataclass(frozen=True)
class AssetContext:
    """What asset specs need besides contracts and plans."""

    warehouse: str
    owner: str
    contracts_folder: Path
    storage_path: StoragePath | None = None
    console_url: str = ""
    """The address of the console, with a slash at its end; assets have no link to it without one."""

    @property
    def tables(self) -> StoragePath:
        """Location of the tables."""
        return self.storage_path or parse_storage_path(self.warehouse)


def build_asset_specs(
    contracts: Iterable[Contract], pipelines: Iterable[CatalogPipeline], asset_context: AssetContext
) -> Iterator[AssetSpec]:
    """Yield every asset, topics first; topics that no pipeline reads are included."""
    personal_fields = []
    for contract in contracts:
        personal_fields += [(contract.topic, field.name) for field in contract.fields if field.personal]
        yield topic_asset_spec(contract, asset_context)
    for pipeline in pipelines:
        yield stream_asset_spec(pipeline, asset_context)
        for stage in pipeline.plan.stages:
            yield from (
                table_asset_spec(pipeline, stage, sink, asset_context, personal_fields)
                for sink in stage.sinks
            )


def topic_asset_spec(contract: Contract, asset_context: AssetContext) -> AssetSpec:
    """Return the asset of a topic."""
    return AssetSpec(
        topic_key(contract.topic),
        description=contract.doc,
        group_name="topics",
        kinds={"kafka"},
        owners=[contract.owner or asset_context.owner],
        metadata={
            "dagster/column_schema": MetadataValue.table_schema(build_topic_schema(contract)),
            "dagster/table_name": contract.topic,
            **link_to_console(asset_context, f"topics/{contract.topic}"),
            **_code_reference(asset_context.contracts_folder / f"{contract.topic}.yaml"),
        },
    )


def stream_asset_spec(pipeline: CatalogPipeline, asset_context: AssetContext) -> AssetSpec:
    """Return the asset of a stream, which stands for its committed batches."""
    return AssetSpec(
        stream_key(pipeline.name),
        deps=[topic_key(topic) for topic in list_plan_topics(pipeline.plan)],
        description=pipeline.description,
        group_name="streams",
        kinds={"spark"},
        owners=[asset_context.owner],
        freshness_policy=FreshnessPolicy.time_window(fail_window=FRESHNESS_WINDOW),
        metadata={
            **link_to_console(asset_context, f"streams/{pipeline.name}"),
            **_code_reference(pipeline.file),
        },
    )


def invalid_asset_spec(load_error: LoadError, asset_context: AssetContext) -> AssetSpec:
    """Return the asset of a stream or topic with an invalid file; it shows the error and links to the file."""
    hidden_details = _HIDDEN_DETAILS[load_error.file_kind]
    return AssetSpec(
        load_error.asset_key,
        description=f"Invalid {load_error.file_kind}; {hidden_details} not shown. {load_error.message}",
        group_name=load_error.asset_key.path[0],
        kinds={"invalid"},
        owners=[asset_context.owner],
        metadata=_code_reference(load_error.file),
    )


_HIDDEN_DETAILS = {PIPELINE_FILE: "its tables are", CONTRACT_FILE: "the fields of its records are"}


def table_asset_spec(
    pipeline: CatalogPipeline,
    stage: Stage,
    sink: Sink,
    asset_context: AssetContext,
    personal_fields: Collection[tuple[str, str]],
) -> AssetSpec:
    """Return the asset of a table; `personal_fields` are (topic, field) pairs that hold personal data."""
    key, content = table_key(sink), sink.describe_content()
    return AssetSpec(
        key,
        deps=[stream_key(pipeline.name)],
        description="\n\n".join(
            filter(
                None,
                (
                    f"{content[0].upper()}{content[1:]} of {pipeline.name}. {pipeline.description}",
                    TABLE_DESCRIPTIONS.get(sink.folder),
                    WHICH_ROWS_COUNT,
                ),
            )
        ),
        group_name=key.path[0],
        kinds={"deltalake"} if sink.is_delta_table else set(),
        owners=[asset_context.owner],
        metadata={
            "dagster/column_schema": MetadataValue.table_schema(
                build_result_schema(pipeline.plan, stage, sink, personal_fields)
            ),
            "dagster/column_lineage": MetadataValue.column_lineage(
                build_result_lineage(pipeline.plan, stage, sink.output)
            ),
            "dagster/table_name": "/".join(key.path),
            "dagster/uri": f"{asset_context.warehouse}/{'/'.join(key.path)}",
            **(link_to_console(asset_context, f"tables/{'/'.join(key.path)}") if sink.is_delta_table else {}),
            **_code_reference(pipeline.file),
        },
    )


def link_to_console(asset_context: AssetContext, path: str) -> dict[str, Any]:
    """Return metadata that links to a page of the console."""
    url = asset_context.console_url
    return {"console": MetadataValue.url(f"{url}{path}")} if url else {}


def _code_reference(file: Path | None) -> dict[str, Any]:
    """Return metadata that links to the file that declares an asset."""
    if file is None:
        return {}
    with warnings.catch_warnings():
        # Links to code are beta in Dagster; losing them would lose no data.
        warnings.simplefilter("ignore", BetaWarning)
        reference = LocalFileCodeReference(file_path=str(file), line_number=1, label=file.name)
        return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}
