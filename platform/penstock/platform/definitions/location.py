"""The code location that Dagster loads: the definitions of the shipped catalog.

Loading it imports neither Spark nor Great Expectations, and opens neither broker nor control store.
"""

from functools import cache

from penstock.ingestion.contracts import CATALOG, contracts
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore, open_control
from penstock.platform.definitions.assets import Surroundings
from penstock.platform.definitions.build import build
from penstock.platform.definitions.pipeline import catalog_pipelines
from penstock.platform.settings import load_settings

settings = load_settings().settings


@cache
def _store() -> ControlStore:
    return open_control(settings.control_url)


defs = build(
    contracts(),
    tuple(catalog_pipelines()),
    Surroundings(settings.warehouse, settings.dagster.owner, CATALOG),
    _store,
    now_ms,
    int(settings.dagster.report_seconds * 1000),
)
