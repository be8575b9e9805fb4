"""The code location that Dagster loads: the shipped catalog, and the environments.

Loading it imports neither Spark nor Great Expectations, and opens no broker, control store or environment.
"""

from datetime import UTC, datetime
from functools import cache

from dagster import Definitions

from penstock.infra.environments import Catalog
from penstock.ingestion.contracts import CATALOG, contracts
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.definitions.assets import Surroundings
from penstock.platform.definitions.build import build
from penstock.platform.definitions.environments import Around, environment_definitions
from penstock.platform.definitions.pipeline import catalog_pipelines
from penstock.platform.settings import load_settings

settings = load_settings().settings


@cache
def _store() -> ControlStore:
    return open_control(settings.control_url)


def _environments() -> Definitions:
    catalog = Catalog(settings.root, settings.home)
    around = Around(catalog.open, lambda: datetime.now(UTC), settings.dagster.owner)
    return environment_definitions(catalog.names(), around)


defs = Definitions.merge(
    build(
        contracts(),
        tuple(catalog_pipelines()),
        Surroundings(settings.warehouse, settings.dagster.owner, CATALOG),
        _store,
        now_ms,
        int(settings.dagster.report_seconds * 1000),
    ),
    _environments(),
)
