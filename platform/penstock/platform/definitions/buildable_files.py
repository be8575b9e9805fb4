"""Selects the contracts and pipelines of which Dagster accepts every asset.

Files are checked when they are loaded. This is the second line: what a file makes Dagster refuse affects only that
file, whatever it is.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from dagster import AssetKey, AssetSpec

from penstock.ingestion.contracts import CATALOG_FOLDER, Contract
from penstock.platform.definitions.asset_keys import stream_key, topic_key
from penstock.platform.definitions.asset_specs import AssetContext, build_asset_specs
from penstock.platform.definitions.load_errors import CONTRACT_FILE, PIPELINE_FILE, LoadError
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline

log = logging.getLogger(__name__)


@dataclass
class BuildableFiles:
    """The contracts and pipelines to show, and the errors of the others."""

    contracts: list[Contract] = field(default_factory=list)
    pipelines: list[CatalogPipeline] = field(default_factory=list)
    errors: list[LoadError] = field(default_factory=list)
    _keys: set[AssetKey] = field(default_factory=set)

    def add_contract(self, contract: Contract, asset_context: AssetContext) -> None:
        """Add a contract, or its error."""
        try:
            self._accept(list(build_asset_specs([contract], [], asset_context)))
        except Exception as error:
            log.exception("Dagster refuses the contract (topic=%s)", contract.topic)
            file = CATALOG_FOLDER / f"{contract.topic}.yaml"
            self.errors.append(LoadError(CONTRACT_FILE, topic_key(contract.topic), _describe(error), file))
        else:
            self.contracts.append(contract)

    def add_pipeline(self, pipeline: CatalogPipeline, asset_context: AssetContext) -> None:
        """Add a pipeline, or its error."""
        try:
            self._accept(list(build_asset_specs([], [pipeline], asset_context)))
        except Exception as error:
            log.exception("Dagster refuses the pipeline (pipeline=%s)", pipeline.name)
            key = stream_key(pipeline.name)
            self.errors.append(LoadError(PIPELINE_FILE, key, _describe(error), pipeline.file))
        else:
            self.pipelines.append(pipeline)

    def _accept(self, specs: Sequence[AssetSpec]) -> None:
        for spec in specs:
            if spec.key in self._keys:
                raise ValueError(f"asset {spec.key.to_user_string()} is already defined by another file")
        self._keys |= {spec.key for spec in specs}


def select_buildable(
    contracts: Sequence[Contract], pipelines: Sequence[CatalogPipeline], asset_context: AssetContext
) -> BuildableFiles:
    """Return the files of which Dagster accepts every asset, and the errors of the others."""
    buildable = BuildableFiles()
    for contract in contracts:
        buildable.add_contract(contract, asset_context)
    for pipeline in pipelines:
        buildable.add_pipeline(pipeline, asset_context)
    return buildable


def _describe(error: Exception) -> str:
    return f"Dagster refuses it: {type(error).__name__}: {error}".splitlines()[0]
