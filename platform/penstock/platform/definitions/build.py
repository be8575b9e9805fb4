"""Everything that Dagster is told, from contracts, plans and a few settings."""

from collections.abc import Callable, Sequence

from dagster import Definitions

from penstock.ingestion.contracts import Contract
from penstock.platform.control import ControlStore
from penstock.platform.definitions.archives import archive_assets, archive_checks, reported_archive
from penstock.platform.definitions.assets import Surroundings, all_assets, broken_asset
from penstock.platform.definitions.events import reported_assets
from penstock.platform.definitions.jobs import stream_jobs
from penstock.platform.definitions.pipeline import Broken, Pipeline
from penstock.platform.definitions.sensor import Reported, Reporter, batch_sensor


def build(
    contracts: Sequence[Contract],
    pipelines: Sequence[Pipeline],
    around: Surroundings,
    store: Callable[[], ControlStore],
    now_ms: Callable[[], int],
    report_ms: int,
    broken: Sequence[Broken] = (),
) -> Definitions:
    """The definitions; `store` is called when a sensor or a job needs it, never at load.

    Pipelines that are `broken` are there to be seen and steered; what they wrote is told of when they are mended.
    """
    streams = [Reported(one.name, reported_assets(one.plan)) for one in pipelines]
    streams += [reported_archive(contract.topic) for contract in contracts]
    return Definitions(
        assets=[
            *all_assets(contracts, pipelines, around),
            *(broken_asset(one, around) for one in broken),
            *archive_assets(contracts, around),
        ],
        asset_checks=[archive_checks([contract.topic for contract in contracts], around.warehouse)],
        jobs=list(stream_jobs([*(stream.name for stream in streams), *(one.name for one in broken)], store)),
        sensors=[batch_sensor(Reporter(streams, store, now_ms, report_ms))],
    )
