"""Definitions of the catalog: assets, checks, jobs and sensors, from contracts and plans."""

from collections.abc import Callable, Collection, Sequence

from dagster import Definitions

from penstock.core.clock import now_ms
from penstock.ingestion.contracts import CATALOG_FOLDER, Contract
from penstock.platform.control import ControlStore
from penstock.platform.definitions.asset_keys import stream_key
from penstock.platform.definitions.asset_specs import AssetContext, build_asset_specs, invalid_asset_spec
from penstock.platform.definitions.buildable_files import select_buildable
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.load_errors import (
    CONTRACT_FILE,
    PIPELINE_FILE,
    LoadError,
    build_load_error_definitions,
    find_contract_errors,
    find_pipeline_errors,
    find_suite_errors,
)
from penstock.platform.definitions.run_actions import RunActions
from penstock.platform.definitions.streams.batch_events import stream_asset_keys
from penstock.platform.definitions.streams.batch_sensor import (
    BatchReporter,
    ReportedStream,
    build_batch_sensor,
)
from penstock.platform.definitions.streams.catalog_pipelines import CatalogPipeline
from penstock.platform.definitions.streams.freshness_limits import create_freshness_monitor
from penstock.platform.definitions.streams.lifecycle_jobs import build_lifecycle_jobs
from penstock.platform.definitions.topics.archive_assets import (
    build_archive_checks,
    build_archive_specs,
    reported_archive_stream,
)
from penstock.platform.services.expectations import load_all_suites
from penstock.platform.services.stream_catalog import list_streams_without_file


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the definitions of the catalog, with every file that cannot be loaded."""
    settings, contract_catalog = context.settings, context.contract_catalog
    return build_catalog_definitions(
        contract_catalog.contracts,
        context.pipelines,
        AssetContext(
            settings.warehouse,
            settings.dagster.owner,
            CATALOG_FOLDER,
            settings.warehouse_path,
            settings.console.url,
        ),
        context.open_store,
        RunActions(settings.home),
        now_ms,
        int(settings.dagster.report_interval),
        (
            *find_pipeline_errors(),
            *find_contract_errors(contract_catalog.errors_by_topic),
            *find_suite_errors(load_all_suites().errors_by_subject),
        ),
        create_freshness_monitor(context).find_caught_up,
        list_streams_without_file(settings.home / "streams"),
    )


def build_catalog_definitions(
    contracts: Sequence[Contract],
    pipelines: Sequence[CatalogPipeline],
    asset_context: AssetContext,
    open_store: Callable[[], ControlStore],
    actions: RunActions,
    now_ms: Callable[[], int],
    report_ms: int,
    load_errors: Sequence[LoadError] = (),
    find_caught_up: Callable[[], Collection[str]] = tuple,
    removed_streams: Sequence[str] = (),
) -> Definitions:
    """Build the definitions; a sensor or job opens the control store when it needs it, never at load.

    Assets of invalid files are shown and can be started and stopped. The tables of an invalid pipeline appear after
    its file is fixed.
    """
    buildable = select_buildable(contracts, pipelines, asset_context)
    contracts, pipelines = buildable.contracts, buildable.pipelines
    load_errors = [*load_errors, *buildable.errors]
    streams = [ReportedStream(item.name, stream_asset_keys(item.plan)) for item in pipelines]
    unreadable = [item for item in load_errors if item.file_kind in (PIPELINE_FILE, CONTRACT_FILE)]
    topics = {contract.topic: contract.doc for contract in contracts}
    topics |= {item.name: "" for item in unreadable if item.file_kind == CONTRACT_FILE}
    streams += [reported_archive_stream(topic) for topic in topics]
    steerable_names = [
        *(stream.name for stream in streams),
        *(item.name for item in unreadable if item.asset_key == stream_key(item.name)),
    ]
    assets = [
        *build_asset_specs(contracts, pipelines, asset_context),
        *(invalid_asset_spec(item, asset_context) for item in unreadable),
        *build_archive_specs(topics, asset_context),
    ]
    asset_keys = {asset.key for asset in assets}
    definitions = Definitions(
        assets=assets,
        asset_checks=[build_archive_checks(list(topics), asset_context.tables)],
        jobs=list(build_lifecycle_jobs(steerable_names, open_store, actions, removed_streams)),
        sensors=[build_batch_sensor(BatchReporter(streams, open_store, now_ms, report_ms, find_caught_up))],
    )
    return Definitions.merge(
        definitions,
        build_load_error_definitions([item for item in load_errors if item.asset_key in asset_keys]),
    )
