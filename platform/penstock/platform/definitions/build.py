"""Everything that Dagster is told, from contracts, plans and a few settings."""

from collections.abc import Callable, Collection, Sequence

from dagster import Definitions

from penstock.ingestion.contracts import Contract
from penstock.platform.control import ControlStore
from penstock.platform.definitions.archives import archive_assets, archive_checks, reported_archive
from penstock.platform.definitions.assets import Surroundings, all_assets, broken_asset
from penstock.platform.definitions.broken import CONTRACT, PIPELINE, Broken, broken_definitions
from penstock.platform.definitions.events import reported_assets
from penstock.platform.definitions.jobs import stream_jobs
from penstock.platform.definitions.pipeline import Pipeline
from penstock.platform.definitions.sensor import Reported, Reporter, batch_sensor


def build(
    contracts: Sequence[Contract],
    pipelines: Sequence[Pipeline],
    around: Surroundings,
    store: Callable[[], ControlStore],
    now_ms: Callable[[], int],
    report_ms: int,
    broken: Sequence[Broken] = (),
    keeping_up: Callable[[], Collection[str]] = tuple,
) -> Definitions:
    """The definitions; `store` is called when a sensor or a job needs it, never at load.

    What is `broken` is there to be seen and steered; the tables of a broken pipeline are told of when it is mended,
    and so is a suite of a table that is not shown.
    """
    streams = [Reported(one.name, reported_assets(one.plan)) for one in pipelines]
    unread = [one for one in broken if one.what in (PIPELINE, CONTRACT)]
    topics = {contract.topic: contract.doc for contract in contracts}
    topics |= {one.name: "" for one in unread if one.what == CONTRACT}
    streams += [reported_archive(topic) for topic in topics]
    steered = [*(stream.name for stream in streams), *(one.name for one in unread if one.what == PIPELINE)]
    assets = [
        *all_assets(contracts, pipelines, around),
        *(broken_asset(one, around) for one in unread),
        *archive_assets(topics, around),
    ]
    shown = {asset.key for asset in assets}
    made = Definitions(
        assets=assets,
        asset_checks=[archive_checks(list(topics), around.tables)],
        jobs=list(stream_jobs(steered, store)),
        sensors=[batch_sensor(Reporter(streams, store, now_ms, report_ms, keeping_up))],
    )
    return Definitions.merge(made, broken_definitions([one for one in broken if one.asset in shown]))
