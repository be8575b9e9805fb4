"""Watermarks that are ahead of the clock: every record that arrives in time is then late."""

import logging

from penstock.engine.host.control import BatchRecord
from penstock.platform.settings.model import AlertSettings

log = logging.getLogger(__name__)

TROUBLESHOOTING_PAGE = "platform/docs/troubleshooting.md"
_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def measure_ahead_ms(watermark_ms: int | None, now_ms: int, limit_ms: int) -> int:
    """Return by how much a watermark is ahead of the clock; 0 if that is within the limit."""
    ahead_ms = 0 if watermark_ms is None else watermark_ms - now_ms
    return ahead_ms if ahead_ms > limit_ms else 0


def describe_ahead(ahead_ms: int) -> str:
    """Describe a watermark that is ahead of the clock: `the watermark is 365 d in the future`."""
    unit, length_ms = next(
        (name, length_ms) for name, length_ms in _UNITS_MS if ahead_ms >= 2 * length_ms or name == "s"
    )
    return f"the watermark is {ahead_ms / length_ms:.0f} {unit} in the future"


class WatermarkObserver:
    """Logs a line when the watermark of a stream gets ahead of the batch time, and when it no longer is."""

    def __init__(self, alerts: AlertSettings) -> None:
        self._alerts = alerts
        self._streams_ahead: set[str] = set()

    def observe_batch(self, record: BatchRecord) -> None:
        """Compare the watermark of a committed batch with its batch time."""
        stream, limit_ms = record.stream, self._alerts.max_watermark_ahead_of(record.stream)
        ahead_ms = measure_ahead_ms(record.watermark_ms, record.clock_ms, limit_ms)
        if ahead_ms and stream not in self._streams_ahead:
            self._streams_ahead.add(stream)
            log.error(
                "Watermark ahead of the clock; new records are late (stream=%s, batch=%d): %s. See %s",
                stream,
                record.batch_id,
                describe_ahead(ahead_ms),
                TROUBLESHOOTING_PAGE,
                extra={"stream": stream},
            )
        elif not ahead_ms and stream in self._streams_ahead:
            self._streams_ahead.discard(stream)
            log.info("Watermark no longer ahead of the clock (stream=%s)", stream, extra={"stream": stream})
