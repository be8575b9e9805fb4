"""Everything that Dagster is told, from contracts, plans and a few settings."""

from collections.abc import Callable, Sequence

from dagster import Definitions

from penstock.ingestion.contracts import Contract
from penstock.platform.control import ControlStore
from penstock.platform.definitions.assets import Surroundings, all_assets
from penstock.platform.definitions.jobs import stream_jobs
from penstock.platform.definitions.pipeline import Pipeline
from penstock.platform.definitions.sensor import Reporter, batch_sensor


def build(
    contracts: Sequence[Contract],
    pipelines: Sequence[Pipeline],
    around: Surroundings,
    store: Callable[[], ControlStore],
    now_ms: Callable[[], int],
    report_ms: int,
) -> Definitions:
    """The definitions; `store` is called when a sensor or a job needs it, never at load."""
    plans = [pipeline.plan for pipeline in pipelines]
    return Definitions(
        assets=list(all_assets(contracts, pipelines, around)),
        jobs=list(stream_jobs([plan.name for plan in plans], store)),
        sensors=[batch_sensor(Reporter(plans, store, now_ms, report_ms))],
    )
