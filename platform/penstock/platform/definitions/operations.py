"""What keeps streams running for months: replays, upgrades, backfills, maintenance, freshness, alerts."""

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

from dagster import Definitions

from penstock.pipelines import catalog
from penstock.pipelines.archive.names import archive_names, archive_of, records_path
from penstock.pipelines.store.files import is_table
from penstock.platform.alerts import Alerts
from penstock.platform.clock import now_ms
from penstock.platform.control import ControlStore
from penstock.platform.definitions.backfills import backfill_definitions
from penstock.platform.definitions.failures import failure_sensor
from penstock.platform.definitions.freshness import Freshness, Limits, freshness_definitions
from penstock.platform.definitions.maintenance import maintenance
from penstock.platform.definitions.names import topics_of
from penstock.platform.definitions.replays import replay_job, upgrade_job
from penstock.platform.maintenance import maintain
from penstock.platform.replay import replay
from penstock.platform.settings import Settings
from penstock.platform.settings.model import AlertSettings, OwnLimits
from penstock.platform.streams import plan_of, problem_of
from penstock.platform.upgrades import upgrade

if TYPE_CHECKING:
    from penstock.platform.bounded import Ran

Store = Callable[[], ControlStore]


def operations_definitions(settings: Settings, store: Store) -> Definitions:
    """Everything of it, for the pipelines of the catalog."""
    return Definitions.merge(
        _histories(settings, store), _watching(settings, store), _maintenance(settings, store)
    )


def _histories(settings: Settings, store: Store) -> Definitions:
    def run_day(stream: str, day: date, most: int | None, tell: Callable[[str], None]) -> "Ran":
        from penstock.platform.bounded import run_stored

        return run_stored(settings, stream, None, None, most, tell, day)

    names = catalog.names()
    replays = replay_job(names, lambda order, tell: replay(settings, store(), order, tell))
    upgrades = upgrade_job(names, lambda order, tell: upgrade(settings, store(), order, tell))
    wanted = settings.dagster
    backfills = backfill_definitions(
        {name: topics_of(plan_of(name)) if problem_of(name) is None else () for name in names},
        date.fromisoformat(wanted.first_day),
        run_day,
        wanted.nightly_backfills,
        lambda stream: _unarchived(settings, stream),
    )
    return Definitions.merge(Definitions(jobs=[replays, upgrades]), backfills)


def _unarchived(settings: Settings, stream: str) -> str | None:
    """Why a stream has no archive to be run over; None where it has."""
    if (problem := problem_of(stream)) is not None:
        return str(problem)
    tables = {topic: settings.tables / records_path(topic) for topic in topics_of(plan_of(stream))}
    topic = next((topic for topic, table in tables.items() if not is_table(table)), None)
    return None if topic is None else f"{topic} has no archive: `penstock stream start {archive_of(topic)}`"


def freshness_of(settings: Settings, store: Store) -> Freshness:
    """What judges the streams of the catalog, by the limits that are set."""
    told = settings.alerts
    own = {stream: _limits(told, told.of[stream]) for stream in told.of}
    return Freshness(catalog.names(), archive_names(), store, now_ms, _limits(told, OwnLimits()), own)


def _watching(settings: Settings, store: Store) -> Definitions:
    alert = Alerts(settings.alerts.webhook)
    return Definitions.merge(
        freshness_definitions(freshness_of(settings, store), alert),
        Definitions(sensors=[failure_sensor(alert, now_ms)]),
    )


def _limits(told: AlertSettings, own: OwnLimits) -> Limits:
    minutes = told.watermark_minutes if own.watermark_minutes is None else own.watermark_minutes
    records = told.lag_records if own.lag_records is None else own.lag_records
    return Limits(int(minutes * 60_000), records, int(told.without_host_seconds * 1000))


def _maintenance(settings: Settings, store: Store) -> Definitions:
    return maintenance(
        lambda instance, tell, dry_run: maintain(
            settings, store(), instance, now_ms(), tell, dry_run=dry_run
        ),
        settings.maintenance.schedule,
    )
