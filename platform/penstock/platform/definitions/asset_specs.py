"""The asset graph: topics, streams and tables, generated from contracts and plans."""

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

from penstock.engine.plan import Sink, Stage
from penstock.engine.storage import StoragePath, parse_storage_path
from penstock.ingestion.contracts import Contract
from penstock.platform.definitions.asset_keys import list_plan_topics, stream_key, table_key, topic_key
from penstock.platform.definitions.load_errors import CONTRACT_FILE, PIPELINE_FILE, LoadError
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.definitions.tables.column_metadata import (
    build_result_lineage,
    build_result_schema,
    build_topic_schema,
)
from penstock.platform.lineage.result_columns import side_output_name

FRESHNESS_WINDOW = timedelta(minutes=10)
"""A stream that told nothing for so long is shown as overdue: it does not run, has no host, or does not keep up.
On a silent topic the sensor tells that it is up to date."""


@dataclass(frozen=True)
class AssetContext:
    """What assets are told that neither contracts nor plans know."""

    warehouse: str
    owner: str
    contracts_folder: Path
    storage_path: StoragePath | None = None

    @property
    def tables(self) -> StoragePath:
        """Where the tables are."""
        return self.storage_path or parse_storage_path(self.warehouse)


def build_asset_specs(
    contracts: Iterable[Contract], pipelines: Iterable[CatalogPipeline], asset_context: AssetContext
) -> Iterator[AssetSpec]:
    """Every asset, topics first; a topic that no pipeline reads is shown too."""
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
    """The asset of a topic."""
    return AssetSpec(
        topic_key(contract.topic),
        description=contract.doc,
        group_name="topics",
        kinds={"kafka"},
        owners=[contract.owner or asset_context.owner],
        metadata={
            "dagster/column_schema": MetadataValue.table_schema(build_topic_schema(contract)),
            "dagster/table_name": contract.topic,
            **_code_reference(asset_context.contracts_folder / f"{contract.topic}.yaml"),
        },
    )


def stream_asset_spec(pipeline: CatalogPipeline, asset_context: AssetContext) -> AssetSpec:
    """The asset of a stream: what its host has committed."""
    return AssetSpec(
        stream_key(pipeline.name),
        deps=[topic_key(topic) for topic in list_plan_topics(pipeline.plan)],
        description=pipeline.description,
        group_name="streams",
        kinds={"spark"},
        owners=[asset_context.owner],
        freshness_policy=FreshnessPolicy.time_window(fail_window=FRESHNESS_WINDOW),
        metadata=_code_reference(pipeline.file),
    )


def invalid_asset_spec(load_error: LoadError, asset_context: AssetContext) -> AssetSpec:
    """The asset of a stream or topic whose file cannot be used: it says why, and links to the file."""
    hidden_details = _HIDDEN_DETAILS[load_error.file_kind]
    return AssetSpec(
        load_error.asset_key,
        description=f"Invalid {load_error.file_kind}; {hidden_details} not shown. {load_error.message}",
        group_name=load_error.asset_key.path[0],
        kinds={"broken"},
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
    """The asset of a table that a stream writes; `personal` are fields of topics that tell of a person."""
    key = table_key(sink)
    return AssetSpec(
        key,
        deps=[stream_key(pipeline.name)],
        description=f"{_SINK_DESCRIPTIONS[type(sink).__name__]} of {pipeline.name}. {pipeline.description}",
        group_name=key.path[0],
        kinds={"deltalake"},
        owners=[asset_context.owner],
        metadata={
            "dagster/column_schema": MetadataValue.table_schema(
                build_result_schema(pipeline.plan, stage, sink, personal_fields)
            ),
            "dagster/column_lineage": MetadataValue.column_lineage(
                build_result_lineage(pipeline.plan, stage, side_output_name(sink))
            ),
            "dagster/table_name": "/".join(key.path),
            "dagster/uri": f"{asset_context.warehouse}/{'/'.join(key.path)}",
            **_code_reference(pipeline.file),
        },
    )


_SINK_DESCRIPTIONS = {
    "PaneLog": "Every pane",
    "FinalPanes": "The final panes",
    "LatestValues": "The newest value of each key and window",
    "CompleteTableSink": "The whole result",
}


def _code_reference(file: Path | None) -> dict[str, Any]:
    """A link to the file that declares an asset."""
    if file is None:
        return {}
    with warnings.catch_warnings():
        # Links to code are beta in Dagster: a lost link would cost a click, not a record.
        warnings.simplefilter("ignore", BetaWarning)
        reference = LocalFileCodeReference(file_path=str(file), line_number=1, label=file.name)
        return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}
