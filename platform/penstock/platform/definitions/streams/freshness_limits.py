"""The freshness limits of the settings, and the definitions of the monitor that compares streams with them."""

from dagster import Definitions

from penstock.core.clock import now_ms
from penstock.engine.archive.archive_names import list_archive_names
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.streams.freshness import (
    FreshnessLimits,
    FreshnessMonitor,
    build_freshness_definitions,
)
from penstock.platform.settings.model import AlertSettings, StreamAlertLimits


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build the freshness checks of every stream, and the sensor that reports them and raises alerts."""
    return build_freshness_definitions(create_freshness_monitor(context), context.alerts)


def create_freshness_monitor(context: DefinitionsContext) -> FreshnessMonitor:
    """Create the monitor that compares streams with the limits of the settings."""
    alert_settings = context.settings.alerts
    stream_limits = {
        stream: _build_limits(alert_settings, alert_settings.of[stream]) for stream in alert_settings.of
    }
    return FreshnessMonitor(
        context.pipeline_names,
        list_archive_names(),
        context.open_store,
        now_ms,
        _build_limits(alert_settings, StreamAlertLimits()),
        stream_limits,
    )


def _build_limits(alert_settings: AlertSettings, overrides: StreamAlertLimits) -> FreshnessLimits:
    max_delay_ms = overrides.max_watermark_delay or alert_settings.max_watermark_delay
    max_lag = (
        alert_settings.max_lag_records if overrides.max_lag_records is None else overrides.max_lag_records
    )
    max_ahead_ms = (
        alert_settings.max_watermark_ahead
        if overrides.max_watermark_ahead is None
        else overrides.max_watermark_ahead
    )
    return FreshnessLimits(
        int(max_delay_ms), max_lag, int(alert_settings.max_time_without_host), int(max_ahead_ms)
    )
