"""Operations of running streams: replays, upgrades, backfills, maintenance, freshness and alerts."""

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

from dagster import Definitions

from penstock.core.clock import now_ms
from penstock.engine.archive.archive_names import archive_name, list_archive_names, records_path
from penstock.engine.storage.file_access import is_delta_table
from penstock.pipelines import catalog
from penstock.platform.control import ControlStore
from penstock.platform.definitions.asset_keys import list_plan_topics
from penstock.platform.definitions.failure_sensor import build_failure_sensor
from penstock.platform.definitions.maintenance_job import build_maintenance_definitions
from penstock.platform.definitions.streams.backfills import build_backfill_definitions
from penstock.platform.definitions.streams.freshness import (
    FreshnessLimits,
    FreshnessMonitor,
    build_freshness_definitions,
)
from penstock.platform.definitions.streams.history_jobs import build_replay_job, build_upgrade_job
from penstock.platform.maintenance import run_maintenance
from penstock.platform.services.alerts import AlertDispatcher
from penstock.platform.services.replay import replay_stream
from penstock.platform.services.stream_catalog import find_definition_error, load_plan
from penstock.platform.services.upgrades import upgrade_stream
from penstock.platform.settings import Settings
from penstock.platform.settings.model import AlertSettings, StreamAlertLimits

if TYPE_CHECKING:
    from penstock.platform.services.bounded_runs import BoundedRunResult

StoreFactory = Callable[[], ControlStore]


def build_operations_definitions(settings: Settings, open_store: StoreFactory) -> Definitions:
    """Build the operations of every pipeline of the catalog."""
    return Definitions.merge(
        _build_history_definitions(settings, open_store),
        _build_watch_definitions(settings, open_store),
        _build_maintenance(settings, open_store),
    )


def _build_history_definitions(settings: Settings, open_store: StoreFactory) -> Definitions:
    def run_day(
        stream: str, day: date, records_per_batch: int | None, report_progress: Callable[[str], None]
    ) -> "BoundedRunResult":
        from penstock.platform.services.bounded_runs import run_over_stored_records

        return run_over_stored_records(settings, stream, None, None, records_per_batch, report_progress, day)

    pipelines = catalog.pipeline_names()
    replay_job = build_replay_job(
        pipelines, lambda order, tell: replay_stream(settings, open_store(), order, tell)
    )
    upgrade_job = build_upgrade_job(
        pipelines, lambda order, tell: upgrade_stream(settings, open_store(), order, tell)
    )
    dagster_settings = settings.dagster
    backfills = build_backfill_definitions(
        {
            name: list_plan_topics(load_plan(name)) if find_definition_error(name) is None else ()
            for name in pipelines
        },
        date.fromisoformat(dagster_settings.first_day),
        run_day,
        dagster_settings.nightly_backfills,
        lambda stream: _explain_missing_archive(settings, stream),
    )
    return Definitions.merge(Definitions(jobs=[replay_job, upgrade_job]), backfills)


def _explain_missing_archive(settings: Settings, stream: str) -> str | None:
    """Return why a backfill cannot read the archives of a stream; None if it can."""
    if (error := find_definition_error(stream)) is not None:
        return str(error)
    for topic in list_plan_topics(load_plan(stream)):
        if not is_delta_table(settings.warehouse_path / records_path(topic)):
            return f"{topic} has no archive. Run `penstock stream start {archive_name(topic)}`"
    return None


def build_freshness_monitor(settings: Settings, open_store: StoreFactory) -> FreshnessMonitor:
    """Build the monitor that compares streams with the limits of the settings."""
    alert_settings = settings.alerts
    stream_limits = {
        stream: _build_limits(alert_settings, alert_settings.of[stream]) for stream in alert_settings.of
    }
    return FreshnessMonitor(
        catalog.pipeline_names(),
        list_archive_names(),
        open_store,
        now_ms,
        _build_limits(alert_settings, StreamAlertLimits()),
        stream_limits,
    )


def _build_watch_definitions(settings: Settings, open_store: StoreFactory) -> Definitions:
    alerts = AlertDispatcher(settings.alerts.webhook)
    return Definitions.merge(
        build_freshness_definitions(build_freshness_monitor(settings, open_store), alerts),
        Definitions(sensors=[build_failure_sensor(alerts, now_ms)]),
    )


def _build_limits(alert_settings: AlertSettings, overrides: StreamAlertLimits) -> FreshnessLimits:
    max_delay_ms = overrides.max_watermark_delay or alert_settings.max_watermark_delay
    max_lag = (
        alert_settings.max_lag_records if overrides.max_lag_records is None else overrides.max_lag_records
    )
    return FreshnessLimits(int(max_delay_ms), max_lag, int(alert_settings.max_time_without_host))


def _build_maintenance(settings: Settings, open_store: StoreFactory) -> Definitions:
    return build_maintenance_definitions(
        lambda instance, tell, dry_run: run_maintenance(
            settings, open_store(), instance, now_ms(), tell, dry_run=dry_run
        ),
        settings.maintenance.schedule,
    )
