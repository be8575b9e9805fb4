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

from penstock.ingestion.contracts import Contract
from penstock.pipelines.plan import Sink, Stage
from penstock.pipelines.store import Place, place_of
from penstock.platform.columns import output_of
from penstock.platform.definitions.broken import CONTRACT, PIPELINE, Broken
from penstock.platform.definitions.columns import result_columns, result_lineage, topic_columns
from penstock.platform.definitions.names import stream_key, table_key, topic_key, topics_of
from penstock.platform.definitions.pipeline import Pipeline

STALE_AFTER = timedelta(minutes=10)
"""A stream that told nothing for so long is shown as overdue: it does not run, has no host, or does not keep up.
On a silent topic the sensor tells that it is up to date."""


@dataclass(frozen=True)
class Surroundings:
    """What assets are told that neither contracts nor plans know."""

    warehouse: str
    owner: str
    contract_files: Path
    place: Place | None = None

    @property
    def tables(self) -> Place:
        """Where the tables are."""
        return self.place or place_of(self.warehouse)


def all_assets(
    contracts: Iterable[Contract], pipelines: Iterable[Pipeline], around: Surroundings
) -> Iterator[AssetSpec]:
    """Every asset, topics first; a topic that no pipeline reads is shown too."""
    personal = []
    for contract in contracts:
        personal += [(contract.topic, field.name) for field in contract.fields if field.personal]
        yield topic_asset(contract, around)
    for pipeline in pipelines:
        yield stream_asset(pipeline, around)
        for stage in pipeline.plan.stages:
            yield from (table_asset(pipeline, stage, sink, around, personal) for sink in stage.sinks)


def topic_asset(contract: Contract, around: Surroundings) -> AssetSpec:
    """The asset of a topic."""
    return AssetSpec(
        topic_key(contract.topic),
        description=contract.doc,
        group_name="topics",
        kinds={"kafka"},
        owners=[contract.owner or around.owner],
        metadata={
            "dagster/column_schema": MetadataValue.table_schema(topic_columns(contract)),
            "dagster/table_name": contract.topic,
            **_written_in(around.contract_files / f"{contract.topic}.yaml"),
        },
    )


def stream_asset(pipeline: Pipeline, around: Surroundings) -> AssetSpec:
    """The asset of a stream: what its host has committed."""
    return AssetSpec(
        stream_key(pipeline.name),
        deps=[topic_key(topic) for topic in topics_of(pipeline.plan)],
        description=pipeline.description,
        group_name="streams",
        kinds={"spark"},
        owners=[around.owner],
        freshness_policy=FreshnessPolicy.time_window(fail_window=STALE_AFTER),
        metadata=_written_in(pipeline.file),
    )


def broken_asset(broken: Broken, around: Surroundings) -> AssetSpec:
    """The asset of a stream or topic whose file cannot be used: it says why, and links to the file."""
    return AssetSpec(
        broken.asset,
        description=f"Its {broken.what} cannot be used, so {_UNSAID[broken.what]} not shown. {broken.problem}",
        group_name=broken.asset.path[0],
        kinds={"broken"},
        owners=[around.owner],
        metadata=_written_in(broken.file),
    )


_UNSAID = {PIPELINE: "its tables are", CONTRACT: "the fields of its records are"}


def table_asset(
    pipeline: Pipeline, stage: Stage, sink: Sink, around: Surroundings, personal: Collection[tuple[str, str]]
) -> AssetSpec:
    """The asset of a table that a stream writes; `personal` are fields of topics that tell of a person."""
    key = table_key(sink)
    return AssetSpec(
        key,
        deps=[stream_key(pipeline.name)],
        description=f"{_WHAT[type(sink).__name__]} of {pipeline.name}. {pipeline.description}",
        group_name=key.path[0],
        kinds={"deltalake"},
        owners=[around.owner],
        metadata={
            "dagster/column_schema": MetadataValue.table_schema(
                result_columns(pipeline.plan, stage, sink, personal)
            ),
            "dagster/column_lineage": MetadataValue.column_lineage(
                result_lineage(pipeline.plan, stage, output_of(sink))
            ),
            "dagster/table_name": "/".join(key.path),
            "dagster/uri": f"{around.warehouse}/{'/'.join(key.path)}",
            **_written_in(pipeline.file),
        },
    )


_WHAT = {
    "PaneLog": "Every pane",
    "FinalPanes": "The final panes",
    "LatestValues": "The newest value of each key and window",
    "CompleteTable": "The whole result",
}


def _written_in(file: Path | None) -> dict[str, Any]:
    """A link to the file that declares an asset."""
    if file is None:
        return {}
    with warnings.catch_warnings():
        # Links to code are beta in Dagster: a lost link would cost a click, not a record.
        warnings.simplefilter("ignore", BetaWarning)
        reference = LocalFileCodeReference(file_path=str(file), line_number=1, label=file.name)
        return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}
