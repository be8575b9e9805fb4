"""The context of all definitions: the settings, the catalog, the control store and alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.ingestion.contracts import LoadedCatalog, load_catalog
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore, open_control_store
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline, list_catalog_pipelines
from penstock.platform.services.alerts import AlertDispatcher
from penstock.platform.settings import Settings


@dataclass(frozen=True)
class DefinitionsContext:
    """The settings, and what is loaded or opened with them at the first use, once."""

    settings: Settings

    @cached_property
    def contract_catalog(self) -> LoadedCatalog:
        """The contracts, and the errors of invalid ones."""
        return load_catalog()

    @cached_property
    def pipelines(self) -> Sequence[CatalogPipeline]:
        """The pipelines that can be loaded."""
        return tuple(list_catalog_pipelines())

    @property
    def pipeline_names(self) -> Sequence[str]:
        """The names of all pipelines, including invalid ones; except names that Dagster does not accept."""
        return tuple(name for name in catalog.pipeline_names() if catalog.is_pipeline_name(name))

    @cached_property
    def alerts(self) -> AlertDispatcher:
        """Sends alerts to the log and to the webhook of the settings."""
        return AlertDispatcher(self.settings.alerts.webhook)

    def open_store(self) -> ControlStore:
        """Return the control store. Only runs and ticks call this, so that the code location loads without it."""
        return self._store

    @cached_property
    def _store(self) -> ControlStore:
        return open_control_store(self.settings.control_url, self.settings.control_secret)
